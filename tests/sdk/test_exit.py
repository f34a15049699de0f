"""The end of a process: no thread of torch outlives the exit functions, since one that needs Python would abort it."""

import unittest

import support

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


if __name__ == "__main__":
    unittest.main()
