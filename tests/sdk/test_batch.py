"""A batch that follows the noise of gradients: what is chosen, that all ranks choose it, and what the model is then."""

import os
import sys
import time
import unittest

import support
import torch
from members import Members
from swell import batch
from swell.rates import Rates, factor

sys.path.insert(0, os.path.join(support.ROOT, "examples", "mnist-pytorch"))
from fashion import DEFAULT_DIR, read_images  # noqa: E402

_BATCH, _MOST = 32, 128
_IMAGES = 6000
_RATE = 0.01
_FIXED_SECONDS = 0.003  # of a step, whatever its records: on any machine a larger batch pays


def _chosen(noise, fixed, of_record, most=4096, initial=64, steps=3000):
    """(the batch after so many steps, how often it changed) if steps take `fixed` + `of_record` * records."""
    size = batch.BatchSize({"SWELL_BATCH_OF": "goodput", "SWELL_BATCH_MAX": str(most)})
    changes = 0
    for step in range(steps):
        records = size.of(initial)
        wobble = 1 + 0.02 * (step % 3 - 1)
        changes += size.take(size.proposal(2, records, (fixed + of_record * records) * wobble, noise))
    return size.of(initial), changes


class ChoiceTest(unittest.TestCase):
    def test_it_is_the_batch_of_most_goodput(self):
        for noise, fixed, of_record in ((1000, 0.1, 0.0005), (300, 0.2, 0.001), (5000, 0.05, 0.0005), (200, 0.02, 0.0)):
            def goodput(records, noise=noise, fixed=fixed, of_record=of_record):
                return records / (fixed + of_record * records) * (noise + 64) / (noise + records)

            chosen, changes = _chosen(noise, fixed, of_record)
            best = max(range(64, 4097), key=goodput)
            with self.subTest(noise=noise, chosen=chosen, best=best):
                self.assertGreater(goodput(chosen), 0.94 * goodput(best))
                self.assertLess(changes, 12)

    def test_it_stays_where_more_records_are_worth_nothing(self):
        self.assertEqual(_chosen(noise=2, fixed=1.0, of_record=0.0), (64, 0))
        # Steps take as long as their records: a larger batch is tried, and left again.
        self.assertEqual(_chosen(noise=1000, fixed=0.0, of_record=0.01)[0], 64)
        self.assertEqual(_chosen(noise=None, fixed=1.0, of_record=0.0), (64, 0))

    def test_it_is_between_the_scripts_own_and_the_maximum(self):
        self.assertEqual(_chosen(noise=1e6, fixed=1.0, of_record=0.0, most=200)[0], 200)
        self.assertEqual(_chosen(noise=1e6, fixed=1.0, of_record=0.0, most=10)[0], 64)
        self.assertEqual(batch.BatchSize({}).of(64), 64)
        self.assertEqual(batch.BatchSize({"SWELL_BATCH_OF": "rank", "SWELL_BATCH_MAX": "999"}).of(64), 64)

    def test_another_noise_changes_it(self):
        size = batch.BatchSize({"SWELL_BATCH_OF": "goodput", "SWELL_BATCH_MAX": "512"})
        sizes = []
        for noise in (3, 2000, 3):
            for _ in range(300):
                records = size.of(32)
                size.take(size.proposal(2, records, 0.05 + 0.0005 * records, noise))
            sizes.append(size.of(32))
        self.assertGreaterEqual(sizes[1], 256)
        self.assertLess(max(sizes[0], sizes[2]), 64)


