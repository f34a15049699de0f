"""Kills while saving, full disks, damaged files, restarts by the launcher: what was saved is never lost."""

import atexit
import ctypes
import glob
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import unittest

import disk_worker
import support
import torch  # before the first fork, because the import takes seconds
from disk_worker import STEPS

# Newer torch imports half of itself when the first optimizer is made.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)

_CLONE_NEWNS, _MS_PRIVATE, _MS_REC = 0x20000, 1 << 18, 1 << 14


def _mount_small_disk(path):
    """In a namespace of this process, so it ends with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.unshare(_CLONE_NEWNS) == 0 and libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
    if not done or libc.mount(b"none", path.encode(), b"tmpfs", 0, b"size=40k") != 0:
        raise OSError(ctypes.get_errno(), "cannot mount a small disk")


class DiskTest(support.FolderTest):
    """With `Job.batches`."""

    loop = "batches"

    def setUp(self):
        super().setUp()
        for name in ("memory", "report", "disk"):
            os.mkdir(self.path(name))

    def environment(self, folder, extra):
        return support.clean_environment(
            SWELL_CHECKPOINT_DIR=self.path(folder),
            SWELL_MEMORY_DIR=self.path("memory"),
            SWELL_REPORT_FILE=self.path("report", "report.json"),
            SWELL_TERMINATION_LOG=self.path("message"),
            OMP_NUM_THREADS=1,
            LOOP=self.loop,
            **extra,
        )

    def run_worker(self, code, folder="checkpoints", **extra):
        """The output of a training that begins where the one before ended."""
        log = self.path("log")
        process = multiprocessing.get_context("fork").Process(target=self._train, args=(log, folder, extra))
        process.start()
        process.join(support.WAIT_SECONDS)
        self.addCleanup(process.kill)
        with open(log, encoding="utf-8") as file:
            output = file.read()
        self.assertEqual(process.exitcode, code, output)
        return output

    def _train(self, log, folder, extra):
        os.environ.clear()
        os.environ.update(self.environment(folder, extra))
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        if folder == "disk":
            _mount_small_disk(self.path("disk"))
        atexit._clear()
        disk_worker.main()
        atexit._run_exitfuncs()

    def steps(self, output):
        return {int(step): float(weights) for step, weights in re.findall(r"^before (\d+) weights (\S+)", output, re.M)}

    def assert_continues(self, first, second, at):
        """The second run begins `at` that step, and every step has the weights of an undisturbed run."""
        expected = self.steps(self.run_worker(0, folder=f"undisturbed-{at}-{len(os.listdir(self.folder))}"))
        self.assertEqual(sorted(expected), list(range(STEPS)))
        again = self.steps(second)
        self.assertEqual(min(again), at)
        for step, weights in {**self.steps(first), **again}.items():
            self.assertAlmostEqual(weights, expected[step], places=4, msg=f"step {step}")
        self.assertEqual(max(again), STEPS - 1)

    def test_a_kill_while_the_state_is_copied_leaves_the_copy_before(self):
        first = self.run_worker(-signal.SIGKILL, SAVE_AT=10, KILL_IN_THREAD="MainThread")
        self.assert_continues(first, self.run_worker(0), 10)

    def test_a_kill_while_the_checkpoint_is_written_leaves_the_copy_in_memory(self):
        first = self.run_worker(-signal.SIGKILL, SAVE_AT=10, KILL_IN_THREAD="swell-saving")
        self.assert_continues(first, self.run_worker(0), 20)

    def test_without_the_memory_a_kill_while_writing_leaves_the_checkpoint_before(self):
        first = self.run_worker(-signal.SIGKILL, SAVE_AT=10, KILL_IN_THREAD="swell-saving")
        shutil.rmtree(self.path("memory"))
        os.mkdir(self.path("memory"))
        second = self.run_worker(0)
        self.assert_continues(first, second, 10)
        self.assertEqual(glob.glob(self.path("checkpoints", ".swell-tmp-*")), [])

    def test_a_truncated_checkpoint_is_skipped(self):
        first = self.run_worker(-signal.SIGKILL, SAVE_AT=10, KILL_AT=25)
        shutil.rmtree(self.path("memory"))
        os.mkdir(self.path("memory"))
        (newest,) = glob.glob(self.path("checkpoints", "step-000000000020-*.state"))
        os.truncate(newest, 1000)
        second = self.run_worker(0)
        self.assertIn("skipping checkpoint of step 20: 1000 bytes instead of", second)
        self.assert_continues(first, second, 10)

    def test_a_removed_checkpoint_folder_starts_anew_whatever_is_in_memory(self):
        self.run_worker(-signal.SIGKILL, SAVE_AT=10, KILL_AT=25)
        shutil.rmtree(self.path("checkpoints"))
        self.assertEqual(min(self.steps(self.run_worker(0))), 0)

    def test_a_training_that_ends_leaves_nothing_in_memory(self):
        self.run_worker(0, SAVE_AT=10)
        self.assertEqual(os.listdir(self.path("memory")), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a disk")
    def test_a_full_disk_is_reported_and_the_training_goes_on(self):
        output = self.run_worker(0, "disk", SAVE_AT=10)
        self.assertIn("checkpoint of step 10 not saved, training continues: No space left on device", output)
        self.assertEqual(sorted(self.steps(output)), list(range(STEPS)))
        self.assertNotIn("Traceback", output)

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a disk")
    def test_a_suspension_that_cannot_save_does_not_claim_it(self):
        output = self.run_worker(138, "disk", NOTICE_AT=15)
        self.assertNotIn("checkpoint saved", output)
        with open(self.path("report", "report.json"), encoding="utf-8") as file:
            error = json.load(file)["saveError"]
        self.assertEqual((error["step"], error["reason"]), (15, f"{self.path('disk')}: No space left on device"))
        with open(self.path("message"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"notSaved": {"step": 15}})

    def launched(self, module, victim, **extra):
        """The lines of both attempts of two ranks, of which one is killed in step 20."""
        folder = f"launched-{victim}"
        os.mkdir(self.path(folder))
        options = ("-m", module, "--standalone", "--nproc_per_node", "2", "--max_restarts", "1")
        extra = {"KILL_AT": 20, "KILL_RANK": victim, "PET_MONITOR_INTERVAL": 0.2, **extra}
        process = support.start(self, (*options, disk_worker.__file__), **self.environment(folder, extra))
        code, output = support.finish(process)
        self.assertEqual(code, 0, output)
        first, second = re.split(r"^before 20 ", output, maxsplit=1, flags=re.M)
        return first, "before 20 " + second

    def test_the_launcher_starts_again_from_the_memory_of_a_rank_that_is_left(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                # The gradients of step 20 were summed before the kill, so the other rank has finished it.
                self.assert_continues(*self.launched("swell.launch", victim), 20)

    @unittest.skipUnless(torch.__version__.startswith("1."), "torchrun 2.15 may restart with addresses of the attempt "
                         "before and fail, with a script of torch alone, too")
    def test_torchrun_starts_again_from_the_memory_of_a_rank_that_is_left(self):
        # As in pods on Python images; see the SDK's README.
        self.assert_continues(*self.launched("torch.distributed.run", 1, PET_REDIRECTS="9:1", PET_TEE="9:1"), 20)

    def test_with_the_launcher_what_was_saved_survives_the_memory(self):
        """Both ranks die with the launcher, and the copies in memory with their machine."""
        first = self.launched_and_killed("swell.launch")
        shutil.rmtree(self.path("memory"))
        os.mkdir(self.path("memory"))
        (newest,) = glob.glob(self.path("launched", "step-000000000020-*.state"))
        os.truncate(newest, 1000)
        options = ("-m", "swell.launch", "--standalone", "--nproc_per_node", "2")
        code, second = support.finish(support.start(self, (*options, disk_worker.__file__),
                                                    **self.environment("launched", {"SAVE_AT": 10})))
        self.assertEqual(code, 0, second)
        self.assertIn("skipping checkpoint of step 20: 1000 bytes instead of", second)
        self.assert_continues(first, second, 10)

    def launched_and_killed(self, module):
        options = ("-m", module, "--standalone", "--nproc_per_node", "2", "--max_restarts", "0")
        extra = {"SAVE_AT": 10, "KILL_AT": 25, "PET_MONITOR_INTERVAL": 0.2}
        process = support.start(self, (*options, disk_worker.__file__), **self.environment("launched", extra))
        code, output = support.finish(process)
        self.assertNotEqual(code, 0, output)
        return output


class GuardedDiskTest(DiskTest):
    """With `Job.guard` around each step of a loop of the script's own."""

    loop = "guard"


if __name__ == "__main__":
    unittest.main()
