"""The master of an ElasticDLJob: keeps the model, sums gradients, and runs the job master beside it.

Pods start it as `python3 -m swell.elasticdl.master`. Its child process `swell job-master` hands out records and decides
which gradients count; this process does the arithmetic.

What always holds:
* A gradient is in the sum exactly if the job master has counted its records.
* A checkpoint has the model, the incomplete sum of gradients and the position in the data of the same moment. So a
  master that resumes from a checkpoint trains each record once.
* The child may die at any time, because its journal has everything.
"""

import copy
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from swell import plain
from swell.elasticdl import wire
from swell.elasticdl.folder import Folder, Taken
from swell.elasticdl.options import log, parse, reader_parameters
from swell.notice import EXIT_NOTICED, Notice
from swell.report import report_progress

# Seconds between checkpoints, unless --checkpoint_steps is set.
CHECKPOINT_SECONDS = 20.0
LAST_WORKERS_S = 15.0


class JobMasterProcess:
    """The child process `swell job-master`. It is restarted when it dies."""

    def __init__(self, port, folder):
        program = os.environ.get("SWELL_PROGRAM") or shutil.which("swell")
        if not program:
            raise SystemExit("the program swell is not on PATH: the image must have it, for the job master")
        self._command = [program, "job-master", "--listen", f":{port}",
                         "--journal", os.path.join(folder, "job-master.journal")]
        self.process = None
        self._ending = False
        self.start()

    def start(self):
        libc = ctypes.CDLL(None, use_errno=True)
        # PR_SET_PDEATHSIG: the child ends with this process.
        self.process = subprocess.Popen(self._command, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))

    def watch(self):
        while not self._ending:
            code = self.process.wait()
            if self._ending:
                return
            log(f"master: the job master ended with {code}; it is restarted from its journal")
            time.sleep(0.2)
            self.start()

    def stop(self):
        self._ending = True
        self.process.terminate()


class Model:
    """The parameters, the optimizer and the sum of gradients. One lock protects them all."""

    def __init__(self, options, torch, tools, file, master):
        self.options, self.torch, self.tools, self.file, self.master = options, torch, tools, file, master
        self.flat = tools.Flat(file.net)
        self.optimizer = file.optimizer(options.learning_rate)
        self.base_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.lock = threading.RLock()
        self.version = 0
        self.sum = torch.zeros(self.flat.weights)
        self.summed = 0
        self.sequence = 0
        # Names this run of the master. A model version means something only together with it.
        self.run_id = f"{time.time_ns():x}"
        self.bytes = bytes(tools.bytes_of(self.flat.values()))
        self.losses, self.recent = [], []
        self.finished = threading.Event()
        self.failure = ""
        self.updated = threading.Event()
        self.evaluation_sums, self.evaluated_records = {}, 0

    def state(self):
        """A copy of all that a checkpoint has, because training continues while it is written. Needs the lock."""
        learned = {"model": self.file.net.state_dict(), "optimizer": self.optimizer.state_dict(), "sum": self.sum}
        return {"version": self.version, "summed": self.summed, "position": self.master.get("/v1/snapshot"),
                **copy.deepcopy(learned)}

    def load_state(self, state):
        self.file.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.version, self.sum, self.summed = state["version"], state["sum"], state["summed"]
        self.bytes = bytes(self.tools.bytes_of(self.flat.values()))

    def answer(self, header, payload):
        with self.lock:
            return {"pull": self.pull, "push": self.push, "evaluated": self.evaluated}[header["op"]](header, payload)

    def pull(self, header, payload):
        return self.current_version(), b"" if self.is_current(header) else self.bytes

    def is_current(self, header):
        """True if the worker that sent this header has the newest model."""
        return header.get("run_id") == self.run_id and header.get("version") == self.version

    def push(self, header, payload):
        gradient = self.tools.vector_of(payload)
        if len(gradient) < self.flat.weights:
            raise ValueError(f"{len(gradient)} numbers; the model has {self.flat.weights} parameters")
        version = header["version"] if header["run_id"] == self.run_id else -1
        if self.finished.is_set():
            return dict(self.current_version(), accepted=False, lost="the job has ended"), self.bytes
        self.sequence += 1
        try:
            # A version of an earlier run is older than any tolerance.
            verdict = self.master.post("/v1/gradient", worker=header["worker"], task=header["task"],
                                       done=header["done"],
                                       version=version if version >= 0 else 1 << 60, sequence=self.sequence)
        except wire.Refused as refused:
            return dict(self.current_version(), accepted=False, lost=str(refused)), self.bytes
        if verdict["accepted"]:
            self.add(gradient, header, self.version - version)
            if verdict["apply"]:
                self.update(verdict["gradients"])
        if verdict.get("failure"):
            self.failure = verdict["failure"]
        if verdict.get("finished"):
            self.finished.set()
        current = self.is_current(header)
        return dict(self.current_version(), accepted=verdict["accepted"]), b"" if current else self.bytes

    def current_version(self):
        return {"version": self.version, "run_id": self.run_id}

    def add(self, gradient, header, staleness):
        gradients = gradient[:self.flat.weights]
        if self.options.lr_staleness_modulation and staleness > 0:
            gradients = gradients / (staleness + 1)
        self.sum += gradients
        self.summed += 1
        self.flat.load_buffers(gradient[self.flat.weights:])
        self.recent.append(header["loss"])

    def update(self, count):
        assert count == self.summed, (count, self.summed)
        self.flat.load_gradients(self.sum / self.summed)
        self.optimizer.step()
        self.sum.zero_()
        self.summed = 0
        self.version += 1
        self.bytes = bytes(self.tools.bytes_of(self.flat.values()))
        loss = sum(self.recent) / len(self.recent)
        self.losses.append(loss)
        self.recent.clear()
        for callback in self.file.callbacks:
            if hasattr(callback, "on_update"):
                callback.on_update(self.version, loss)
        self.updated.set()
        if self.options.max_step and self.version >= self.options.max_step:
            self.finished.set()

    def evaluated(self, header, payload):
        try:
            answer = self.master.post("/v1/progress", worker=header["worker"], task=header["task"], done=header["done"])
        except wire.Refused as refused:
            return {"lost": str(refused)}, b""
        for name, value in header["sums"].items():
            self.evaluation_sums[name] = self.evaluation_sums.get(name, 0.0) + value
        self.evaluated_records += header["count"]
        if answer.get("finished"):
            self.finished.set()
        return {}, b""