class RatesTest(unittest.TestCase):
    def test_the_gain_of_a_larger_batch(self):
        self.assertAlmostEqual(factor("adascale", 4, 1e12), 4.0)
        self.assertEqual(factor("adascale", 4, 0.0), 1.0)
        self.assertEqual(factor("adascale", 4, 8), 4 * 9 / 12)
        self.assertEqual(factor("adamscale", 4, 8), (4 * 9 / 12) ** 0.5)
        self.assertEqual((factor("adascale", 4), factor("adascale", 0.5)), (1.0, 0.5))

    def test_it_follows_the_noise_of_ranks_with_batches_of_their_own(self):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        rates = Rates(optimizer, "adascale", 2)
        rates.follow(4, noise=16)  # of 16 times the records of a rank: 8 times those of two
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 * 2 * 9 / 10)
        rates.follow(4, noise=2)
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 * 2 * 2 / 3)
        rates.follow(2, noise=2)
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1)

    def test_a_state_of_another_batch_is_corrected_when_it_is_loaded(self):
        def optimizer():
            return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)

        saved, loaded = optimizer(), optimizer()
        Rates(saved, "linear", 2).follow(6)
        state = saved.state_dict()
        self.assertAlmostEqual(state["param_groups"][0]["lr"], 0.3)
        rates = Rates(loaded, "linear", 2)
        rates.follow(4)
        loaded.load_state_dict(state)
        self.assertAlmostEqual(loaded.param_groups[0]["lr"], 0.2)
        rates.follow(6)
        self.assertAlmostEqual(loaded.param_groups[0]["lr"], 0.3)


def train(epochs, seed, step_seconds, in_turn, wait_at_end, gather, lose_at, kill_at, noticed):
    """A small network on images. Prints each record, and the batch and the rate of each step."""
    import swell

    job = swell.Job(backend="gloo")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = job.parallel(torch.nn.Sequential(torch.nn.Linear(784, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)
    job.learning_rate(optimizer)
    images = read_images(os.environ["IMAGES"], "train", _IMAGES)
    indices = torch.utils.data.TensorDataset(torch.arange(_IMAGES))
    for (chosen,) in job.batches(indices, _BATCH, epochs, {"model": model, "optimizer": optimizer}, seed=seed):
        pixels, labels = images.batch(chosen.tolist())
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pixels.flatten(1)), labels)
        if job.step in kill_at:
            os.kill(os.getpid(), 9)
        loss.backward()
        optimizer.step()
        time.sleep(_FIXED_SECONDS)
        if job.weight.of_mean > 0:
            lines = "".join(f"record {job.epoch} {record}\n" for record in chosen.tolist())
            print(f"{lines}batch {job.step} {job.batch_size.of(_BATCH)} rate {optimizer.param_groups[0]['lr']:.9f}",
                  flush=True)
        if job.step in lose_at:
            os.kill(os.getpid(), 15)
        if job.step in gather and job.env.leader:
            assert support.until(lambda: job.env.world + len(job._group._client.waiting) >= gather[job.step])
    pixels, labels = read_images(os.environ["IMAGES"], "t10k", 3000).batch(list(range(3000)))
    with torch.no_grad():
        outputs = model.module(pixels.flatten(1))
    loss = torch.nn.functional.cross_entropy(outputs, labels).item()
    right = (outputs.argmax(1) == labels).double().mean().item()
    print(f"ends rank {job.env.rank} loss {loss} right {right}", flush=True)


