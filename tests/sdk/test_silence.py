"""A machine that vanishes: packets are dropped, and no connection ends. Two network namespaces are the machines."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import support

_SCRIPT = """
import time
import swell
job = swell.Job(backend="gloo")
import torch
torch.set_num_threads(1)
model = job.parallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(120000, 4))

def train(records):
    optimizer.zero_grad()
    model(records).square().mean().backward()
    optimizer.step()
    time.sleep(0.05)
    print(f"step {job.step} of {job.env.world} at {time.monotonic():.2f}", flush=True)

"""
_BATCHES = """
for (records,) in job.batches(data, 12, 1, {"model": model, "optimizer": optimizer}):
    train(records)
"""
_GUARDED = """
sampler = swell.ResumableDistributedSampler(len(data), 12, job=job)

def state():
    return {"step": job.step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
            "sampler": sampler.state_dict()}

def load(state):
    job.step = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    sampler.load_state_dict(state["sampler"])

job.restore()
while not sampler.done:
    for batch in sampler:
        with job.guard(state, load):
            train(*data[batch])
            sampler.commit()
            job.step += 1
            job.step_done(job.step, state, records=12)
"""
_HOSTS = ("10.99.0.1", "10.99.0.2")


def ip(*words):
    return subprocess.run(["ip", *words], check=False, capture_output=True, text=True)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "only root can make network namespaces")
class SilenceTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        self.spaces = [f"swell-test-{os.getpid()}-{i}" for i in range(2)]
        self.links = [f"sw{os.getpid()}-{i}" for i in range(2)]
        for space in self.spaces:
            self.addCleanup(ip, "netns", "del", space)
            if ip("netns", "add", space).returncode != 0:
                self.skipTest("no network namespaces here")
        made = ip("link", "add", self.links[0], "netns", self.spaces[0], "type", "veth",
                  "peer", "name", self.links[1], "netns", self.spaces[1])
        if made.returncode != 0:
            self.skipTest(f"no pair of links here: {made.stderr}")
        for space, link, host in zip(self.spaces, self.links, _HOSTS):
            ip("-n", space, "addr", "add", f"{host}/24", "dev", link)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", link, "up")

    def start(self, rank, machine, port):
        log = self.path(f"log-{rank}")
        environment = support.clean_environment(
            RANK=rank, WORLD_SIZE=3, MASTER_ADDR=_HOSTS[0], MASTER_PORT=port, PET_NNODES="1:3", PET_RDZV_ID="job",
            SWELL_CHECKPOINT_DIR=self.path("checkpoints"), GLOO_SOCKET_IFNAME=self.links[machine], OMP_NUM_THREADS=1)
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.spaces[machine], sys.executable, self.path("script.py")],
                env=environment, stdout=file, stderr=file)
        self.addCleanup(process.wait, support.WAIT_SECONDS)
        self.addCleanup(process.kill)  # `ip netns exec` becomes the program

    def log(self, rank):
        with open(self.path(f"log-{rank}"), encoding="utf-8") as file:
            return file.read()

    def test_the_others_continue_after_seconds(self):
        self.vanish(_BATCHES)

    def test_the_others_continue_after_seconds_in_a_loop_of_the_scripts_own(self):
        self.vanish(_GUARDED)

    def vanish(self, loop):
        with open(self.path("script.py"), "w", encoding="utf-8") as file:
            file.write(_SCRIPT + loop)
        for rank, machine in ((0, 0), (1, 0), (2, 1)):
            self.start(rank, machine, 23456)
        self.assertTrue(support.until(lambda: len(re.findall(" of 3 ", self.log(0))) > 5), self.log(0))
        # Frames go to a card that does not exist, so nobody answers and nobody is told.
        for i in range(2):
            ip("-n", self.spaces[i], "neigh", "replace", _HOSTS[1 - i], "lladdr", "02:00:00:00:00:99",
               "dev", self.links[i], "nud", "permanent")
        self.assertTrue(support.until(lambda: len(re.findall(" of 2 ", self.log(0))) > 5), self.log(0))
        self.assertIn("lost a peer (rank 2 does not answer)", self.log(0))
        # The machine that is cut off finds out by itself, and perhaps later.
        lost = "lost a peer (rank 0 does not answer)"
        self.assertTrue(support.until(lambda: lost in self.log(2)), self.log(2))
        steps = [(int(step), int(world)) for step, world in re.findall(r"^step (\d+) of (\d)", self.log(0), re.M)]
        last = max(step for step, world in steps if world == 3)
        # No step was lost, only the broken one was done twice, and the machine that is cut off trains nothing more.
        numbers = [step for step, _ in steps]
        self.assertEqual(sorted(set(numbers)), list(range(len(set(numbers)))))
        self.assertLessEqual(len(numbers), len(set(numbers)) + 1)
        self.assertLessEqual(max(int(step) for step in re.findall(r"^step (\d+)", self.log(2), re.M)), last + 1)


if __name__ == "__main__":
    unittest.main()
