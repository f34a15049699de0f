"""What happens to a job must not change what it learns: each step begins with the weights of an undisturbed run.

The matrix is {batches, guard, launcher, torchrun}, a class each, x {a kill, a stopped process, a machine that falls
silent, lack of memory, a full disk, a damaged checkpoint, a kill while saving, a restart of Swell}, a test each. Many
suspensions are in test_suspensions.

RECOVERY_MATRIX=all runs every cell. Without it, two ways to start a script stand for what they share with another:
guard with batches, and torchrun with the launcher, whose agent is torch's, too.

What always holds: the job waits at a step until the test has done what it does, so nothing depends on how fast the
machine is.
"""

import ctypes
import os
import re
import signal
import subprocess
import unittest

from cluster import LIMIT_S
from recovery import RecoveryTest

_CLONE_NEWNS, _MS_PRIVATE, _MS_REC = 0x20000, 1 << 18, 1 << 14
_EVERY = 5  # steps between two saves, where the job saves
_HANG = "onHang: Restart, hangSeconds: 3"


def setUpModule():
    """What this process mounts from now on is seen by its children alone, and ends with them."""
    libc = ctypes.CDLL(None)
    if libc.unshare(_CLONE_NEWNS) == 0:
        libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def run(*words):
    return subprocess.run(words, check=False, capture_output=True, text=True)


class Recoveries:
    """The tests of all four."""

    def test_a_process_is_killed(self):
        self.start()
        for until, victim in ((20, 1), (30, 0)):
            # It loses the step under way.
            os.kill(self.processes()[victim], signal.SIGKILL)
            self.go_on(until)
            self.wait_step(until)
            self.wait_all()
        self.finish()
        self.assertLessEqual(self.repeated(), 2)

    def test_swell_is_killed_and_started_again(self):
        self.start()
        self.cluster.send_signal(signal.SIGKILL)
        self.cluster.wait(LIMIT_S)
        self.cluster.stdout.close()
        self.go_on(20)
        self.wait_step(20)
        self.up()
        self.assertRegex(self.run_command("swell", "list"), r"\n *train +TrainingJob +Running ")
        self.assertEqual(self.finish(), list(range(self.total)))

    def test_a_process_is_killed_while_it_saves(self):
        self.start(every=_EVERY)
        (self.out / "die").touch()
        self.go_on(17)
        self.wait("the kill", lambda: not (self.out / "die").exists())
        self.wait_step(17)
        self.wait_all()
        # The copy in memory was whole.
        self.finish()
        self.assertLessEqual(self.repeated(), 3)
        self.assertEqual([one.name for one in (self.disk / "checkpoints").iterdir() if "tmp" in one.name], [])

    def test_a_checkpoint_is_damaged(self):
        self.start()
        for until in (20, 30):
            self.suspend()
            older = self.saved()
            self.run_command("swell", "resume", "train")
            self.go_on(until)
            self.wait_step(until)
            self.wait_all()
        self.suspend()
        newest = self.saved()
        (state,) = (self.disk / "checkpoints").glob(f"step-{newest:012d}-*.state")
        os.truncate(state, 1000)
        self.run_command("swell", "resume", "train")
        self.wait("the steps since the older one", lambda: self.repeated() == newest - older)
        self.assertIn(f"skipping checkpoint of step {newest}: 1000 bytes instead of", self.logs())
        self.finish()
        self.assertEqual(self.repeated(), newest - older)

    def test_the_disk_is_full(self):
        if run("mount", "-t", "tmpfs", "-o", "size=40k,mode=777", "none", self.disk).returncode != 0:
            self.skipTest("only root can mount a disk")
        self.addCleanup(run, "umount", "--lazy", self.disk)
        self.start(every=_EVERY)
        self.wait("it is told", lambda: self.condition("CheckpointFailed")[0])
        told = self.condition("CheckpointFailed")[1]
        self.assertRegex(told, "could not save step .*: No space left on device. Training continues")
        self.assertIn(told, self.run_command("swell", "why", "train"))
        self.assertRegex(self.run_command("swell", "list"), r"\n *train +TrainingJob +Running ")
        # What is in memory outlives a process.
        os.kill(self.processes()[1], signal.SIGKILL)
        self.go_on(18)
        self.wait_step(18)
        self.wait_all()
        self.assertEqual(run("mount", "-o", "remount,size=10m", self.disk).returncode, 0)
        self.go_on(30)
        self.wait_step(30)
        self.wait("a save went well", lambda: not self.condition("CheckpointFailed")[0])
        self.finish()
        self.assertLessEqual(self.repeated(), 1)

    def suspend(self):
        self.run_command("swell", "suspend", "train")
        self.wait("it is suspended", lambda: self.condition("Suspended")[0] and not self.pods())

    def logs(self):
        return "".join(self.run_command("kubectl", "logs", pod["metadata"]["name"], code=None) for pod in self.pods())

    def cut_off(self, process):
        """The pod of that process reaches no other pod from now on: frames go to a card that does not exist.

        Returns what mends it.
        """
        addresses = [pod["status"].get("podIP") for pod in self.pods()]
        inside = ("nsenter", "-t", str(process), "-n", "ip")
        found = re.search(r"^\d+: (?!lo)(\S+) +inet (\S+)/", run(*inside, "-o", "-4", "addr").stdout, re.M)
        if found is None or None in addresses or os.geteuid() != 0:
            self.skipTest("pods share this machine's network here, so none can vanish")
        link, own = found.groups()
        for address in addresses:
            if address != own:
                done = run(*inside, "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", link, "nud",
                           "permanent")
                self.assertEqual(done.returncode, 0, done.stderr)
        return lambda: [run(*inside, "neigh", "del", one, "dev", link) for one in addresses if one != own]


