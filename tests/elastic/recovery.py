"""A job whose training is matrix_steps.py, as real pods: what test_matrix and test_suspensions share.

The job waits at a step until the test has done what it does, so nothing depends on how fast the machine is. What always
holds: `finish` compares the weights before each step with those of a run that nothing happened to.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster import LIMIT_S, ROOT, ClusterTest

SCRIPT = Path(__file__).with_name("matrix_steps.py")
JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  health: {{{health}}}
  roles:
    worker:
      replicas: {members}
      restartPolicy: OnFailure
      elastic: {{minReplicas: 1, maxReplicas: {members}}}
      template:
        spec:
          terminationGracePeriodSeconds: {grace}
          containers:
          - name: main
            image: python
            command: [{command}{out}/train.py, '{steps}', '{pace}']
            env:
            - {{name: PYTHONPATH, value: {root}/sdk/python}}
            - {{name: OMP_NUM_THREADS, value: '1'}}
            - {{name: OUT, value: {out}}}
            - {{name: LOOP, value: {loop}}}
            - {{name: EVERY, value: '{every}'}}
            - {{name: SWELL_CHECKPOINT_DIR, value: {out}/disk/checkpoints}}
            resources: {{limits: {{nvidia.com/gpu: 1, memory: 900Mi}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}]
          volumes: [{{name: out, hostPath: {{path: {out}}}}}]
"""


@functools.cache
def undisturbed(steps, loop):
    """{step: weights before it} of one process without a cluster."""
    with tempfile.TemporaryDirectory(prefix="swell-calm-") as folder:
        out = Path(folder)
        (out / "until").write_text(str(steps + 1))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWELL_", "PET_"))}
        environment.update(OUT=folder, LOOP=loop, PYTHONPATH=str(ROOT / "sdk" / "python"), SWELL_MEMORY_DIR=folder,
                           SWELL_CHECKPOINT_DIR=str(out / "checkpoints"))
        subprocess.run([sys.executable, SCRIPT, str(steps), "0"], env=environment, check=True, timeout=LIMIT_S)
        rows = [line.split() for line in (out / "lines").read_text().splitlines()]
    return {int(step): float(weights) for step, weights, _ in rows}


class RecoveryTest(ClusterTest):
    """A class for each way to start a script derives from this."""

    launcher = ()  # the words between python3 and the script
    loop = "batches"
    members = 2
    total = 60  # steps
    step_seconds = 0

    def setUp(self):
        super().setUp()
        self.out = self.steps_file.parent
        shutil.copy(SCRIPT, self.out / "train.py")
        (self.out / "lines").touch()
        (self.out / "lines").chmod(0o666)  # pods are different users here
        self.disk = self.out / "disk"
        self.disk.mkdir()
        self.disk.chmod(0o777)

    def go_on(self, until):
        (self.out / "next").write_text(str(until))
        (self.out / "next").rename(self.out / "until")

    def start(self, every=0, grace=60, health=""):
        """Until all train together and wait before step 10."""
        self.go_on(0)
        command = ", ".join(("python3", *self.launcher, ""))
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(
            command=command, out=self.out, root=ROOT, grace=grace, health=health, loop=self.loop, every=every,
            members=self.members, steps=self.total, pace=self.step_seconds))
        self.wait("all processes", lambda: len(self.processes()) == self.members)
        self.go_on(10)
        self.wait_step(10)
        self.wait_all()

    def lines(self):
        """(step, weights before it) as rank 0 wrote them."""
        rows = [line.split() for line in (self.out / "lines").read_text().splitlines()]
        return [(int(row[0]), float(row[1])) for row in rows if len(row) == 3]

    def repeated(self):
        steps = [step for step, _ in self.lines()]
        return len(steps) - len(set(steps))

    def wait_all(self):
        """Until all members train together. One that comes is let in with a step."""
        self.wait("all in the group", lambda: (self.out / "lines").read_text().endswith(f" {self.members}\n"))

    def wait_step(self, step):
        self.wait(f"step {step}", lambda: self.lines() and self.lines()[-1][0] >= step)

    def processes(self):
        """{rank: process} of the scripts, without the launchers."""
        found = {}
        script = str(self.out / "train.py").encode()
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if b"python" not in words[0] or script not in words[1:3] or b"-m" in words:
                    continue
                with open(f"/proc/{entry}/environ", "rb") as file:
                    values = dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
            except (OSError, ValueError):
                continue
            if b"RANK" in values:
                found[int(values[b"RANK"])] = int(entry)
        return found

    def saved(self):
        """The step of the newest checkpoint on disk; 0 if there is none."""
        manifests = sorted((self.disk / "checkpoints").glob("step-*.json"))
        return json.loads(manifests[-1].read_text())["step"] if manifests else 0

    def finish(self):
        """To the end. Each step of it as in a run that nothing happened to. Returns the steps, in their order."""
        self.go_on(self.total + 1)
        self.wait("its end", lambda: not self.processes() and self.phase() == "Succeeded")
        self.assertRegex(self.run_command("swell", "list"), r"\n *train +TrainingJob +Succeeded ")
        self.assertRegex(self.run_command("swell", "why", "train"), "Succeeded")
        expected, done = undisturbed(self.total, self.loop), self.lines()
        self.assertEqual(sorted(expected), list(range(self.total)))
        # A leader may end between a step and its line.
        self.assertLessEqual(len(set(expected) - {step for step, _ in done}), 1)
        for step, weights in done:
            # Two ranks sum in another order than one, and what that changes grows with the steps.
            self.assertAlmostEqual(weights, expected[step], delta=5e-5 * (1 + step / 50), msg=f"step {step}")
        return [step for step, _ in done]

    def phase(self):
        return self.job().get("status", {}).get("phase")

    def condition(self, name):
        """(whether it holds, its message)"""
        for one in self.job().get("status", {}).get("conditions", []):
            if one["type"] == name:
                return one["status"] == "True", one["message"]
        return False, ""

    def wait(self, what, holds, seconds=LIMIT_S):
        try:
            super().wait(what, holds, seconds)
        except AssertionError as error:
            conditions = [one["message"] for one in self.job().get("status", {}).get("conditions", [])]
            pods = [pod["metadata"]["name"] for pod in self.pods()]
            logs = [self.run_command("kubectl", "logs", pod, "--tail=30", code=None) for pod in pods]
            stacks = self.run_command("swell", "stacks", "train", code=None)
            raise AssertionError("\n".join([str(error), str(self.lines()[-3:]), *conditions, *logs, stacks])) from None
