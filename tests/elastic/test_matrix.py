"""What happens to a job must not change what it learns: {batches, launcher, torchrun} x {a kill, a stopped process,
lack of memory, a restart of Swell, suspensions}. Each step begins with the weights of an undisturbed run.

The rest of the matrix is in tests/sdk: disks, damaged checkpoints and kills while saving in test_disk, a machine that
falls silent in test_silence, members of guarded loops in test_crash. test_chaos has guarded loops and Swell's end.

What always holds: the job waits at a step until the test has done what it does, so nothing depends on how fast the
machine is.
"""

import os
import signal
import subprocess
import sys
import unittest

from cluster import BIN, LIMIT_S, ROOT, ClusterTest

ROUNDS = int(os.environ.get("SUSPEND_ROUNDS", "4"))
STEPS = 60 + ROUNDS
GRACE_S = 60
SCRIPT = f'''
import os, time
from pathlib import Path
import swell
job = swell.Job(backend="gloo", checkpoint_seconds=0)
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
out = Path(os.environ["OUT"])
model = job.parallel(torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 5)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(3)
data = torch.utils.data.TensorDataset(torch.randn(24 * {STEPS}, 20, generator=generator),
                                      torch.randn(24 * {STEPS}, 5, generator=generator))

def somebody_joins():
    return job._group is not None and job.env.leader and bool(job._group._client.waiting)

for batch, target in job.batches(data, 24, 1, {{"model": model, "optimizer": optimizer}}):
    weights = sum(parameter.double().sum().item() for parameter in model.parameters())
    if job.env.leader:
        with open(out / "lines", "a") as lines:
            lines.write(f"{{job.step}} {{weights:.9f}} {{job.env.world}}\\n")
    while job.step >= int((out / "until").read_text()) and not job.notice.requested and not somebody_joins():
        time.sleep(0.02)
    if job.env.rank == 1 and (out / "eat").exists():
        (out / "eat").unlink()
        bytes_ = bytearray(1 << 30)
        bytes_[::4096] = b"x" * len(bytes_[::4096])
    optimizer.zero_grad()
    ((model(batch) - target) ** 2).mean().backward()
    optimizer.step()
'''
JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  roles:
    worker:
      replicas: 2
      restartPolicy: OnFailure
      elastic: {{minReplicas: 1, maxReplicas: 2}}
      template:
        spec:
          terminationGracePeriodSeconds: {grace}
          containers:
          - name: main
            image: python
            command: [{command}{out}/train.py]
            env:
            - {{name: PYTHONPATH, value: {root}/sdk/python}}
            - {{name: OMP_NUM_THREADS, value: '1'}}
            - {{name: OUT, value: {out}}}
            resources: {{limits: {{nvidia.com/gpu: 1, memory: 900Mi}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}]
          volumes: [{{name: out, hostPath: {{path: {out}}}}}]
"""


class Recovery:
    """The tests of all kinds; each kind is a class below."""

    launcher = ()

    def setUp(self):
        super().setUp()
        self.out = self.steps_file.parent
        (self.out / "train.py").write_text(SCRIPT)
        (self.out / "lines").touch()
        (self.out / "lines").chmod(0o666)  # pods are different users here

    def go_on(self, until):
        (self.out / "next").write_text(str(until))
        (self.out / "next").rename(self.out / "until")

    def start(self):
        self.go_on(0)
        command = ", ".join(("python3", *self.launcher, ""))
        self.run_command("kubectl", "apply", "-f", "-",
                         stdin=JOB.format(command=command, out=self.out, root=ROOT, grace=GRACE_S))
        self.wait("two processes", lambda: len(self.processes()) == 2)
        self.go_on(10)
        self.wait_step(10)
        self.wait_both()

    def lines(self):
        rows = [line.split() for line in (self.out / "lines").read_text().splitlines()]
        return [(int(row[0]), float(row[1])) for row in rows if len(row) == 3]

    def wait_both(self):
        """Until both train together. A member that comes is let in with a step."""
        self.wait("both in the group", lambda: (self.out / "lines").read_text().endswith(" 2\n"))

    def wait_step(self, step):
        self.wait(f"step {step}", lambda: self.lines() and self.lines()[-1][0] >= step)

    def processes(self):
        """{rank: process} of the scripts, without the launchers."""
        found = {}
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{entry}/environ", "rb") as file:
                    values = dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
            except (OSError, ValueError):
                continue
            script = str(self.out / "train.py").encode()
            if b"python" in words[0] and script in words[1:3] and b"-m" not in words and b"RANK" in values:
                found[int(values[b"RANK"])] = int(entry)
        return found

    def finish(self):
        """To the end; each step of it as in a run that nothing happened to."""
        self.go_on(STEPS + 1)
        self.wait("its end", lambda: not self.processes() and self.phase() == "Succeeded")
        calm = self.folder / "calm"
        calm.mkdir()
        (calm / "until").write_text(str(STEPS + 1))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWELL_", "PET_"))}
        environment.update(OUT=str(calm), PYTHONPATH=str(ROOT / "sdk" / "python"), SWELL_MEMORY_DIR=str(calm),
                           SWELL_CHECKPOINT_DIR=str(calm / "checkpoints"))
        subprocess.run([sys.executable, self.out / "train.py"], env=environment, check=True, timeout=LIMIT_S)
        expected = dict((int(step), float(weights)) for step, weights, _ in
                        (line.split() for line in (calm / "lines").read_text().splitlines()))
        done = self.lines()
        self.assertEqual(sorted(expected), list(range(STEPS)))
        # A leader may end between a step and its line.
        self.assertLessEqual(len(set(expected) - {step for step, _ in done}), 1)
        for step, weights in done:
            self.assertAlmostEqual(weights, expected[step], places=4, msg=f"step {step}")
        return [step for step, _ in done]

    def phase(self):
        return self.job().get("status", {}).get("phase")

    def test_a_process_is_killed(self):
        self.start()
        for until, victim in ((20, 1), (30, 0)):
            # It loses the step under way.
            os.kill(self.processes()[victim], signal.SIGKILL)
            self.go_on(until)
            self.wait_step(until)
            self.wait_both()
        steps = self.finish()
        self.assertLessEqual(len(steps) - len(set(steps)), 2)

    def test_swell_is_killed_and_started_again(self):
        self.start()
        self.cluster.send_signal(signal.SIGKILL)
        self.cluster.wait(LIMIT_S)
        self.cluster.stdout.close()
        self.go_on(20)
        self.wait_step(20)
        self.up()
        self.assertEqual(self.finish(), list(range(STEPS)))

    def test_suspensions_end_within_their_grace(self):
        """As many as SUSPEND_ROUNDS says. Each comes in the middle of a step, which is done and saved."""
        self.start()
        for step in range(11, 11 + ROUNDS):
            self.run_command("swell", "suspend", "train")
            self.wait("no process within the grace", lambda: not self.processes() and not self.pods(), GRACE_S - 10)
            self.run_command("swell", "resume", "train")
            self.wait_step(step)
        # Each step was done once; the line of one that a suspension came into is written once more.
        steps = self.finish()
        self.assertLessEqual(len(steps) - len(set(steps)), ROUNDS)


class BatchesTest(Recovery, ClusterTest):
    def test_a_member_that_needs_too_much_memory_gets_more(self):
        self.start()
        (self.out / "eat").touch()
        self.go_on(20)
        self.wait("more memory", lambda: any(one["type"] == "MemoryRaised" and one["status"] == "True"
                                             for one in self.job()["status"].get("conditions", [])))
        self.assertRegex(self.run_command("swell", "why", "train") + self.run_command("swell", "events", "train"),
                         "was killed at its limit of 900Mi")
        self.finish()

    def test_a_process_that_is_stopped_is_left_behind(self):
        self.start()
        victim = self.processes()[1]
        os.kill(victim, signal.SIGSTOP)
        self.go_on(20)
        self.wait_step(20)
        os.kill(victim, signal.SIGCONT)
        steps = self.finish()
        self.assertLessEqual(len(steps) - len(set(steps)), 2)


class LauncherTest(Recovery, ClusterTest):
    # A worker that is killed for lack of memory is a worker that is killed: the launcher lives, and starts it again.
    launcher = ("-m", "swell.launch")


class TorchrunTest(Recovery, ClusterTest):
    launcher = ("-m", "torch.distributed.run")


if __name__ == "__main__":
    unittest.main()
