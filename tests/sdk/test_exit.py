"""The end of a process: with the code that says how, whatever the script catches, and without threads of torch, since
one that needs Python would abort it.
"""

import signal
import types
import unittest
from unittest import mock

import support
from swell import exits

_SCRIPT = """
import atexit, contextlib, os

def tell():
    names = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            with open(f"/proc/self/task/{thread}/comm") as file:
                names.append(file.read().strip())
    print("at the end:", *sorted(name for name in names if "gloo" in name), flush=True)

atexit.register(tell)  # first, so it runs last
import torch, swell

job = swell.Job(backend="gloo")
model = job.parallel(torch.nn.Linear(4, 4))
job.restore()
tell()
for step in range(3):
    model(torch.ones(1, 4)).sum().backward()
    job.step_done(step + 1, lambda: {"model": model.state_dict()})
"""

_CATCHES_ALL = """
import sys
import swell

job = swell.Job()
job.restore()
{loop}
print("the script goes on", flush=True)
"""
_AROUND_THE_LOOP = """
try:
    job.notice.note()
    job.step_done(1, {})
except:
    print("caught", sys.exc_info()[0].__name__, flush=True)
"""
_WITHIN_THE_LOOP = """
for step in range(1, 1000):
    try:
        if step == 3:
            job.notice.note()
        job.step_done(step, {})
    except:
        print("caught in step", step, flush=True)
"""

_LOADER = """
import multiprocessing, os, signal, sys
import swell
job = swell.Job(checkpoint_seconds=0)
import torch

class Records(torch.utils.data.Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        {record}
        return float(index)

weight = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(job.parallel(weight).parameters(), lr=0.1)
for batch in job.batches(Records(), 1, 1, {{"optimizer": optimizer}}, num_workers=1):
    weight(torch.ones(1, 1)).sum().backward()
    optimizer.step()
"""


class ExitTest(support.FolderTest):
    def check(self, **extra):
        port = support.free_port()
        processes = [support.start(self, ["-c", _SCRIPT], RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1",
                                   MASTER_PORT=port, SWELL_CHECKPOINT_DIR=self.path("saved"), **extra)
                     for rank in range(2)]
        for process in processes:
            code, output = support.finish(process)
            self.assertEqual(code, 0, output)
            self.assertEqual(output.splitlines()[-1], "at the end:", output)

    def test_a_job_of_two_ranks(self):
        self.check()

    def test_an_elastic_job(self):
        self.check(PET_NNODES="1:2", PET_RDZV_ID="job")

    def end(self, loop):
        process = support.start(self, ["-c", _CATCHES_ALL.format(loop=loop)], SWELL_CHECKPOINT_DIR=self.path("saved"))
        code, output = support.finish(process)
        self.assertIn("swell: checkpoint saved", output)
        return code, [line for line in output.splitlines() if not line.startswith("swell: ")]

    def test_a_script_that_catches_everything_ends_as_stopped_and_not_as_done(self):
        self.assertEqual(self.end(_AROUND_THE_LOOP), (143, ["caught SystemExit", "the script goes on"]))

    def test_a_loop_that_catches_everything_ends_in_the_next_step(self):
        self.assertEqual(self.end(_WITHIN_THE_LOOP), (143, ["caught in step 3"]))

    def load(self, record):
        process = support.start(self, ["-c", _LOADER.format(record=record)], SWELL_CHECKPOINT_DIR=self.path("saved"))
        return support.finish(process)

    def test_a_killed_process_of_a_loader_ends_the_script_as_killed(self):
        code, output = self.load("if index == 50: os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(code, 137, output)
        # Torch's words differ with what the worker was doing.
        self.assertIn("Traceback (most recent call last)", output)
        self.assertIn("swell: a process of a DataLoader was killed from outside", output)

    def test_a_connection_that_a_killed_process_of_a_loader_broke_tells_of_it(self):
        class Reader:
            def __init__(self, exitcode):
                self._workers = [types.SimpleNamespace(exitcode=None), types.SimpleNamespace(exitcode=exitcode)]

            def read(self):
                raise ConnectionResetError("reset by peer")

        with mock.patch.object(exits, "_TOLD_SECONDS", 0):
            for exitcode, killed in ((-signal.SIGKILL, True), (-signal.SIGTERM, False), (1, False)):
                try:  # assertRaises would clear the frames
                    Reader(exitcode).read()
                except ConnectionResetError as error:
                    self.assertEqual(exits._comes_of_killed_loader(error), killed, exitcode)

    def test_an_error_in_a_process_of_a_loader_is_one_of_the_script(self):
        code, output = self.load("assert index != 50, 'bad record'")
        self.assertEqual(code, 1, output)
        self.assertNotIn("swell: a process of a DataLoader", output)


if __name__ == "__main__":
    unittest.main()