class InMemory(Recoveries):
    """The members that are left continue without the one that was lost."""

    def test_a_member_that_needs_too_much_memory_gets_more(self):
        self.start()
        (self.out / "eat").touch()
        self.go_on(20)
        self.wait("more memory", lambda: self.condition("MemoryRaised")[0])
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
        self.finish()
        self.assertLessEqual(self.repeated(), 2)

    def test_a_machine_falls_silent(self):
        # Three members: of two that do not hear each other, both would continue until they do.
        self.members = 3
        self.start()
        mend = self.cut_off(self.processes()[2])
        self.go_on(20)
        self.wait_step(20)
        self.assertIn("lost a peer (rank 2 does not answer)", self.logs())
        mend()
        self.go_on(30)
        self.wait_step(30)
        self.wait_all()
        self.finish()
        self.assertLessEqual(self.repeated(), 2)


class Together(Recoveries):
    """torch's agent starts all processes again. Where one does not end, Swell's watch over hangs restarts the job."""

    def test_a_process_needs_too_much_memory(self):
        self.start()
        before = self.processes()[1]
        (self.out / "eat").touch()
        self.go_on(20)
        self.wait("another process", lambda: self.processes().get(1, before) != before)
        self.wait_step(20)
        self.wait_all()
        self.finish()
        self.assertLessEqual(self.repeated(), 2)

    def test_a_process_is_stopped(self):
        self.start_that_restarts()
        victim = self.processes()[1]
        os.kill(victim, signal.SIGSTOP)
        self.go_on(17)
        self.restarted("is stopped by a signal")

    def test_a_machine_falls_silent(self):
        self.start_that_restarts()
        self.cut_off(self.processes()[1])
        self.go_on(17)
        self.restarted("in backward")

    def start_that_restarts(self):
        """It waits in step 16, with a checkpoint of step 15 on disk."""
        self.start(every=_EVERY, grace=2, health=_HANG)
        self.go_on(16)
        self.wait_step(16)
        self.wait("a checkpoint", lambda: self.saved() == 15)
        self.before = self.processes()

    def restarted(self, evidence):
        """By Swell, from the checkpoint, because all ranks hang."""
        self.wait("a rank that is in the step", lambda: (self.out / "passed").read_text() == "16")
        self.go_on(16)
        self.wait("a restart", lambda: self.job()["status"].get("hang", {}).get("restarts") == 1)
        stacks = [one.get("stack", "") for one in self.job()["status"]["hang"]["ranks"]]
        self.assertTrue(any(evidence in stack for stack in stacks), stacks)
        self.assertIn("is restarting because it hangs, 1 of 3 times", self.run_command("swell", "events", "train"))
        self.wait("other processes", lambda: len(self.processes()) == 2 and
                  not set(self.processes().values()) & set(self.before.values()))
        self.wait("two pods", lambda: "train runs: 2 of 2 pods" in self.run_command("swell", "why", "train"))
        self.assertRegex(self.run_command("swell", "list"), r"\n *train +TrainingJob +Running ")
        self.go_on(30)
        self.wait_step(30)
        self.finish()
        self.assertLessEqual(self.repeated(), _EVERY)


class Briefly:
    """The tests that are run unless all are asked for."""

    cells = ("test_a_process_is_killed", "test_swell_is_killed_and_started_again")

    def setUp(self):
        if os.environ.get("RECOVERY_MATRIX") != "all" and self._testMethodName not in self.cells:
            self.skipTest("RECOVERY_MATRIX=all runs it")
        super().setUp()


class BatchesTest(InMemory, RecoveryTest):
    pass


class GuardTest(Briefly, InMemory, RecoveryTest):
    loop = "guard"


class LauncherTest(Together, RecoveryTest):
    launcher = ("-m", "swell.launch")


class TorchrunTest(Briefly, Together, RecoveryTest):
    launcher = ("-m", "torch.distributed.run")


if __name__ == "__main__":
    unittest.main()