class Server:
    """Answers workers, each in a thread of its own. The model's lock orders them."""

    def __init__(self, model):
        self._model = model
        self._socket = socket.create_server(("", 0), backlog=1024)
        self.port = self._socket.getsockname()[1]

    def run(self):
        while True:
            connection, _ = self._socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                while True:
                    header, payload = wire.receive_frame(connection)
                    try:
                        answer, data = self._model.answer(header, payload)
                    except (KeyError, ValueError, TypeError) as error:
                        answer, data = {"error": f"{type(error).__name__}: {error}"}, b""
                    wire.send_frame(connection, answer, data)
            except (EOFError, OSError):
                return


class Master:
    def __init__(self, options, notice):
        self.options, self.notice = options, notice
        self.port = int(os.environ.get("ELASTICDL_PORT") or 50001)
        self.folder = options.checkpoint_dir or os.environ.get("SWELL_CHECKPOINT_DIR") or os.path.abspath("checkpoints")
        self.owned = Folder(self.folder, options.job_name, os.environ.get("SWELL_JOB_UID", ""))
        self.job_master_process = JobMasterProcess(self.port, self.folder)
        self.master = wire.JobMaster(f"127.0.0.1:{self.port}")
        self.last_saved = time.monotonic()
        self.saved_version = -1
        self.logged_version = 0
        self.evaluated_version = 0

    def load(self):
        import torch

        from swell.checkpoint import CheckpointManager
        from swell.elasticdl import model, records
        torch.set_num_threads(1)
        torch.manual_seed(self.options.seed)
        file = model.ModelFile(self.options)
        self.torch, self.tools, self.file, self.open_records = torch, model, file, records.open_records
        data = records.open_records(self.options.data, file.custom_reader, reader_parameters(self.options),
                                    self.options.records_limit or None)
        if len(data) == 0:
            raise ValueError(f"there are no records at {self.options.data}")
        self.records = len(data)
        self.checkpoints = CheckpointManager(self.folder, keep=max(1, self.options.keep_checkpoint_max))
        self.model = Model(self.options, torch, model, file, self.master)
        self.begin_job()

    def begin_job(self):
        options = self.options
        training = options.mode == "train"
        try:
            self.post_job(training)
        except wire.Refused as error:
            if not self.owned.of_another():
                raise
            # The folder's journal is of a job with other records, epochs or batches.
            raise self.owned.taken() from error
        saved = self.checkpoints.load() if training else None
        if saved is not None:
            self.model.load_state(saved.state)
            self.master.post("/v1/restore", snapshot=saved.state["position"])
            self.saved_version = self.model.version
            log(f"master: resumes from the checkpoint of version {self.model.version}")
        elif training:
            self.master.post("/v1/restore", snapshot=None)
            self.start_from(self.options.checkpoint_dir_for_init)
        else:
            self.start_from(self.options.checkpoint_dir_for_init)
        if self.master.get("/v1/state")["phase"] == "Finished":
            if training and self.owned.of_another():
                raise self.owned.taken()
            self.model.finished.set()
        self.owned.keep()

    def post_job(self, training):
        options = self.options
        # In asynchronous training each gradient is an update of its own, however old it is.
        self.master.post("/v1/job", records=self.records, recordsPerTask=options.records_per_task,
                         epochs=options.num_epochs if training else 1, shuffle=options.shuffle and training,
                         seed=options.seed, gradsToWait=1 if options.use_async else options.grads_to_wait,
                         versionTolerance=(1 << 40) if options.use_async else options.sync_version_tolerance,
                         exactProgress=training, triesMax=options.tries_max,
                         hangFloorMs=options.task_timeout_s * 1000, workerTimeoutMs=options.worker_timeout_s * 1000)

    def start_from(self, folder):
        """Loads weights of an earlier job, from a checkpoint folder or from a file that --output wrote."""
        if not folder:
            return
        path = os.path.join(folder, "model.pt") if os.path.isdir(folder) else folder
        if os.path.exists(path):
            weights = plain.load(path)
        else:
            from swell.checkpoint import CheckpointManager
            saved = CheckpointManager(folder).load()
            if saved is None:
                raise ValueError(f"--checkpoint_dir_for_init {folder}: there is no checkpoint")
            weights = saved.state["model"]
        self.file.net.load_state_dict(weights)
        self.model.bytes = bytes(self.tools.bytes_of(self.model.flat.values()))
        log(f"master: starts with the weights of {folder}")

    def run(self):
        server = Server(self.model)
        threading.Thread(target=server.run, daemon=True).start()
        threading.Thread(target=self.job_master_process.watch, daemon=True).start()
        host = os.environ.get("MASTER_ADDR", "").rpartition(":")[0] or "127.0.0.1"
        self.master.post("/v1/facts", facts={"model": f"{host}:{server.port}"})
        log(f"master: {self.records} records, {self.options.num_epochs} epoch(s), {self.options.records_per_task} per "
            f"task, minibatches of {self.options.minibatch_size}, {self.options.grads_to_wait} gradients per update")
        last_check = time.monotonic()
        while not self.model.finished.is_set():
            if self.notice.requested:
                self.save("leaving")
                return EXIT_NOTICED
            if self.model.updated.wait(0.2):
                self.model.updated.clear()
                self.after_update()
            if time.monotonic() - last_check > 1.0:
                last_check = time.monotonic()
                if self.job_ended():
                    break
        if self.model.failure:
            log(f"master: the job has failed: {self.model.failure}")
            self.wait_for_workers()
            self.job_master_process.stop()
            return 1
        return self.end()

    def job_ended(self):
        """True if all predictions are done or a range has failed for good. No gradient shows either."""
        state = self.master.get("/v1/state")
        self.model.failure = self.model.failure or state["failure"]
        if state["phase"] == "Finished":
            self.model.finished.set()
        return state["phase"] != "Running"

    def after_update(self):
        version = self.model.version
        if self.options.log_loss_steps and version - self.logged_version >= self.options.log_loss_steps:
            self.log_progress(version)
        due = time.monotonic() - self.last_saved > CHECKPOINT_SECONDS
        if self.options.checkpoint_steps:
            due = version - max(self.saved_version, 0) >= self.options.checkpoint_steps
        if due:
            self.save("periodic")
        every = self.options.evaluation_steps
        if every and self.options.validation_data and version // every > self.evaluated_version // every:
            self.evaluate()

    def log_progress(self, version):
        state = self.master.get("/v1/state")
        with self.model.lock:
            recent = self.model.losses[self.logged_version - version:] or [float("nan")]
            self.model.losses.clear()
        self.logged_version = version
        total = state["done"] + state["left"]
        each = 1 if self.options.use_async else self.options.grads_to_wait
        log(f"master: version {version} loss {sum(recent) / len(recent):.4f} records {state['done']} of {total} "
            f"workers {len(state['workers'])} records/s {state['recordsPerSecond']:.0f} "
            f"stale gradients {state['staleGradients']}")
        report_progress({"training_step": version, "world": len(state["workers"]),
                         "records_per_second": round(state["recordsPerSecond"], 2),
                         "accepted_gradients": version * each + state["gradients"],
                         "stale_gradients": state["staleGradients"]})

    def save(self, reason):
        with self.model.lock:
            state = self.model.state()
        try:
            self.checkpoints.save(state["version"], state)
        except OSError as error:
            log(f"master: the checkpoint could not be saved, training continues: {error}")
            self.last_saved = time.monotonic()
            return
        self.last_saved, self.saved_version = time.monotonic(), state["version"]
        log(f"master: checkpoint saved version={state['version']} reason={reason}")

    def evaluate(self):
        """Evaluates on the master, between two updates. The validation data should be small."""
        from swell.elasticdl.worker import measure
        data = self.open_records(self.options.validation_data, self.file.custom_reader, reader_parameters(self.options))
        sums, count = {}, 0
        with self.model.lock, self.torch.no_grad():
            self.evaluated_version = version = self.model.version
            self.file.net.eval()
            for start in range(0, len(data), 500):
                end = min(len(data), start + 500)
                chosen = list(data.read(start, end, self.options.codec_type))
                features, labels = self.file.feed(chosen, "evaluation")
                size, found = measure(self.file, features, labels)
                count += size
                for name, value in found.items():
                    sums[name] = sums.get(name, 0.0) + value * size
            self.file.net.train()
        self.log_metrics(f"version {version}", sums, count)

    def log_metrics(self, what, sums, count):
        words = " ".join(f"{name}={value / max(1, count):.4f}" for name, value in sums.items())
        log(f"master: evaluation of {what}: {words} ({count} records)")

    def end(self):
        if self.options.max_step:
            self.master.post("/v1/end")
        if self.options.mode == "train":
            if self.model.version > self.logged_version:
                self.log_progress(self.model.version)
            self.save("final")
            if self.options.validation_data:
                self.evaluate()
        elif self.options.mode == "evaluate":
            self.log_metrics("the model", self.model.evaluation_sums, self.model.evaluated_records)
        if self.options.output and self.options.mode == "train":
            os.makedirs(self.options.output, exist_ok=True)
            path = os.path.join(self.options.output, "model.pt")
            self.torch.save(self.file.net.state_dict(), path + ".part")
            os.replace(path + ".part", path)
            log(f"master: the model is at {path}")
        for callback in self.file.callbacks:
            if hasattr(callback, "on_train_end"):
                callback.on_train_end()
        self.wait_for_workers()
        state = self.master.get("/v1/state")
        done = {"train": "trained", "evaluate": "evaluated", "predict": "predicted"}[self.options.mode]
        log(f"master: done: {state['done']} records {done} once each, {state['repeatedMax']} perhaps twice, "
            f"{state['version']} updates, {state['staleGradients']} stale gradients, "
            f"{state['preempted']} workers preempted, {state['lost']} lost")
        self.job_master_process.stop()
        return 0

    def wait_for_workers(self):
        """Waits until all workers have asked for more work, got the answer that there is none, and left."""
        give_up = time.monotonic() + LAST_WORKERS_S
        while time.monotonic() < give_up:
            if not self.master.get("/v1/state")["workers"]:
                return
            time.sleep(0.1)


def main():
    notice = Notice(hold=False)
    options = parse()
    try:
        master = Master(options, notice)
        master.load()
        notice.hold()
    except Taken as error:
        log(f"master: {error}")
        return 1
    return master.run()


if __name__ == "__main__":
    sys.exit(main())
