"""When `Job.step_done` saves: as often as the manifest says, by rank 0's clock, between two steps."""

import os
import unittest
from unittest import mock

import support
import swell


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

    def test_a_job_takes_the_name_of_a_folder(self):
        self.assertTrue(swell.Job(checkpoints=self.path("own"), env=swell.Env()).save(3, {}))
        self.assertEqual(swell.CheckpointManager(self.path("own")).latest(), 3)


if __name__ == "__main__":
    unittest.main()
