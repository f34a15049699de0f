"""When `Job.step_done` saves: as often as the manifest says, by rank 0's clock, between two steps."""

import errno
import json
import os
import threading
import unittest
from datetime import timedelta
from unittest import mock

import support
import swell
import torch
from swell import memory, pack, saving


class SavingTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        environ = support.clean_environment(SWELL_CHECKPOINT_DIR=self.path("checkpoints"), SWELL_MEMORY_DIR=self.folder)
        patch = mock.patch.dict(os.environ, environ, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def job(self, **options):
        return swell.Job(clock=lambda: self.now, **options)

    def steps(self, job, first, last, seconds):
        for step in range(first, last + 1):
            self.now += seconds
            self.assertFalse(job.step_done(step, {"step": step}))
            job.flush()

    def test_by_default_it_saves_as_often_as_pays(self):
        job = self.job()
        self.steps(job, 1, 2, 10.0)
        self.assertIsNone(job.checkpoints.latest())
        self.steps(job, 3, 3, 10.0)
        self.assertEqual(job.checkpoints.latest(), 3)
        # A second of stall and a loss a day: 2 * 1 s * 86400 s = 416 s squared.
        job._saver._stall_seconds = 1.0
        self.steps(job, 4, 44, 10.0)
        self.assertEqual(job.checkpoints.latest(), 3)
        self.steps(job, 45, 45, 10.0)
        self.assertEqual(job.checkpoints.latest(), 45)

    def test_the_interval_has_bounds(self):
        saver = self.job()._saver
        for stall, members, seconds in ((1e-6, 1, 30.0), (1e6, 1, 1800.0), (1.0, 4, 207.8), (None, 1, 30.0)):
            saver._stall_seconds = stall
            self.assertAlmostEqual(saver.interval(members), seconds, places=1)
        saver._write_seconds = 100.0
        self.assertEqual(saver.interval(1), 30.0)
        saver._stall_seconds = 1e-6
        self.assertEqual(saver.interval(1), 400.0)

    def test_with_an_interval_of_zero_it_saves_only_when_the_job_must_stop(self):
        with mock.patch.dict(os.environ, SWELL_CHECKPOINT_SECONDS="0"):
            job = self.job()
        self.steps(job, 1, 50, 1000.0)
        self.assertIsNone(job.checkpoints.latest())

    def test_it_saves_as_often_as_the_manifest_says(self):
        with mock.patch.dict(os.environ, SWELL_CHECKPOINT_SECONDS="60"):
            job = self.job()
        self.steps(job, 1, 5, 10.0)
        self.assertIsNone(job.checkpoints.latest())
        self.steps(job, 6, 11, 10.0)
        self.assertEqual(job.checkpoints.latest(), 6)
        self.steps(job, 12, 12, 10.0)
        self.assertEqual(job.checkpoints.latest(), 12)

    def test_a_save_by_the_script_counts(self):
        job = self.job(checkpoint_seconds=60)
        self.steps(job, 1, 5, 10.0)
        job.save(5, {"step": 5})
        self.steps(job, 6, 10, 10.0)
        self.assertEqual(job.checkpoints.latest(), 5)
        self.steps(job, 11, 11, 10.0)
        self.assertEqual(job.checkpoints.latest(), 11)

    def test_after_a_failed_save_it_retries_an_interval_later(self):
        job = self.job(checkpoint_seconds=60)
        job._memory.run = job.checkpoints.run()
        with mock.patch.object(job.checkpoints, "save_copy", side_effect=OSError(28, "No space left")) as save:
            self.steps(job, 1, 11, 10.0)
            self.assertEqual(save.call_count, 1)
            self.steps(job, 12, 12, 10.0)
            self.assertEqual(save.call_count, 2)

    def test_an_interval_that_is_not_a_number_is_ignored(self):
        with mock.patch.dict(os.environ, SWELL_CHECKPOINT_SECONDS="soon"):
            job = self.job()
        self.steps(job, 1, 5, 1000.0)
        self.assertEqual(job.checkpoints.latest(), 5)

    def test_wrong_arguments_of_a_job_are_named(self):
        for seconds in ("5", -1, float("nan")):
            with self.subTest(seconds=seconds), self.assertRaisesRegex(ValueError, "^checkpoint_seconds=.*: expected"):
                self.job(checkpoint_seconds=seconds)

    def test_a_timeout_may_be_a_number_of_seconds(self):
        self.assertEqual(self.job(timeout=90)._timeout, self.job(timeout=timedelta(seconds=90))._timeout)

    def restored(self):
        """A job that continues from a copy of step 7, of which the disk has nothing."""
        job = self.job()
        job._memory.run = job.checkpoints.run()
        with job._memory.alone():
            job._memory.write(7, {"step": 7}, "now")
        job = self.job()
        self.assertEqual(job.restore().step, 7)
        return job

    def stop(self, job, step):
        job.notice.note()
        with self.assertRaises(SystemExit) as ended:
            job.stop(step, {"step": step})
        return ended.exception.code

    def test_what_only_memory_has_goes_to_disk_before_the_process_ends(self):
        job = self.restored()
        self.assertEqual(self.stop(job, 7), 143)
        self.assertEqual(job.checkpoints.latest(), 7)

    def test_copies_that_a_run_began_with_end_with_it(self):
        with mock.patch("swell.saving.at_clean_exit") as at_end:
            job = self.restored()
        at_end.assert_called_once()
        at_end.call_args[0][0]()
        self.assertFalse(os.path.exists(job._memory.dir))

    def test_copies_stay_if_the_disk_did_not_take_the_last_state(self):
        with mock.patch("swell.saving.at_clean_exit") as at_end:
            job = self.restored()
        with mock.patch.object(job.checkpoints, "save", side_effect=OSError(errno.ENOSPC, "full")):
            self.assertEqual(self.stop(job, 8), 138)
        at_end.call_args[0][0]()
        self.assertEqual(self.job().restore().step, 7)

    def test_a_job_takes_the_name_of_a_folder(self):
        self.assertTrue(swell.Job(checkpoints=self.path("own"), env=swell.Env()).save(3, {}))
        self.assertEqual(swell.CheckpointManager(self.path("own")).latest(), 3)


class LeavingTest(support.FolderTest):
    """A process that must end leaves a large state in memory, and the node agent writes it to disk."""

    def setUp(self):
        super().setUp()
        self.request = self.path("persist.json")
        environ = support.clean_environment(SWELL_CHECKPOINT_DIR=self.path("checkpoints"),
                                            SWELL_PERSIST_FILE=self.request)
        del environ["SWELL_MEMORY_DIR"]  # the agent looks below /dev/shm
        large = mock.patch.object(saving, "_LEFT_BYTES_LEAST", 100_000)
        for patch in (mock.patch.dict(os.environ, environ, clear=True), large):
            patch.start()
            self.addCleanup(patch.stop)
        self.state = {"weights": torch.arange(100_000.0), "step": 7}

    def job(self, **options):
        job = swell.Job(checkpoint_seconds=0, **options)
        self.addCleanup(job._memory.remove)
        return job

    def left(self):
        """The copy that the request names."""
        with open(self.request, encoding="utf-8") as file:
            name = json.load(file)["copy"]
        self.assertFalse(os.path.isabs(name) or ".." in name, name)
        return memory._read(os.path.join("/dev/shm", name))

    def stop(self, job, step=7, **more):
        with self.assertRaises(SystemExit) as ended:
            job.stop(step, self.state, **more)
        return ended.exception.code

    def test_the_copy_is_whole_and_nothing_waits_for_the_disk(self):
        job = self.job()
        self.assertEqual(self.stop(job, epoch=2, metrics={"loss": float("nan")}), 143)
        copy = self.left()
        self.assertEqual((copy.index["step"], copy.index["epoch"]), (7, 2))
        self.assertEqual(copy.index["metrics"], {"loss": "NaN"})  # other readers of JSON know no NaN
        self.assertEqual(copy.index["run"], job.checkpoints.run())
        self.assertTrue(torch.equal(copy.state()["state"]["weights"], self.state["weights"]))
        self.assertIsNone(job.checkpoints.latest())
        job._saver.remove_copies()  # what runs at the end of the process
        self.assertIsNotNone(self.left())

    def test_the_next_process_in_the_same_pod_continues_from_it(self):
        self.stop(self.job())
        job = self.job()
        self.assertIsNotNone(self.left(), "the pod may end before the disk has the state")
        self.assertEqual(job.restore().step, 7)
        job.flush()
        self.assertEqual(job.checkpoints.latest(), 7)
        self.assertFalse(os.path.exists(self.request), "a later end of the pod would bring the old state back")

    def test_a_request_stands_until_a_state_is_on_disk(self):
        self.stop(self.job())
        job = self.job()
        with mock.patch.object(swell.CheckpointManager, "_save", side_effect=OSError(errno.ENOSPC, "full")):
            job.restore()
            job.flush()
        self.assertEqual(self.left().index["step"], 7)
        self.assertTrue(job.save(8, {"step": 8}))
        self.assertFalse(os.path.exists(self.request))

    def test_the_state_that_this_process_leaves_is_not_taken_back(self):
        """The copy of the process before it reaches the disk while this one leaves its own."""
        self.stop(self.job())
        job = self.job()
        reached, go_on = threading.Event(), threading.Event()

        def slow(*_):
            reached.set()
            go_on.wait(support.WAIT_SECONDS)

        with mock.patch.object(swell.CheckpointManager, "_save", slow):
            job.restore()
            self.assertTrue(reached.wait(support.WAIT_SECONDS))
            exits = mock.patch.object(os, "_exit", side_effect=SystemExit)
            with mock.patch.object(saving, "_GIVE_UP_SECONDS", 0.01), exits, self.assertRaises(SystemExit):
                job.stop(8, self.state)
            go_on.set()
            job._saver._thread.join(support.WAIT_SECONDS)
        self.assertEqual(self.left().index["step"], 8)

    def test_a_job_that_ends_takes_the_request_back(self):
        self.stop(self.job())
        self.job()._saver.remove_copies()
        self.assertFalse(os.path.exists(self.request))

    def test_a_small_state_goes_to_disk(self):
        self.state = {"step": 7}
        job = self.job()
        self.assertEqual(self.stop(job), 143)
        self.assertFalse(os.path.exists(self.request))
        self.assertEqual(job.checkpoints.latest(), 7)

    def test_checkpoints_that_the_agent_does_not_keep_go_to_disk(self):
        job = self.job(checkpoints=self.path("own"))
        self.stop(job)
        self.assertEqual(job.checkpoints.latest(), 7)
        with mock.patch.dict(os.environ, SWELL_MEMORY_DIR=self.folder):
            job = self.job()
        self.stop(job)
        self.assertEqual(job.checkpoints.latest(), 7)

    def test_without_room_in_memory_it_goes_to_disk(self):
        job = self.job()
        with mock.patch.object(memory, "_check_room", side_effect=memory.NoRoom("full")):
            self.assertEqual(self.stop(job), 143)
        self.assertFalse(os.path.exists(self.request))
        self.assertEqual(job.checkpoints.latest(), 7)

    def test_a_checkpoint_on_its_way_to_disk_gives_way(self):
        """The older one is given up within a chunk; the newer one is what counts."""
        job = self.job()
        self.assertIsNone(job.restore())
        reached, go_on = threading.Event(), threading.Event()
        write = pack.Archive.add

        def slow(archive, name, size, parts):
            reached.set()
            go_on.wait(support.WAIT_SECONDS)
            write(archive, name, size, parts)

        with mock.patch.object(pack.Archive, "add", slow):
            job.save(6, self.state, wait=False)
            self.assertTrue(reached.wait(support.WAIT_SECONDS))
            exits = mock.patch.object(os, "_exit", side_effect=SystemExit)
            with mock.patch.object(saving, "_GIVE_UP_SECONDS", 0.01), exits as exit, self.assertRaises(SystemExit):
                job.stop(7, self.state)
            exit.assert_called_once_with(143)
            go_on.set()
            job._saver._thread.join(support.WAIT_SECONDS)
        self.assertEqual(self.left().index["step"], 7)
        self.assertIsNone(job.checkpoints.latest())


if __name__ == "__main__":
    unittest.main()
