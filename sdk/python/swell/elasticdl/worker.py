"""A worker of an ElasticDLJob: it takes ranges of records and sends the gradient of each minibatch to the master.

Pods start it as `python3 -m swell.elasticdl.worker`. On notice it finishes the current minibatch, tells the master that
it leaves, and exits with 143. Other workers get the rest of its range. What always holds: if a worker dies, no record
and no gradient that counts is lost.
"""

import json
import os
import socket
import sys
import threading
import time

from swell.elasticdl import wire
from swell.elasticdl.options import log, parse, reader_parameters
from swell.notice import EXIT_NOTICED, Notice

RETRIES_MAX = 64
HEARTBEAT_S = 3.0
LEAVING_S = 5.0


class Stop(Exception):
    """The job is over for this worker; `code` is the exit status."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


class RangeLost(Exception):
    """The range belongs to another worker now."""


class ModelClient:
    """The connection to the process that keeps the model. The job master has its address, which a restart changes."""

    def __init__(self, master, name, notice):
        self._master, self._name, self._notice = master, name, notice
        self._connection = None

    def request(self, header, payload=b""):
        """(answer, bytes). Repeats the request until there is an answer."""
        pause = 0.05
        while True:
            try:
                if self._connection is None:
                    self._connect()
                wire.send_frame(self._connection, dict(header, worker=self._name), payload)
                answer, data = wire.receive_frame(self._connection)
                break
            except (OSError, EOFError):
                # If the master died, its model and its position agree, whether it counted this request or not.
                self.close()
                if self._notice.requested:
                    raise Stop(EXIT_NOTICED, "preempted while the master does not answer")
                time.sleep(pause)
                pause = min(1.0, pause * 1.5)
        if answer.get("error"):
            raise Stop(1, answer["error"])
        return answer, data

    def _connect(self):
        facts = self._master.post("/v1/heartbeat", worker=self._name)["facts"]
        if "model" not in facts:
            raise OSError("the master has not published the address of the model yet")
        host, _, port = facts["model"].rpartition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=60)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Worker:
    def __init__(self, options, name, notice):
        self.options, self.name, self.notice = options, name, notice
        address = os.environ["MASTER_ADDR"]
        self.master = wire.JobMaster(address)
        self.model = ModelClient(self.master, name, notice)
        self.version = self.run_id = None
        self.step = 0
        self.ended = threading.Event()
        self.heartbeat_thread = threading.Thread(target=self.send_heartbeats, daemon=True)

    def load(self):
        # Importing torch takes seconds, so it happens after the notice handler is installed.
        import torch

        from swell.elasticdl import model, records
        torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS") or 1)))
        self.torch, self.tools = torch, model
        self.file = model.ModelFile(self.options)
        self.flat = model.Flat(self.file.net)
        self.records = records.open_records(self.options.data, self.file.custom_reader, reader_parameters(self.options),
                                            self.options.records_limit or None)
        log(f"{self.name}: {len(self.records)} records at {self.options.data}, {self.flat.weights} parameters")

    def send_heartbeats(self):
        """Sends heartbeats over a connection of its own, so that no gradient delays them."""
        master = wire.JobMaster(os.environ["MASTER_ADDR"])
        while not self.ended.wait(HEARTBEAT_S):
            try:
                master.post("/v1/heartbeat", worker=self.name, step=self.step)
            except (OSError, wire.Refused):
                continue

    def run(self):
        self.wait_for_job()
        self.heartbeat_thread.start()
        self.pull()
        work = {"train": self.train, "evaluate": self.evaluate, "predict": self.predict}[self.options.mode]
        while True:
            task = self.next_task()
            begun = time.monotonic()
            try:
                work(task)
            except RangeLost as lost:
                log(f"{self.name}: records {task['start']}-{task['end']} belong to another worker now: {lost}")
            except (Stop, KeyboardInterrupt):
                raise
            except Exception as error:  # from the model file; the range is tried a few more times, by any worker
                log(f"{self.name}: records {task['start']}-{task['end']} failed: {type(error).__name__}: {error}")
                self.master.post("/v1/failed", worker=self.name, task=task["id"],
                                 error=f"{type(error).__name__}: {error}")
                if not self.options.task_fault_tolerance:
                    raise
            else:
                log(f"{self.name}: epoch {task['epoch'] + 1} records {task['start']}-{task['end']} done in "
                    f"{time.monotonic() - begun:.2f} s, model version {self.version}")

    def wait_for_job(self):
        while True:
            self.leave_on_notice()
            try:
                self.master.post("/v1/heartbeat", worker=self.name)
                return
            except wire.Refused as refused:
                if refused.code != 409:  # the master has not read its data yet
                    raise
                time.sleep(0.1)

    def leave_on_notice(self):
        if self.notice.requested:
            raise Stop(EXIT_NOTICED, "preempted")

    def held(self):
        """True if --hold_file allows no more minibatches."""
        if not self.options.hold_file:
            return False
        try:
            with open(self.options.hold_file, encoding="utf-8") as file:
                return self.step >= int(file.read())
        except FileNotFoundError:
            return False

    def next_task(self):
        while True:
            self.leave_on_notice()
            answer = self.master.post("/v1/task", worker=self.name, holding=[])
            if answer["tasks"]:
                return answer["tasks"][0]
            if answer.get("failure"):
                raise Stop(1, answer["failure"])
            if answer.get("finished"):
                raise Stop(0, "all records are done")
            time.sleep(answer["waitMs"] / 1000)

    def pull(self):
        """Takes over the newest model. It travels only if this worker has another version."""
        answer, data = self.model.request({"op": "pull", "version": self.version, "run_id": self.run_id})
        self.adopt(answer, data)

    def adopt(self, answer, data):
        """Takes over the model of an answer. An answer without data means that this worker has that version."""
        self.version, self.run_id = answer["version"], answer["run_id"]
        if len(data):
            self.flat.load_values(self.tools.vector_of(data))

    def batches(self, task):
        """For each minibatch of the range: (records of the range done with it, features, labels)."""
        mode = {"train": "training", "evaluate": "evaluation", "predict": "prediction"}[self.options.mode]
        for start in range(task["start"], task["end"], self.options.minibatch_size):
            end = min(task["end"], start + self.options.minibatch_size)
            chosen = list(self.records.read(start, end, self.options.codec_type))
            features, labels = self.file.feed(chosen, mode)
            yield end - task["start"], features, labels

    def train(self, task):
        self.file.net.train()
        for done, features, labels in self.batches(task):
            self.leave_on_notice()
            while self.held():
                time.sleep(0.05)
                self.leave_on_notice()
            begin = time.monotonic()
            # Others may have changed the model since this worker's last gradient. One of an old model is refused.
            self.pull()
            for _ in range(RETRIES_MAX + 1):
                self.file.net.zero_grad(set_to_none=True)
                loss = self.file.loss(self.file.net(features), labels)
                loss.backward()
                header = {"op": "push", "task": task["id"], "done": done, "version": self.version,
                          "run_id": self.run_id, "loss": loss.item(), "size": len(labels) if labels is not None else 0}
                answer, data = self.model.request(header, self.tools.bytes_of(self.flat.gradients()))
                self.adopt(answer, data)
                if answer.get("lost"):
                    raise RangeLost(answer["lost"])
                if answer["accepted"]:
                    break
            else:
                raise RuntimeError(f"{RETRIES_MAX} gradients in a row were refused because the model had changed")
            self.step += 1
            time.sleep(max(0.0, begin + self.options.step_seconds - time.monotonic()))

    def evaluate(self, task):
        self.file.net.eval()
        sums, count = {}, 0
        with self.torch.no_grad():
            for _, features, labels in self.batches(task):
                self.leave_on_notice()
                size, found = measure(self.file, features, labels)
                count += size
                for name, value in found.items():
                    sums[name] = sums.get(name, 0.0) + value * size
        answer, _ = self.model.request({"op": "evaluated", "task": task["id"], "done": task["end"] - task["start"],
                                     "sums": sums, "count": count})
        if answer.get("lost"):
            raise RangeLost(answer["lost"])

    def predict(self, task):
        self.file.net.eval()
        rows = []
        with self.torch.no_grad():
            for _, features, _ in self.batches(task):
                self.leave_on_notice()
                rows.append(self.file.net(features))
        outputs = self.torch.cat(rows)
        if self.file.processor is not None:
            self.file.processor.process(outputs.numpy(), self.name)
        if self.options.output:
            write_rows(self.options.output, task, outputs.tolist())
        self.master.post("/v1/progress", worker=self.name, task=task["id"], done=task["end"] - task["start"])

    def leave(self, code):
        self.ended.set()
        if self.heartbeat_thread.is_alive():
            # A heartbeat that arrives later would register this worker again.
            self.heartbeat_thread.join(LEAVING_S)
        self.master.retry_seconds = LEAVING_S
        try:
            self.master.post("/v1/leave", worker=self.name, notice=True,
                             reason="preempted" if code == EXIT_NOTICED else "done")
        except (OSError, wire.Refused) as error:
            log(f"{self.name}: could not tell the master that this worker leaves: {error}")


def measure(file, features, labels):
    """(number of records, {name: mean}) of the loss and the model file's metrics."""
    outputs = file.net(features)
    found = {"loss": float(file.loss(outputs, labels))}
    for name, metric in file.metrics.items():
        value = metric(labels, outputs)
        found[name] = float(value.float().mean() if hasattr(value, "float") else value)
    return len(labels), found


def write_rows(folder, task, rows):
    """The file is named by its range, so a range that is done twice replaces it."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"predictions-{task['start']:012d}-{task['end']:012d}.jsonl")
    with open(path + ".part", "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    os.replace(path + ".part", path)


def main():
    notice = Notice(hold=False)
    options = parse()
    name = os.environ.get("POD_NAME") or f"worker-{os.environ.get('WORKER_ID', '0')}"
    worker = Worker(options, name, notice)
    try:
        worker.load()
        notice.hold()
        worker.run()
    except Stop as stop:
        log(f"{name}: leaves: {stop}")
        worker.leave(stop.code)
        return stop.code
    return 1


if __name__ == "__main__":
    sys.exit(main())
