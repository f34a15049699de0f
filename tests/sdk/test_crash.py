"""A member that dies or falls silent costs the others one step: they continue from memory, with the same weights."""

import itertools
import os
import re
import signal
import unittest
from unittest import mock

import support
import torch
from members import RECORDS, STEPS_PER_EPOCH, Members, train_with_batches
from swell import abort, parallel

_STEP = re.compile(r"^before (\d+) weights (\S+) rank \d+ of (\d+) at (\S+) records ([\d ]+)$", re.M)
_KILLED_IN = 20


def _train_with_forgetful_gloo(*options):
    """In the step that breaks, gloo of members 2 and 3 waits for what the other one never sends. Nothing ends that."""
    average, calls, sender = parallel._average, itertools.count(1), {"2": 3, "3": 2}.get(os.environ["RANK"])

    def wait_for_sender(tensor, async_op):
        return torch.distributed.scatter(tensor, src=sender, async_op=async_op)

    def average_in_vain(state, bucket):
        if next(calls) != _KILLED_IN or sender is None or torch.distributed.get_world_size() < 4:
            return average(state, bucket)
        with mock.patch.object(torch.distributed, "all_reduce", wait_for_sender):
            return average(state, bucket)

    with mock.patch.object(parallel, "_average", average_in_vain), \
            mock.patch.object(abort, "shut_down"), mock.patch.object(abort, "end_waits"):
        train_with_batches(*options)


class CrashTest(support.FolderTest):
    """With `Job.batches`."""

    loop = "batches"

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, LOOP=self.loop)
        patch.start()
        self.addCleanup(patch.stop)

    def job(self, most=4, least=1, gather=(), training=train_with_batches):
        # `gather` is after the step: members that come meanwhile join at the same boundary in every run.
        gather = {5: most, **dict(gather)} if most > 1 else {}
        return Members(self, most, least, epochs=1, gather=gather, training=training)

    def assert_same_training(self, job, *victims):
        """Each step began with the weights that an undisturbed run has there, and trained the records of its batch."""
        undisturbed = self.job(most=1)
        undisturbed.start(0)
        self.assertEqual(undisturbed.finish(0), [0])
        expected = {int(m[0]): (float(m[1]), sorted(m[4].split())) for m in _STEP.findall(undisturbed.log(0))}
        self.assertEqual(len(expected), STEPS_PER_EPOCH)
        trained = {}
        for ordinal in range(4):
            steps = _STEP.findall(job.log(ordinal))
            if ordinal in victims:
                # Its try of the step that it broke.
                steps.remove(next(found for found in steps if int(found[0]) == _KILLED_IN - 1))
            # A step that was repeated counts as it was done last.
            for step, weights, _, _, records in steps:
                trained.setdefault(int(step), {})[ordinal] = (float(weights), records.split())
        self.assertEqual(sorted(trained), sorted(expected))
        for step, (weights, records) in expected.items():
            for ordinal, (own, _) in trained[step].items():
                self.assertAlmostEqual(own, weights, places=4, msg=f"step {step} of {ordinal}")
            self.assertEqual(sorted(r for _, own in trained[step].values() for r in own), records, f"step {step}")
        self.assertEqual(sum(len(records) for _, records in expected.values()), RECORDS)

    def kill(self, victim, least=1, replace=False):
        job = self.job(least=least)
        others = [ordinal for ordinal in range(4) if ordinal != victim]
        job.start(*others)
        job.start(victim, kill_at=[_KILLED_IN])
        self.assertEqual(job.finish(victim), [-signal.SIGKILL])
        if replace:
            job.start(victim)
        left = list(range(4)) if replace else others
        self.assertEqual(job.finish(*left), [0] * len(left), job.all_logs())
        for ordinal in others:
            self.assertIn(f"step {_KILLED_IN - 1}: lost a peer", job.log(ordinal))
            # No process began again, and no step but the broken one was done twice.
            self.assertEqual(job.log(ordinal).count("begins "), 1)
            self.assertEqual(len(_STEP.findall(job.log(ordinal))), STEPS_PER_EPOCH + 1)
        self.assert_same_training(job, victim)

    def test_the_first_member_is_killed(self):
        self.kill(0)

    def test_another_member_is_killed(self):
        self.kill(2)

    def test_a_rigid_job_waits_for_the_replacement_of_its_first_member(self):
        self.kill(0, least=4, replace=True)

    def test_a_rigid_job_waits_for_the_replacement_of_another_member(self):
        self.kill(3, least=4, replace=True)

    def test_a_member_is_killed_while_the_others_load(self):
        job = self.job(most=2, least=2)
        job.start(0)
        job.start(1, kill_at=[0])
        self.assertEqual(job.finish(1), [-signal.SIGKILL])
        job.start(1)
        self.assertEqual(job.finish(0, 1), [0, 0], job.all_logs())
        self.assertEqual(job.log(0).count("begins "), 1)
        self.assert_same_training(job)

    def test_a_rigid_job_whose_member_is_not_replaced_ends(self):
        job = self.job(most=2, least=2)
        job.start(0, TIMEOUT_SECONDS="1")
        job.start(1, kill_at=[_KILLED_IN], TIMEOUT_SECONDS="1")
        self.assertEqual(job.finish(0, 1), [1, -signal.SIGKILL])
        self.assertIn("lost members were not replaced within 1 s", job.log(0))

    def stop(self, victim):
        job = self.job(gather={30: 4})
        others = [ordinal for ordinal in range(4) if ordinal != victim]
        job.start(*others)
        job.start(victim, kill_at=[_KILLED_IN], noticed=True)
        job.wait(others[0], "before 25 ")
        self.assertIn(f"rank {victim} does not answer", job.all_logs())
        self.assertEqual(len(_STEP.findall(job.log(victim))), _KILLED_IN)
        os.kill(job.processes[victim].pid, signal.SIGCONT)
        self.assertEqual(job.finish(*range(4)), [0] * 4, job.all_logs())
        # It learns that the others continued without it, from them or from its connections, and gets their state.
        self.assertIn(f"step {_KILLED_IN - 1}: lost a peer", job.log(victim))
        self.assertEqual(job.log(victim).count("begins "), 1)
        steps = [int(found[0]) for found in _STEP.findall(job.log(victim))]
        self.assertGreaterEqual(steps[_KILLED_IN], 25)
        self.assert_same_training(job, victim)

    def test_the_first_member_falls_silent_and_comes_back(self):
        self.stop(0)

    def test_another_member_falls_silent_and_comes_back(self):
        self.stop(3)

    def test_two_members_are_killed_in_the_same_step(self):
        job = self.job()
        job.start(2, 3)
        job.start(0, 1, kill_at=[_KILLED_IN])
        self.assertEqual(job.finish(0, 1), [-signal.SIGKILL] * 2)
        self.assertEqual(job.finish(2, 3), [0, 0], job.all_logs())
        self.assert_same_training(job, 0, 1)

    def test_gloo_forgets_what_it_waits_for(self):
        # It does so where a connection ends while a send waits for room.
        job = self.job(training=_train_with_forgetful_gloo)
        job.start(2, 3)
        job.start(0, 1, kill_at=[_KILLED_IN])
        self.assertEqual(job.finish(0, 1), [-signal.SIGKILL] * 2)
        self.assertEqual(job.finish(2, 3), [0, 0], job.all_logs())
        self.assert_same_training(job, 0, 1)


class GuardedCrashTest(CrashTest):
    """With `Job.guard` around each step of a loop of the script's own."""

    loop = "guard"


if __name__ == "__main__":
    unittest.main()
