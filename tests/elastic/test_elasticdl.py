"""ElasticDL's master and workers as real processes, killed and preempted: what the model has learned is counted.

The model has one weight for each record, and a record's gradient is 1 for its own weight and 0 for all others. So
the weights at the end say how often each record was trained; nothing is taken from the accounts that are under
test. Needs torch; the program is $SWELL_BIN/swell (default: build/bin).
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python"
BIN = Path(os.environ.get("SWELL_BIN") or ROOT / "build" / "bin")
sys.path[:0] = [str(SDK), str(ROOT / "tests")]

from ports import free_port  # noqa: E402
from swell.elasticdl import wire  # noqa: E402
from waiting import LIMIT_S, until  # noqa: E402

MODEL = """
import time
import torch
from torch import nn

def held_at():
    try:
        with open({held!r}) as file:
            return int(file.read())
    except FileNotFoundError:
        return {records}

class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros({records}))
        self.begun = set()
    def forward(self, indices):
        # A minibatch whose gradient came too late for its version is done again: it does not count twice.
        first = int(indices[0])
        while first not in self.begun and len(self.begun) >= held_at():
            time.sleep(0.002)
        self.begun.add(first)
        return self.weights[indices]

def custom_model():
    return Counts()

def loss(outputs, labels):
    return outputs.sum()

def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=1.0)

def feed(records, mode, metadata):
    indices = torch.tensor([int(record) for record in records])
    return indices, indices
