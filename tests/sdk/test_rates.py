"""Learning rates follow the number of ranks by rule, and samplers divide batches among the current ranks."""

import dataclasses
import unittest
from unittest import mock

import support  # noqa: F401  (puts the SDK on the path)
import swell
from swell.rates import Rates, adapt


class Optimizer:
    def __init__(self, rate):
        self.param_groups = [{"lr": rate}, {"lr": rate / 10, "initial_lr": rate / 10}]


class RatesTest(unittest.TestCase):
    def follow(self, rule, *worlds):
        optimizer = Optimizer(0.4)
        rates = Rates(optimizer, rule, 4)
        for world in worlds:
            rates.follow(world)
        return optimizer.param_groups

    def test_rules(self):
        self.assertEqual(self.follow("none", 2)[0]["lr"], 0.4)
        self.assertAlmostEqual(self.follow("linear", 2)[0]["lr"], 0.2)
        self.assertAlmostEqual(self.follow("sqrt", 1)[0]["lr"], 0.2)
        self.assertAlmostEqual(self.follow("linear", 8)[1]["initial_lr"], 0.08)

    def test_only_the_current_number_of_ranks_matters(self):
        for rule in ("linear", "sqrt"):
            direct, detour = self.follow(rule, 3), self.follow(rule, 1, 8, 2, 3)
            self.assertAlmostEqual(direct[0]["lr"], detour[0]["lr"])

    def test_changes_by_a_scheduler_are_kept(self):
        optimizer = Optimizer(0.4)
        rates = Rates(optimizer, "linear", 4)
        rates.follow(2)
        optimizer.param_groups[0]["lr"] *= 0.1
        rates.follow(4)
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.04)

    def test_an_unknown_rule(self):
        with self.assertRaisesRegex(ValueError, "'cubic' is not one of none, linear, sqrt"):
            Rates(Optimizer(1), "cubic", 1)

    def test_the_rule_comes_from_the_manifest(self):
        optimizer = Optimizer(0.4)
        with mock.patch.dict("os.environ", {"SWELL_LEARNING_RATE": "sqrt"}):
            job = swell.Job(env=swell.Env(world=1))
            job.learning_rate(optimizer, world=4)
        job.join()
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.2)

    def test_batches_follows_the_manifest_where_the_job_chooses_its_batch(self):
        chosen = {"SWELL_LEARNING_RATE": "linear", "SWELL_BATCH_OF": "goodput", "SWELL_BATCH_MAX": "64"}
        for environ, expected in ((chosen, 0.8), ({**chosen, "SWELL_LEARNING_RATE": "none"}, 0.4),
                                  ({"SWELL_LEARNING_RATE": "linear"}, 0.4)):
            optimizer, own = Optimizer(0.4), Optimizer(0.4)
            with mock.patch.dict("os.environ", environ):
                job = swell.Job(env=swell.Env(world=1))
                job.learning_rate(own, "sqrt")
                adapt(job, [optimizer, own, object()])
            job.batch_size.of(16)
            job.batch_size.level = 4  # twice the records
            job.join()
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], expected)
            if environ is chosen:
                self.assertAlmostEqual(own.param_groups[0]["lr"], 0.4 * 2**0.5, msg="the script's own rule holds")


class Resized:
    """A Job whose size the test changes."""

    def __init__(self, world, rank=0):
        self.env = swell.Env(rank=rank, world=world)

    def become(self, world, rank=0):
        self.env = dataclasses.replace(self.env, rank=rank, world=world)


class SharesTest(unittest.TestCase):
    def test_a_change_of_size_between_two_steps(self):
        job = Resized(world=4, rank=1)
        sampler = swell.ResumableDistributedSampler(24, 8, shuffle=False, job=job)
        batches = iter(sampler)
        self.assertEqual(next(batches), [2, 3])
        self.assertEqual(sampler.scale, 0.5)
        sampler.commit()
        job.become(world=2, rank=1)
        self.assertEqual(next(batches), [12, 13, 14, 15])
        self.assertEqual(sampler.scale, 0.25)
        sampler.commit()
        job.become(world=1)
        self.assertEqual(next(batches), list(range(16, 24)))
        sampler.commit()
        self.assertIsNone(next(batches, None))
        self.assertTrue(sampler.done)

    def test_a_change_of_size_ends_the_iteration_if_batches_were_prefetched(self):
        job = Resized(world=2)
        sampler = swell.ResumableDistributedSampler(24, 8, shuffle=False, job=job)
        batches = iter(sampler)
        next(batches), next(batches)
        sampler.commit()
        job.become(world=1)
        self.assertIsNone(next(batches, None))
        self.assertEqual(next(iter(sampler)), list(range(8, 16)))

    def test_a_batch_for_each_rank(self):
        job = Resized(world=2)
        sampler = swell.ResumableDistributedSampler(100, 8, shuffle=False, job=job, batch_of="rank")
        batches = iter(sampler)
        self.assertEqual(next(batches), list(range(8)))
        self.assertEqual((sampler.step_records, sampler.scale), (16, 2 / 16))
        sampler.commit()
        job.become(world=4)
        self.assertEqual(next(batches), list(range(16, 24)))
        self.assertEqual(len(sampler), 3)
        with mock.patch.dict("os.environ", {"SWELL_BATCH_OF": "rank"}):
            sampler = swell.ResumableDistributedSampler(100, 8, shuffle=False, job=job)
        next(iter(sampler))
        self.assertEqual(sampler.step_records, 32)


if __name__ == "__main__":
    unittest.main()
