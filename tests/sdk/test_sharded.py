"""Sharded checkpoints, with FSDP2 on two ranks that torch starts. Needs torch 2.6 or newer."""

import glob
import json
import os
import re
import unittest

import support

_SCRIPT = """
import os, signal, time
import swell
job = swell.Job()
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.manual_seed(1)
torch.set_num_threads(1)
parts = torch.nn.Linear(20, 64), torch.nn.Linear(64, 5)
model = torch.nn.Sequential(parts[0], torch.nn.Dropout(0.5), torch.nn.Tanh(), parts[1])
fully_shard(model)
optimizers = [torch.optim.Adam(part.parameters(), lr=0.01) for part in parts]
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizers[0], [5, 8])
shards = swell.Sharded(job, model, optimizers)
found = shards.restore()
step = 0
if found:
    step = found["step"]
    schedule.load_state_dict(found["schedule"])
print("begins", step, flush=True)
generator = torch.Generator().manual_seed(3)
data = torch.randn(10, 8, 20, generator=generator)
while step < 10:
    model.zero_grad()
    loss = model(data[step]).square().mean()
    if job.env.rank == int(os.environ.get("SLOW_RANK", "-1")):
        time.sleep(0.2)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    schedule.step()
    step += 1
    if step == int(os.environ.get("NOTICE_AT", "0")) and job.env.rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    extra = {"step": step, "schedule": schedule.state_dict()}
    if "UNSAVEABLE" in os.environ:
        extra["call"] = lambda: None
    shards.step_done(step, extra, records=16)
print(f"rank {job.env.rank} own {job.own_time.own_total / max(1, job.own_time.steps) / 1e9:.3f}", flush=True)
total = sum(parameter.full_tensor().double().sum().item() for parameter in model.parameters())
if job.env.rank == 0:
    shards_left = shards.steps()
    print(f"weights {total:.9f} kept {shards_left}", flush=True)
shards.save(step, {"step": step})
dist.barrier()
os._exit(0)
"""


@support.torch_since(2, 6)
class ShardedTest(support.FolderTest):
    def train(self, code, folder, **extra):
        script = self.path("script.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(_SCRIPT)
        port = support.free_port()
        ranks = [
            support.start(self, [script], RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                          SWELL_CHECKPOINT_DIR=self.path(folder), OMP_NUM_THREADS=1, **extra)
            for rank in range(2)
        ]
        output = ""
        for rank in ranks:
            status, text = support.finish(rank)
            self.assertEqual(status, code, text)
            output += text
        return output

    def weights(self, output):
        (line,) = [line for line in output.splitlines() if line.startswith("weights ")]
        return line.split()[1]

    def test_a_run_resumes_from_its_shards_and_skips_damaged_ones(self):
        expected = self.weights(self.train(0, "undisturbed"))
        self.train(143, "job", NOTICE_AT=4)
        self.train(143, "job", NOTICE_AT=7)
        names = sorted(os.path.basename(name) for name in glob.glob(self.path("job", "step-*")))
        self.assertEqual(names, ["step-000000000004.shards", "step-000000000007.shards"])
        (damaged,) = glob.glob(self.path("job", "step-000000000007.shards", "__1_*"))
        os.truncate(damaged, 10)
        output = self.train(0, "job")
        self.assertIn("skipping checkpoint of step 7: ", output)
        self.assertEqual(output.count("begins 4\n"), 2)
        self.assertEqual(self.weights(output), expected)
        self.assertEqual(glob.glob(self.path("job", ".swell-tmp-*")), [])

    def test_the_rank_that_the_others_wait_for_has_the_longest_time_of_its_own(self):
        output = self.train(0, "job", SLOW_RANK=1)
        own = {int(rank): float(seconds) for rank, seconds in re.findall(r"^rank (\d) own (\S+)$", output, re.M)}
        self.assertGreater(own[1], 0.2)
        self.assertLess(own[0], own[1] / 2)

    def test_what_cannot_be_saved_stops_no_rank(self):
        output = self.train(138, "job", NOTICE_AT=4, UNSAVEABLE=1)
        self.assertRegex(output, "checkpoint of step 4 not saved, and the process ends: .*pickle")
        self.assertEqual(os.listdir(self.path("job")), [])

    def test_a_save_that_fails_is_reported_and_stops_with_138(self):
        os.mkdir(self.path("report"))
        # A file where the folder should be, which not even root can write into.
        with open(self.path("job"), "w", encoding="utf-8"):
            pass
        report = self.path("report", "r.json")
        output = self.train(138, os.path.join("job", "in"), NOTICE_AT=4, SWELL_REPORT_FILE=report)
        self.assertIn("checkpoint of step 4 not saved, and the process ends: Not a directory", output)
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["saveError"]["step"], 4)


if __name__ == "__main__":
    unittest.main()