"""


class Job:
    """A master and workers in a folder of their own, started and ended one by one."""

    def __init__(self, folder, records=600, epochs=1, per_task=50, minibatch=5, grads=1, more=()):
        self.folder, self.records = Path(folder), records
        self.held = self.folder / "held"
        self.port = free_port()
        (self.folder / "model.py").write_text(MODEL.format(records=records, held=str(self.held)))
        (self.folder / "data.txt").write_text("".join(f"{i}\n" for i in range(records)))
        self.arguments = [f"--model_file={self.folder}/model.py", f"--data={self.folder}/data.txt",
                          f"--minibatch_size={minibatch}", f"--records_per_task={per_task}", f"--num_epochs={epochs}",
                          f"--grads_to_wait={grads}", f"--output={self.folder}/out", "--log_loss_steps=50",
                          *more]
        self.uid = "1"
        self.processes = []
        self.logs = {}

    def start(self, role, name):
        environment = dict(os.environ, PYTHONPATH=str(SDK), SWELL_PROGRAM=str(BIN / "swell"), POD_NAME=name,
                           MASTER_ADDR=f"127.0.0.1:{self.port}", ELASTICDL_PORT=str(self.port), OMP_NUM_THREADS="1",
                           SWELL_CHECKPOINT_DIR=str(self.folder / "checkpoints"), SWELL_JOB_UID=self.uid)
        log = open(self.folder / f"{name}-{len(self.processes)}.log", "w")
        process = subprocess.Popen([sys.executable, "-u", "-m", f"swell.elasticdl.{role}", *self.arguments],
                                   env=environment, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
        log.close()
        self.processes.append(process)
        self.logs[process.pid] = log.name
        return process

    def hold(self, minibatches):
        """Each worker waits after so many minibatches, until `hold` or `release` is called again."""
        new = self.held.with_suffix(".new")
        new.write_text(str(minibatches))
        new.rename(self.held)

    def release(self):
        self.held.unlink()

    def both_work(self):
        return len([worker for worker in self.state().get("workers", []) if worker["records"]]) == 2

    def log(self, process):
        return Path(self.logs[process.pid]).read_text()

    def state(self):
        master = wire.JobMaster(f"127.0.0.1:{self.port}", retry_seconds=0.0)
        try:
            return master.get("/v1/state")
        except (OSError, wire.Refused):
            return {}
        finally:
            master.close()

    def wait(self, what, condition):
        if not until(condition):
            logs = "\n".join(f"--- {path}\n{Path(path).read_text()[-2000:]}" for path in self.logs.values())
            raise AssertionError(f"waited {LIMIT_S} s for {what}, which did not come\n{self.state()}\n{logs}")

    def wait_done(self, records):
        self.wait(f"{records} records", lambda: self.state().get("done", 0) >= records)

    def wait_end(self, process, code=0):
        self.wait(f"the end of {process.args[3]}", lambda: process.poll() is not None)
        assert process.returncode == code, f"exit status {process.returncode}\n{self.log(process)}"

    def counts(self):
        """How often each record was added to the model."""
        import torch
        weights = torch.load(self.folder / "out" / "model.pt")["weights"]
        return sorted({round(-float(value), 4) for value in weights})

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


class ElasticdlTest(unittest.TestCase):
    def job(self, **options):
        folder = tempfile.TemporaryDirectory(prefix="swell-elasticdl-")
        self.addCleanup(folder.cleanup)
        job = Job(folder.name, **options)
        self.addCleanup(job.stop)
        return job

    def test_one_worker_contributes_all_gradients(self):
        job = self.job(records=400, epochs=2, grads=2)
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        job.wait_end(master)
        job.wait_end(worker)
        # Twice, and each time half of an update.
        self.assertEqual(job.counts(), [1.0])
        self.assertIn("800 records trained once each, 0 perhaps twice, 80 updates", job.log(master))

    def test_a_folder_of_checkpoints_belongs_to_one_job(self):
        first = self.job(records=100, more=["--job_name=first"])
        master, worker = first.start("master", "master"), first.start("worker", "w0")
        first.wait_end(master)
        first.wait_end(worker)
        folder = first.folder / "checkpoints"
        for name, records, owner in (("second", 100, "job first"), ("first", 100, "an earlier job"),
                                     ("first", 80, "an earlier job")):
            with self.subTest(name=name, records=records):
                other = self.job(records=records, more=[f"--job_name={name}", f"--checkpoint_dir={folder}"])
                other.uid = "another"
                master = other.start("master", "master")
                other.wait_end(master, 1)
                self.assertIn(f"--checkpoint_dir {folder} has the checkpoints of {owner}; name an empty directory.",
                              other.log(master))
                self.assertNotIn("Traceback", other.log(master))

    def test_two_jobs_do_not_train_in_one_folder_at_once(self):
        first = self.job(records=100)
        master = first.start("master", "master")
        first.wait("the master", first.state)
        other = self.job(records=100, more=[f"--checkpoint_dir={first.folder}/checkpoints"])
        late = other.start("master", "master")
        other.wait_end(late, 1)
        self.assertIn("is in use: another job trains there now", other.log(late))
        self.assertIsNone(master.poll())

    def test_a_preempted_workers_records_are_done_by_others_and_it_comes_back(self):
        job = self.job(records=1500)
        job.hold(1)
        master = job.start("master", "master")
        first, second = job.start("worker", "w0"), job.start("worker", "w1")
        job.wait("both work", job.both_work)
        second.send_signal(signal.SIGTERM)
        job.hold(20)
        job.wait_end(second, 143)
        self.assertEqual([worker["name"] for worker in job.state()["workers"]], ["w0"])
        back = job.start("worker", "w1")
        job.wait("it is back and works", job.both_work)
        job.release()
        for process in (master, first, back):
            job.wait_end(process)
        self.assertEqual(job.counts(), [1.0])
        self.assertIn("1 workers preempted, 0 lost", job.log(master))

    def test_a_killed_workers_records_are_trained_exactly_once_too(self):
        job = self.job(records=1000, more=["--worker_timeout_s=6"])
        job.hold(1)
        master = job.start("master", "master")
        first, second = job.start("worker", "w0"), job.start("worker", "w1")
        job.wait("both work", job.both_work)
        second.kill()
        job.release()
        job.wait_end(master)
        job.wait_end(first)
        self.assertEqual(job.counts(), [1.0])
        # The other one may have been silent for as long, on a machine with much to do.
        self.assertRegex(job.log(master), r"0 workers preempted, [1-9]\d* lost")

    def test_without_any_worker_the_job_waits_and_continues_later(self):
        job = self.job(records=1000)
        job.hold(20)
        master = job.start("master", "master")
        workers = [job.start("worker", "w0"), job.start("worker", "w1")]
        job.wait("both work", job.both_work)
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        job.release()
        for worker in workers:
            job.wait_end(worker, 143)
        state = job.state()
        self.assertEqual((state["phase"], state["workers"]), ("Running", []))
        self.assertIsNone(master.poll())
        again = job.start("worker", "w0")
        job.wait_end(master)
        job.wait_end(again)
        self.assertEqual(job.counts(), [1.0])

    def test_the_job_master_dies_and_its_journal_has_everything(self):
        job = self.job(records=1200, grads=2)
        job.hold(0)
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        for done in (200, 600):
            job.hold(done // 5)
            job.wait_done(done)
            children = subprocess.run(["pgrep", "-P", str(master.pid), "-f", "job-master"], capture_output=True,
                                      text=True)
            os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
        job.release()
        job.wait_end(master)
        job.wait_end(worker)
        self.assertEqual(job.counts(), [0.5])
        self.assertEqual(job.log(master).count("it is restarted from its journal"), 2)

    def test_the_whole_master_dies_and_resumes_from_its_checkpoint(self):
        job = self.job(records=1500, more=["--checkpoint_steps=40"])
        job.hold(100)
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        job.wait("a checkpoint", lambda: "checkpoint saved version=" in job.log(master))
        master.kill()
        master.wait()
        again = job.start("master", "master")
        job.release()
        job.wait_end(again)
        job.wait_end(worker)
        self.assertIn("resumes from the checkpoint of version", job.log(again))
        # In the model that is left, each record is once: what came after the checkpoint died with the old one.
        self.assertEqual(job.counts(), [1.0])

    def test_a_master_that_is_preempted_saves_the_incomplete_sum(self):
        job = self.job(records=1200, grads=4)
        job.hold(62)  # two of the four gradients of an update are there
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        job.wait_done(310)
        master.send_signal(signal.SIGTERM)
        job.wait_end(master, 143)
        again = job.start("master", "master")
        job.release()
        job.wait_end(again)
        job.wait_end(worker)
        self.assertEqual(job.counts(), [0.25])

    def test_who_still_loads_leaves_at_once(self):
        job = self.job(records=100)
        model = job.folder / "model.py"
        model.write_text("print('loads', flush=True)\nimport threading\nthreading.Event().wait()\n"
                         + model.read_text())
        for role in ("master", "worker"):
            process = job.start(role, role)
            job.wait(f"the {role} to load", lambda process=process: "loads" in job.log(process))
            process.send_signal(signal.SIGTERM)
            job.wait_end(process, -signal.SIGTERM)

    def test_a_range_that_always_fails_ends_the_job_with_a_reason(self):
        job = self.job(records=200)
        text = (job.folder / "data.txt").read_text().replace("\n77\n", "\nseventy-seven\n")
        (job.folder / "data.txt").write_text(text)
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        job.wait_end(master, 1)
        job.wait_end(worker, 1)
        self.assertRegex(job.log(master),
                         r"records 7\d to 100 of epoch 1 failed 3 times, the last time on w0: ValueError")

    def test_evaluate_and_predict(self):
        job = self.job(records=300)
        master, worker = job.start("master", "master"), job.start("worker", "w0")
        job.wait_end(master)
        job.wait_end(worker)
        for mode in ("evaluate", "predict"):
            other = self.job(records=300, more=[f"--mode={mode}", f"--checkpoint_dir_for_init={job.folder}/out"])
            master, worker = other.start("master", "master"), other.start("worker", "w0")
            other.wait_end(master)
            other.wait_end(worker)
            if mode == "evaluate":
                # The sum over a minibatch of five weights of -1.
                self.assertIn("evaluation of the model: loss=-5.0000 (300 records)", other.log(master))
            else:
                rows = [line for path in sorted((other.folder / "out").glob("*.jsonl"))
                        for line in path.read_text().split()]
                self.assertEqual((len(rows), set(rows)), (300, {"-1.0"}))


class OrderTest(unittest.TestCase):
    """Operations that must not interleave."""

    def test_a_checkpoint_does_not_change_while_training_continues(self):
        import torch
        from swell.elasticdl import master, model

        net = torch.nn.Linear(2, 1, bias=False)
        file = SimpleNamespace(net=net, callbacks=[],
                               optimizer=lambda rate: torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9))
        options = SimpleNamespace(learning_rate=1.0, lr_staleness_modulation=False, max_step=0)
        kept = master.Model(options, torch, model, file, mock.Mock())

        def learn():
            kept.add(torch.ones(2), {"loss": 1.0}, 0)
            if kept.summed == 2:
                kept.update(2)

        for _ in range(3):
            learn()
        state = kept.state()
        before = repr({name: state[name] for name in ("model", "optimizer", "sum")})
        for _ in range(3):
            learn()
        self.assertEqual(repr({name: state[name] for name in ("model", "optimizer", "sum")}), before)
        self.assertNotEqual(repr(kept.state()["model"]), repr(state["model"]))

    def test_a_worker_computes_with_the_newest_model(self):
        import torch
        from swell.elasticdl import master, model, worker

        net = torch.nn.Linear(2, 1, bias=False)
        file = SimpleNamespace(net=net, callbacks=[], optimizer=lambda rate: torch.optim.SGD(net.parameters(), lr=1.0))
        options = SimpleNamespace(learning_rate=1.0, lr_staleness_modulation=False, max_step=0)
        kept = master.Model(options, torch, model, file, mock.Mock())
        own = worker.Worker.__new__(worker.Worker)
        own.tools, own.version, own.run_id = model, None, None
        own.flat = model.Flat(torch.nn.Linear(2, 1, bias=False))
        sent = []

        def request(header):
            answer, data = kept.answer(header, b"")
            sent.append(len(data))
            return answer, data

        own.model = SimpleNamespace(request=request)
        own.pull()
        own.pull()  # nothing has changed, so nothing travels
        kept.add(torch.ones(2), {"loss": 1.0}, 0)
        kept.update(1)
        own.pull()
        self.assertEqual(own.version, 1)
        self.assertEqual([size > 0 for size in sent], [True, False, True])
        self.assertTrue(torch.equal(own.flat.values(), kept.flat.values()))

    def test_no_heartbeat_arrives_after_a_worker_has_left(self):
        from swell.elasticdl import worker

        calls, under_way = [], threading.Event()
        leaving = worker.Worker.__new__(worker.Worker)
        leaving.name, leaving.step, leaving.ended = "w0", 7, threading.Event()
        leaving.heartbeat_thread = threading.Thread(target=leaving.send_heartbeats, daemon=True)

        def post(path, **_):
            if path == "/v1/heartbeat":
                under_way.set()
                # As long as anybody lets it: it comes too late if nobody waits.
                leaving.ended.wait(LIMIT_S)
                until(lambda: calls, seconds=0.5)
            calls.append(path)

        leaving.master = mock.Mock(post=post)
        with mock.patch.object(worker.wire, "JobMaster", lambda address: leaving.master), \
                mock.patch.object(worker, "HEARTBEAT_S", 0), mock.patch.object(worker, "LEAVING_S", LIMIT_S), \
                mock.patch.dict(os.environ, MASTER_ADDR="127.0.0.1:1"):
            leaving.heartbeat_thread.start()
            under_way.wait(LIMIT_S)
            leaving.leave(143)
        self.assertEqual(calls, ["/v1/heartbeat", "/v1/leave"])


if __name__ == "__main__":
    unittest.main()
