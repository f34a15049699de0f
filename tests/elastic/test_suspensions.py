"""A job that is suspended and resumed again and again saves within its grace each time, and continues where it stopped.

SUSPEND_CYCLES says how often; without it, 15 times for the way that most jobs start and 6 times for the others. The job
is suspended while it waits in a step, while it does steps, and while it starts, in turn. What a suspension takes is
from the command to the end of the last process, launchers included. SUSPEND_TIMES names a file that gets these seconds,
a line for each cycle: "CLASS CYCLE WHILE SECONDS STEP".
"""

import os
import subprocess
import time
import unittest

from cluster import BIN, until
from recovery import RecoveryTest

CYCLES = int(os.environ.get("SUSPEND_CYCLES", "0"))
TIMES = os.environ.get("SUSPEND_TIMES")
GRACE_S = 30
_LONG_S = 10  # who takes longer is asked what it does
_RUNNING_STEPS = 20


class Suspensions:
    cycles = CYCLES or 6
    step_seconds = 0.01

    @property
    def total(self):
        return 60 + 10 * self.cycles  # it runs in a third of the cycles

    def test_each_ends_within_its_grace_and_no_step_is_lost_or_done_twice(self):
        self.start(grace=GRACE_S)
        gate, saved = 10, 0
        for cycle in range(self.cycles):
            doing = ("waits", "runs", "starts")[cycle % 3]
            if doing == "starts":
                self.wait("it starts", lambda: len(self.running()) == 2)
            else:
                gate = max(gate, saved)
                self.wait_step(gate)
                self.wait_all()
            if doing == "runs":
                gate = self.lines()[-1][0] + _RUNNING_STEPS
                self.go_on(gate)
            seconds = self.suspend()
            begun, saved = self.lines()[-1][0], self.saved()
            self.note(cycle, doing, seconds, saved)
            self.assertLess(seconds, GRACE_S - 1, f"cycle {cycle}, suspended while it {doing}")
            # A member that starts may wait for its first step, which is not begun in an orderly way then.
            self.assertIn(saved, (begun + 1, begun) if doing == "starts" else (begun + 1,), f"cycle {cycle}: {doing}")
            self.run_command("swell", "resume", "train")
        self.assertEqual(self.finish(), list(range(self.total)), "a step was lost or done twice")

    def suspend(self):
        """Seconds until no process is left."""
        begin = time.monotonic()
        self.run_command("swell", "suspend", "train")
        asked = None
        if not until(self.ended, _LONG_S, pause=0.05):
            # Its stacks go with its pods.
            asked = subprocess.Popen([BIN / "swell", "stacks", "train"], env=self.environment, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            until(self.ended, 2 * GRACE_S, pause=0.05)
        seconds = time.monotonic() - begin
        if asked:
            print(asked.communicate()[0], flush=True)
        self.wait("it is suspended", lambda: self.condition("Suspended")[0] and not self.pods())
        return seconds

    def ended(self):
        return not self.living()

    def living(self):
        """The processes of the job, launchers too."""
        script = str(self.out / "train.py").encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"python" in words[0] and script in words:
                found.append(int(entry))
        return found

    def note(self, *words):
        if TIMES:
            with open(TIMES, "a", encoding="ascii") as file:
                print(type(self).__name__, *words, file=file)


class BatchesTest(Suspensions, RecoveryTest):
    cycles = CYCLES or 15


class GuardTest(Suspensions, RecoveryTest):
    loop = "guard"


class LauncherTest(Suspensions, RecoveryTest):
    launcher = ("-m", "swell.launch")


class TorchrunTest(Suspensions, RecoveryTest):
    launcher = ("-m", "torch.distributed.run")


if __name__ == "__main__":
    unittest.main()
