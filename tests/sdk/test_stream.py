"""`job.batches` over an IterableDataset: every record once, also after a notice and at another number of ranks."""

import os
import signal
import unittest
from types import SimpleNamespace
from unittest import mock

import support
import swell
import torch
from swell.stream import Stream


class Numbers(torch.utils.data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class StreamTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, SWELL_CHECKPOINT_DIR=self.path("checkpoints"))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)

    def test_every_record_once_across_a_notice(self):
        seen = []
        self.train(seen, stop_after=4)
        self.assertEqual(len(seen), 4)
        self.train(seen)
        self.assertEqual([record for batch in seen for record in batch], 2 * list(range(23)))

    def train(self, seen, stop_after=None):
        job = swell.Job(env=swell.Env())
        left = None
        try:
            for batch in job.batches(Numbers(23), batch_size=5, epochs=2, keep={}):
                seen.append(batch.tolist())
                job.log(loss=torch.tensor(0.5))
                if len(seen) == stop_after:
                    os.kill(os.getpid(), signal.SIGTERM)
        except SystemExit as error:
            left = error.code
        self.assertEqual(left, None if stop_after is None else swell.EXIT_NOTICED)
        self.assertEqual(job.checkpoints.load().metrics, {"loss": 0.5})

    def test_ranks_share_each_batch(self):
        parts = []
        for rank in range(3):
            stream = Stream(Numbers(7), 4, SimpleNamespace(env=SimpleNamespace(rank=rank, world=3)), list)
            parts.append([(batch, stream.take(), stream.step_records) for batch in stream])
        self.assertEqual(parts[0], [([0], 1, 4), ([4], 1, 3)])
        self.assertEqual(parts[1], [([1], 1, 4), ([5], 1, 3)])
        self.assertEqual(parts[2], [([2, 3], 2, 4), ([6], 1, 3)])

    def test_a_rank_without_a_record_computes_one_without_weight(self):
        stream = Stream(Numbers(1), 4, SimpleNamespace(env=SimpleNamespace(rank=0, world=2)), list)
        self.assertEqual([(batch, stream.take()) for batch in stream], [([0], 0)])

    def test_a_dataset_that_can_skip_does_it_itself(self):
        class Skipping(Numbers):
            begin = 0

            def skip(self, count):
                self.begin = count

            def __iter__(self):
                return iter(range(self.begin, self.count))

        stream = Stream(Skipping(7), 4, SimpleNamespace(env=SimpleNamespace(rank=0, world=1)), list)
        stream.load_state_dict({"epoch": 0, "position": 4})
        self.assertEqual(list(stream), [[4, 5, 6]])

    def test_options_of_a_loader_are_refused(self):
        job = swell.Job(env=swell.Env())
        with self.assertRaisesRegex(ValueError, "an IterableDataset takes no num_workers; only collate_fn"):
            next(job.batches(Numbers(3), 1, 1, {}, num_workers=2))
        with self.assertRaisesRegex(ValueError, "batch_size is 0: expected 1 or more"):
            next(job.batches(Numbers(3), 0, 1, {}))


if __name__ == "__main__":
    unittest.main()
