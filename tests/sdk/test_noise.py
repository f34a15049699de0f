"""The noise scale of gradients, of a problem in which it is known: each record's gradient is its distance from the
network's weights, so |G|² and the variance of one record can be written down."""

import json
import os
import unittest

import support
import torch
from members import Members
from swell import noise
from swell.report import Progress

_SIZE = 200
_SQUARE = 4.0  # |G|²
_SCALE = _SIZE / _SQUARE  # the variance of each of the numbers of a record is 1
_BATCH = 24


def _measure(shares, steps, fault=lambda gradients: gradients):
    """The noise that ranks with so many records each find."""
    generator = torch.Generator().manual_seed(5)
    true = torch.full((_SIZE,), (_SQUARE / _SIZE) ** 0.5)
    found = noise.GradientNoise()
    world, records = len(shares), sum(shares)
    for _ in range(steps):
        gradients = []
        for share in shares:
            mean = true + torch.randn(_SIZE, generator=generator) / share**0.5
            gradients.append(fault(mean * share * world / records))
        of_ranks = sum(float(gradient.square().sum()) for gradient in gradients) / world
        of_all = float((sum(gradients) / world).square().sum())
        found.add(world, records, of_ranks, of_all, sum((share * world / records) ** 2 for share in shares) / world)
    return found


class EstimateTest(unittest.TestCase):
    def test_any_number_of_ranks_and_records_finds_the_same_noise(self):
        for shares in ([12, 12], [4, 4], [30, 30, 30, 30], [4] * 16, [20, 4], [9, 8, 8], [5, 1, 2]):
            with self.subTest(shares=shares):
                # The mean of some hundred measurements of so small a batch is within a fourth.
                self.assertAlmostEqual(_measure(shares, 3000).scale / _SCALE, 1, delta=0.25)

    def test_a_loss_scale_makes_no_difference(self):
        plain, scaled = _measure([12, 12], 500).scale, _measure([12, 12], 500, lambda each: each * 1024).scale
        self.assertAlmostEqual(scaled / plain, 1, places=4)

    def test_little_says_nothing(self):
        self.assertIsNone(_measure([12, 12], 9).scale)
        self.assertIsNotNone(_measure([12, 12], 10).scale)
        found = _measure([12, 12], 50)
        before = found.scale
        found.add(2, 24, float("inf"), float("nan"))
        found.add(2, 24, 1.0, 1.0, spread=2.0)  # one rank has everything
        self.assertEqual(found.scale, before)

    def test_gradients_that_are_noise_alone_have_a_bound(self):
        found = noise.GradientNoise()
        for _ in range(20):
            found.add(2, 24, 2.0, 0.9)
        self.assertEqual(found.scale, 24_000)

    def test_a_checkpoint_keeps_it(self):
        found, loaded = _measure([12, 12], 50), noise.GradientNoise()
        loaded.load_numbers(json.loads(json.dumps(found.numbers())))
        self.assertEqual(loaded.scale, found.scale)


class Records(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.full((_SIZE,), (_SQUARE / _SIZE) ** 0.5))

    def forward(self, records):
        # Its gradient is weights - record. The records' mean is 0.
        return (self.weights - records).square().sum(1) / 2


def train(epochs, seed, step_seconds, in_turn, wait_at_end, gather, lose_at, kill_at, noticed):
    """`in_turn`: a step is two backward passes, of which the first keeps its gradients."""
    import swell

    job = swell.Job(backend="gloo")
    torch.set_num_threads(1)
    model = job.parallel(Records())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    data = torch.randn(960, _SIZE, generator=torch.Generator().manual_seed(1))
    data -= data.mean(0)
    for (records,) in job.batches(torch.utils.data.TensorDataset(data), int(os.environ.get("BATCH", _BATCH)), epochs,
                                  {"model": model, "optimizer": optimizer}, seed=seed):
        if in_turn and job.step % 2 == 0:
            with model.no_sync():
                model(records).mean().backward()
            continue
        model(records).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if job.step in gather and job.env.leader:
            assert support.until(lambda: job.env.world + len(job._group._client.waiting) >= gather[job.step])
        if job.step in lose_at:
            os.kill(os.getpid(), 15)
    print(f"ends rank {job.env.rank} noise {job._noise.scale} of {job._noise._measured}", flush=True)


class TrainingTest(support.FolderTest):
    def noise_of(self, ranks, epochs=30, **environment):
        in_turn = environment.pop("in_turn", False)
        job = Members(self, ranks, ranks, epochs=epochs, training=train, in_turn=in_turn)
        job.start(*range(ranks), **environment)
        self.assertEqual(job.finish(*range(ranks)), [0] * ranks, job.all_logs())
        found = [job.log(rank).split(" noise ")[1].split() for rank in range(ranks)]
        return [None if words[0] == "None" else float(words[0]) for words in found], int(found[0][2])

    def test_all_ranks_measure_the_same_in_every_tenth_step(self):
        (one, other), measured = self.noise_of(2)
        self.assertEqual(one, other)
        self.assertEqual(measured, 30 * 40 // 10)
        self.assertAlmostEqual(one / _SCALE, 1, delta=0.25)

    def test_shares_may_differ(self):
        (one, *_), _ = self.noise_of(3, epochs=10, BATCH="10")
        self.assertAlmostEqual(one / _SCALE, 1, delta=0.25)

    def test_a_step_of_several_passes_has_the_records_of_all(self):
        (one, _), measured = self.noise_of(2, epochs=50, in_turn=True)
        self.assertEqual(measured, 50 * 20 // 10)
        self.assertAlmostEqual(one / _SCALE, 1, delta=0.25)

    def test_it_outlives_the_rank_that_goes_and_comes_with_the_state_to_one_that_joins(self):
        job = Members(self, 3, 1, epochs=20, training=train, gather={2: 3})
        job.start(0, lose_at=(700,))
        job.start(1, 2)
        self.assertEqual(job.finish(0, 1, 2), [143, 0, 0], job.all_logs())
        for rank in (1, 2):
            words = job.log(rank).split(" noise ")[1].split()
            self.assertAlmostEqual(float(words[0]) / _SCALE, 1, delta=0.3)
            self.assertGreaterEqual(int(words[2]), 77)

    def test_one_rank_alone_measures_nothing(self):
        found, measured = self.noise_of(1, epochs=2)
        self.assertEqual((found, measured), ([None], 0))


class ReportTest(support.FolderTest):
    def test_the_report_has_the_noise_and_the_batch(self):
        now = [0.0]
        progress = Progress({"SWELL_REPORT_FILE": self.path("report")}, lambda: now[0])
        for step in range(3):
            progress.step(step, 2, records=24, noise=51.23456)
            now[0] += 1.0
        with open(self.path("report"), encoding="utf-8") as file:
            metrics = json.load(file)["metrics"]
        self.assertEqual((metrics["batch_records"], metrics["gradient_noise_records"]), (24.0, 51.23))
        self.assertLess(len(json.dumps(metrics)), 300)


if __name__ == "__main__":
    unittest.main()