@unittest.skipUnless(os.path.isdir(DEFAULT_DIR), "needs Debian's dataset-fashion-mnist")
class TrainingTest(support.FolderTest):
    def job(self, most=2, least=2, epochs=10, seed=1, gather=(), start=None, **options):
        job = Members(self, most, least, epochs=epochs, seed=seed, training=train, gather=gather)
        for rank in range(most):
            job.start(rank, **(start or {}).get(rank, {}), **{"IMAGES": DEFAULT_DIR, **options})
        self.codes = job.finish(*range(most))
        return job

    def of_goodput(self, **options):
        return self.job(SWELL_BATCH_OF="goodput", SWELL_BATCH_MAX=str(_MOST), SWELL_LEARNING_RATE="adascale", **options)

    @staticmethod
    def steps(job, rank):
        """{step: (batch, rate)}"""
        lines = [line.split() for line in job.log(rank).splitlines() if line.startswith("batch ")]
        return {int(words[1]): (int(words[2]), float(words[4])) for words in lines}

    def end(self, job):
        self.assertEqual(self.codes, [0, 0], job.all_logs())
        ends = [line.split() for line in job.log(0).splitlines() if line.startswith("ends rank ")]
        self.assertEqual(len(ends), 1, job.log(0))
        return float(ends[0][4]), float(ends[0][6])

    def assert_each_record_once(self, job, epochs):
        records = job.records()
        self.assertEqual((len(records), len(set(records))), (epochs * _IMAGES, epochs * _IMAGES))

    def assert_all_did_the_same(self, job, ranks):
        of_ranks = [self.steps(job, rank) for rank in range(ranks)]
        together = 0
        for step, did in of_ranks[0].items():
            for other in of_ranks[1:]:
                self.assertEqual(other.get(step, did), did, f"step {step}")
                together += step in other
        self.assertGreater(together, 100)

    def test_the_model_is_as_good_with_fewer_steps(self):
        """At equal records: the loss and the part that is right, on images that it has not seen."""
        constant, chosen = [], []
        for seed in (1, 2):
            constant.append(self.end(self.job(seed=seed)))
            job = self.of_goodput(seed=seed)
            chosen.append(self.end(job))
            self.assert_each_record_once(job, 10)
            self.assert_all_did_the_same(job, 2)
            steps = self.steps(job, 0)
            self.assertLess(len(steps), 0.75 * 10 * _IMAGES / _BATCH)
            self.assertTrue(all(_BATCH <= records <= _MOST for records, _ in steps.values()))
            # The rate follows: up by no more than the batch.
            for records, rate in steps.values():
                self.assertLessEqual(rate, _RATE * records / _BATCH * 1.0001)
            self.assertGreater(max(rate for _, rate in steps.values()), 1.5 * _RATE)
        loss, right = (sum(column) / 2 for column in zip(*constant))
        loss_of_chosen, right_of_chosen = (sum(column) / 2 for column in zip(*chosen))
        self.assertLess(loss_of_chosen, loss + 0.04, f"{constant} {chosen}")
        self.assertGreater(right_of_chosen, right - 0.015, f"{constant} {chosen}")

    def test_members_that_come_and_go_have_the_same_batch(self):
        # Three members form, and two of them leave: one by a notice, one is killed in a step.
        job = self.of_goodput(most=3, least=1, epochs=4, gather={2: 3},
                              start={1: {"lose_at": (160,)}, 2: {"kill_at": (190,)}})
        self.assertEqual(self.codes, [0, 143, -9])
        self.assert_all_did_the_same(job, 3)
        self.assertGreater(max(records for records, _ in self.steps(job, 0).values()), _BATCH)
        # The step in which a member was killed is repeated, and the others had printed it.
        self.assertEqual(len(set(job.records())), 4 * _IMAGES)
        self.assertLessEqual(len(job.records()), 4 * _IMAGES + _MOST)

    def test_a_job_that_is_stopped_continues_with_its_batch(self):
        job = Members(self, 2, 2, epochs=4, seed=1, training=train)
        options = {"IMAGES": DEFAULT_DIR, "SWELL_BATCH_OF": "goodput", "SWELL_BATCH_MAX": str(_MOST),
                   "SWELL_LEARNING_RATE": "adascale"}
        job.start(0, 1, lose_at=(200,), **options)
        self.assertEqual(job.finish(0, 1), [143, 143], job.all_logs())
        before = self.steps(job, 0)
        self.assertGreater(before[200][0], _BATCH)
        job.start(0, 1, **options)
        self.assertEqual(job.finish(0, 1), [0, 0], job.all_logs())
        after = self.steps(job, 0)
        # They may have changed once more between the two steps, but do not begin anew.
        self.assertGreater(after[201][0], _BATCH)
        self.assertGreater(after[201][1], 1.2 * _RATE)
        self.assert_each_record_once(job, 4)


if __name__ == "__main__":
    unittest.main()
