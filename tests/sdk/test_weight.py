"""Ranks with unequal shares train as one rank with the whole batch would."""

import unittest

import support
import torch
from swell.loop import _Shares
from swell.parallel import Parallel
from swell.sampler import ResumableDistributedSampler
from swell.weight import Weight

_RECORDS = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))


def _gradient(weight, records, loss):
    network = torch.nn.Linear(3, 2)
    with torch.no_grad():
        network.weight.fill_(0.5)
        network.bias.zero_()
    loss(Parallel(network, None, {}, lambda: weight)(records)).backward()
    return network.weight.grad


class WeightTest(support.FolderTest):
    def of_ranks(self, cuts, loss):
        """The mean of the ranks' gradients. A share without records gets a foreign record, as in `batches`."""
        weights = [Weight(high - low, len(_RECORDS), len(cuts)) for low, high in cuts]
        shares = [_RECORDS[low:high] if high > low else _RECORDS[:1] for low, high in cuts]
        gradients = [_gradient(weight, share, lambda out, weight=weight: loss(out, weight))
                     for weight, share in zip(weights, shares)]
        return sum(gradients) / len(cuts)

    def test_the_mean_over_ranks_is_the_mean_over_the_batch(self):
        alone = _gradient(Weight(), _RECORDS, lambda out: out.square().sum() / 5)
        losses = {
            "a mean": lambda out, weight: out.square().sum(1).mean(),
            "a sum, weighed by the script": lambda out, weight: out.square().sum() * weight.of_sum(),
        }
        for cuts in ([(0, 5)], [(0, 2), (2, 5)], [(0, 1), (1, 2), (2, 5)], [(0, 0), (0, 4), (4, 5)]):
            for name, loss in losses.items():
                with self.subTest(name, cuts=cuts):
                    torch.testing.assert_close(self.of_ranks(cuts, loss), alone)

    def test_an_empty_share_adds_nothing_although_its_loss_is_nan(self):
        gradient = _gradient(Weight(0, 5, 2), _RECORDS[:1], lambda out: out[:0].mean())
        self.assertTrue(torch.equal(gradient, torch.zeros(2, 3)))

    def test_outputs_may_be_nested(self):
        class Pair(torch.nn.Module):
            def forward(self, records):
                return {"a": (records * 1, [records * 2])}

        records = torch.ones(2, requires_grad=True)
        out = Parallel(Pair(), None, {}, lambda: Weight(1, 4, 2))(records)
        (out["a"][0].sum() + out["a"][1][0].sum()).backward()
        self.assertEqual(records.grad.tolist(), [1.5, 1.5])

    def test_every_rank_gets_the_same_number_of_batches_and_each_record_counts_once(self):
        sizes = []
        for rank in range(3):
            sampler = ResumableDistributedSampler(8, 6, rank=rank, world=3)
            shares, counts = _Shares(sampler), []
            for batch in shares:
                self.assertTrue(batch)
                counts.append(shares.take())
                sampler.commit()
            sizes.append(counts)
        self.assertEqual(sizes, [[2, 0], [2, 1], [2, 1]])


if __name__ == "__main__":
    unittest.main()
