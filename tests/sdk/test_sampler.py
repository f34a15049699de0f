"""The sampler hands out every record once, whatever the world size becomes. Random cases; a failure prints its seed."""

import os
import random
import unittest
from unittest import mock

import support  # noqa: F401  (puts the SDK on the path)
from swell.sampler import ResumableDistributedSampler

_CASES = 300


class SamplerTest(unittest.TestCase):
    def test_every_record_once_through_resizes(self):
        first = int(os.environ.get("SWELL_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
        for seed in range(first, first + _CASES):
            with self.subTest(f"repeat with SWELL_TEST_SEED={seed}"):
                self.run_case(random.Random(seed))

    def test_wrong_arguments_are_named(self):
        for arguments, text in (
            ((0, 4), "length is 0: expected 1 or more"), ((4, 0), "batch_size is 0: expected 1 or more"),
            ((4, 4, 0, 2, 2), "rank is 2 and world 2: expected a rank of 0 to 1"),
            ((4, 4, 0, 0, 1, True, None, "ranks"), "batch_of is 'ranks': expected job, rank, goodput"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, f"^{text}"):
                ResumableDistributedSampler(*arguments)

    def test_a_state_of_other_data_is_refused_in_words(self):
        state = ResumableDistributedSampler(100, 4).state_dict()
        with self.assertRaisesRegex(ValueError, "^the dataset had 100 records in the run that saved, and has 200 now$"):
            ResumableDistributedSampler(200, 4).load_state_dict(state)
        with self.assertRaisesRegex(ValueError, "^shuffle was True in the run that saved, and is False now$"):
            ResumableDistributedSampler(100, 4, shuffle=False).load_state_dict(state)

    def run_case(self, rng):
        length, batch_size, seed = rng.randint(1, 200), rng.randint(1, 40), rng.randrange(1000)
        state, visited, orders = None, [], []
        while len(orders) < 2:
            world = rng.randint(1, 9)
            ranks = [
                ResumableDistributedSampler(length, batch_size, seed, rank, world) for rank in range(world)
            ]
            for sampler in ranks:
                if state:
                    sampler.load_state_dict(state)
            self.train_some_steps(rng, ranks, visited)
            self.assertEqual(len({str(s.state_dict()) for s in ranks}), 1, "ranks disagree")
            if ranks[0].position == length:
                self.assertEqual(sorted(visited), list(range(length)))
                orders.append(list(visited))
                visited.clear()
                for sampler in ranks:
                    sampler.next_epoch()
            state = ranks[0].state_dict()
        if length > 20:
            self.assertNotEqual(orders[0], orders[1], "both epochs have the same order")

    def train_some_steps(self, rng, ranks, visited):
        ahead = rng.randint(0, 3)
        loaders = [_prefetching(sampler, ahead) for sampler in ranks]
        steps = rng.randint(0, 12)
        for number, batches in enumerate(zip(*loaders)):
            if number == steps:
                break
            weight = 0
            for sampler, batch in zip(ranks, batches):
                visited.extend(batch)
                weight += sampler.scale * len(batch) / len(ranks)
            self.assertAlmostEqual(weight, 1.0)
            for sampler in ranks:
                sampler.commit()

    def test_batches_do_not_depend_on_the_world_size(self):
        def steps(world):
            ranks = [ResumableDistributedSampler(103, 10, 3, rank, world) for rank in range(world)]
            return [sum(shares, []) for shares in zip(*ranks)]

        self.assertEqual(steps(1), steps(4))
        self.assertEqual(len(steps(1)), 11)

    def test_a_batch_without_commit_is_handed_out_again(self):
        sampler = ResumableDistributedSampler(10, 4)
        lost = next(iter(sampler))
        other = ResumableDistributedSampler(10, 4)
        other.load_state_dict(sampler.state_dict())
        self.assertEqual(next(iter(other)), lost)

    def test_a_loop_that_begins_anew_in_an_epoch_draws_no_second_order(self):
        sampler = ResumableDistributedSampler(10, 4)
        with mock.patch("swell.sampler.random.Random", wraps=random.Random) as drawn:
            whole = [record for batch in sampler for record in batch]
            state = {**sampler.state_dict(), "position": 4}
            for _ in range(2):
                sampler.load_state_dict(state)
                self.assertEqual([record for batch in sampler for record in batch], whole[4:])
            self.assertEqual(drawn.call_count, 1)
            # The order of another epoch and of another seed is another.
            for changed in ({"epoch": 1}, {"seed": 5}):
                sampler.load_state_dict({**state, **changed})
                other = ResumableDistributedSampler(10, 4)
                other.load_state_dict({**state, **changed})
                self.assertEqual(list(sampler), list(other))

    def test_without_shuffling_records_come_in_their_order(self):
        self.assertEqual(list(ResumableDistributedSampler(5, 2, shuffle=False)), [[0, 1], [2, 3], [4]])

    def test_a_state_that_is_loaded_within_a_loop_voids_what_was_prefetched(self):
        for ahead, committed in ((3, 4), (1, 5), (2, 9)):  # the last: the loader has come to the end of the epoch
            with self.subTest(ahead=ahead, committed=committed):
                sampler = ResumableDistributedSampler(20, 2)
                loop = _prefetching(sampler, ahead)
                for _ in range(committed):
                    next(loop)
                    sampler.commit()
                saved = sampler.state_dict()
                trained = [next(loop)]
                sampler.load_state_dict(saved)  # a peer was lost in this step
                for stale in loop:
                    trained.append(stale)
                    for use in (sampler.commit, lambda: sampler.scale, lambda: sampler.step_records):
                        self.assertRaisesRegex(RuntimeError, "start the DataLoader again", use)
                self.assertLessEqual(len(trained), ahead + 1, "the loop went on")
                again = _prefetching(sampler, ahead)
                self.assertEqual(next(again), trained[0])
                sampler.commit()

    def test_without_prefetching_a_loop_goes_on_with_the_state_that_was_loaded(self):
        for committed in (False, True):
            sampler = ResumableDistributedSampler(20, 2)
            saved = sampler.state_dict()
            loop = iter(sampler)
            first = next(loop)
            if committed:
                sampler.commit()
            sampler.load_state_dict(saved)
            self.assertEqual(next(loop), first)
            sampler.commit()

    def test_mistakes_are_refused(self):
        sampler = ResumableDistributedSampler(10, 4)
        self.assertRaises(RuntimeError, sampler.next_epoch)
        state = ResumableDistributedSampler(11, 4).state_dict()
        self.assertRaises(ValueError, sampler.load_state_dict, state)
        self.assertRaises(ValueError, ResumableDistributedSampler, 10, 4, rank=2, world=2)


def _prefetching(sampler, ahead):
    """Prefetches `ahead` batches, as a DataLoader with workers does."""
    taken = []
    for batch in sampler:
        taken.append(batch)
        if len(taken) > ahead:
            yield taken.pop(0)
    yield from taken


if __name__ == "__main__":
    unittest.main()
