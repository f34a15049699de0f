"""A job whose ranks stop moving, on real processes: it is named, told, restarted; and saves that fail are told.

The ranks meet in files, as in a collective: all wait for the one that does not come. What always holds: the job reads
what it should do from files, so that no test depends on how fast the machine is.
"""

import json
import unittest

from cluster import LIMIT_S, ROOT, ClusterTest

SCRIPT = '''
import os, time
from pathlib import Path
from swell.checkpoint import CheckpointManager
from swell.progress import ProgressRecord
from swell.saving import Saver

out = Path(os.environ["OUT"])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
record = ProgressRecord(rank, world)
saver = Saver(CheckpointManager(os.environ["CHECKPOINTS"]), None)
record.total = 10000


def all_reduce(step):
    (out / f"new-{rank}").write_text(str(step))
    (out / f"new-{rank}").rename(out / f"rank-{rank}")
    while not (out / "finish").exists() and not all(
            (out / f"rank-{one}").exists() and int((out / f"rank-{one}").read_text()) >= step for one in range(world)):
        time.sleep(0.01)


def load():
    while rank == 1 and (out / "sleep").exists():
        time.sleep(0.01)


step = 0
while not (out / "finish").exists():
    load()
    all_reduce(step)
    step += 1
    if rank == 0 and step % 20 == 0:
        saver.save(step, {"step": step})
    record.enter("step", step)
    time.sleep(0.02)
record.enter("done", step)
'''

JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  health: {{onHang: {on_hang}, hangSeconds: 3}}
  roles:
    worker:
      replicas: 3
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: main
            image: python
            command: [python3, {out}/train.py]
            env:
            - {{name: PYTHONPATH, value: {root}/sdk/python}}
            - {{name: OUT, value: {out}}}
            - {{name: CHECKPOINTS, value: {out}/saved/here}}
            resources: {{limits: {{nvidia.com/gpu: 1}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}]
          volumes: [{{name: out, hostPath: {{path: {out}}}}}]
"""


class HealthTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.out = self.steps_file.parent
        (self.out / "train.py").write_text(SCRIPT)
        self.saved = self.out / "saved"
        self.saved.mkdir()
        self.saved.chmod(0o777)

    def start(self, on_hang="Report"):
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(on_hang=on_hang, out=self.out, root=ROOT))
        # Before a rank was seen to finish a step, it may take long.
        self.wait("a speed of every rank", lambda: self.ranks_with_speed() == {0, 1, 2})

    def ranks_with_speed(self):
        pods = json.loads(self.run_command("kubectl", "get", "pods", "-o", "json"))["items"]
        texts = [pod["metadata"].get("annotations", {}).get("swell.dev/progress") for pod in pods]
        ranks = [rank for text in texts if text for rank in json.loads(text)["ranks"]]
        return {rank["rank"] for rank in ranks if rank.get("stepsPerSecond", 0) > 0}

    def wait(self, what, holds, seconds=LIMIT_S):
        try:
            super().wait(what, holds, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.job().get('status'), indent=1)}") from None

    def condition(self, name):
        """(whether it holds, its message)"""
        for one in self.job().get("status", {}).get("conditions", []):
            if one["type"] == name:
                return one["status"] == "True", one["message"]
        return False, ""

    def finish(self):
        (self.out / "finish").touch()
        self.wait("the end", lambda: self.condition("Succeeded")[0])

    def test_a_rank_that_sleeps_is_named_and_the_job_recovers(self):
        self.start()
        (self.out / "sleep").touch()
        self.wait("Hung with stacks", lambda: "in load" in self.condition("Hung")[1])
        message = self.condition("Hung")[1]
        self.assertIn("rank 1 (pod train-worker-1 on node-1)", message)
        self.assertNotIn("rank 0", message)
        self.assertRegex(self.run_command("swell", "list"), r"train +TrainingJob +Hung ")
        self.assertIn("rank 1 (pod train-worker-1", self.run_command("swell", "why", "train"))
        self.assertRegex(self.run_command("swell", "health", "train"), r"1 +train-worker-1 .*stuck: .* in load")
        stacks = self.run_command("swell", "stacks", "train", "--rank", "0")
        self.assertIn("in all_reduce", stacks)
        self.assertNotIn("rank 1", stacks)
        self.assertIn("no pod of train reports rank 7",
                      self.run_command("swell", "stacks", "train", "--rank", "7", code=1))
        evidence = self.job()["status"]["hang"]["ranks"]
        self.assertEqual([one["rank"] for one in evidence], [0, 1, 2])
        (self.out / "sleep").unlink()
        self.wait("no longer hung", lambda: not self.condition("Hung")[0])
        self.finish()

    def test_a_stopped_process_is_told_and_its_job_restarts_in_place_of_hanging(self):
        self.start("Restart")
        before = [pod[1] for pod in self.running()]
        self.run_command("kubectl", "exec", "train-worker-2", "--", "python3", "-c",
                         "import json, os, signal, pathlib; "
                         "[os.kill(int(p.name), signal.SIGSTOP) for p in pathlib.Path('/proc').iterdir() "
                         "if p.name.isdigit() and int(p.name) != os.getpid() "
                         "and b'train.py\\0' in (p / 'cmdline').read_bytes()]")
        self.wait("a restart", lambda: self.job()["status"].get("hang", {}).get("restarts") == 1)
        evidence = {one["rank"]: one["stack"] for one in self.job()["status"]["hang"]["ranks"]}
        self.assertIn("is stopped by a signal", evidence[2])
        self.wait("three new pods", lambda: len(self.running()) == 3 and
                  not set(before) & {pod[1] for pod in self.running()})
        self.finish()

    def test_a_save_that_fails_is_told_and_a_suspension_waits_for_a_good_one(self):
        (self.saved / "here").touch()  # a file where the folder of checkpoints should be
        self.start()
        self.wait("the condition", lambda: self.condition("CheckpointFailed")[0])
        self.assertIn("Pod train-worker-0 could not save step", self.condition("CheckpointFailed")[1])
        self.run_command("swell", "suspend", "train")
        self.wait("the refusal", lambda: self.condition("SuspensionWaits")[0])
        self.assertEqual(len(self.running()), 3)
        self.run_command("swell", "suspend", "train", "--force")
        self.wait("the suspension", lambda: self.condition("Suspended")[0] and not self.pods())


if __name__ == "__main__":
    unittest.main()
