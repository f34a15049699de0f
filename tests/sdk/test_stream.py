"""`job.batches` over an IterableDataset: every record once, also after a notice and at another number of ranks."""

import os
import signal
import time
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


class Divided(Numbers):
    """Each worker reads a part, in an order that it draws."""

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        own = range(worker.id, self.count, worker.num_workers)
        return iter([own[i] for i in torch.randperm(len(own)).tolist()])


def stream_of(dataset, rank=0, world=1, **options):
    return Stream(dataset, 8, SimpleNamespace(env=SimpleNamespace(rank=rank, world=world)), list, options)


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

    def test_workers_read_the_same_order_on_each_rank_and_when_it_resumes(self):
        whole = list(stream_of(Divided(50), num_workers=2))
        self.assertEqual(sorted(record for batch in whole for record in batch), list(range(50)))
        halves = [list(stream_of(Divided(50), rank, 2, num_workers=2)) for rank in range(2)]
        self.assertEqual([a + b for a, b in zip(*halves)], whole)
        resumed = stream_of(Divided(50), num_workers=2)
        resumed.load_state_dict({"epoch": 0, "position": 24, "workers": 2, "chunk": 16})
        self.assertEqual(list(resumed), whole[3:])

    def test_another_number_of_workers_is_refused(self):
        saved = stream_of(Divided(50), num_workers=2).state_dict()
        with self.assertRaisesRegex(ValueError, "num_workers was 2 in the run that saved and is 0 now"):
            stream_of(Divided(50)).load_state_dict(saved)

    def test_the_last_step_of_an_epoch_is_known(self):
        for count, ends in ((17, [False, False, True]), (16, [False, True]), (1, [True])):
            stream = stream_of(Numbers(count))
            self.assertEqual([stream.at_last for _ in stream], ends)

    def test_a_later_step_costs_no_more_than_an_early_one(self):
        stream = Stream(Numbers(50000), 1, SimpleNamespace(env=SimpleNamespace(rank=0, world=1)), list)
        begin = time.process_time()
        self.assertEqual(sum(1 for _ in stream), 50000)
        self.assertLess(time.process_time() - begin, 5, "0.1 s where no step adds to the cost of the next")

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
        with self.assertRaisesRegex(ValueError, "an IterableDataset takes no pin_memory; of a loader's options: co"):
            next(job.batches(Numbers(3), 1, 1, {}, pin_memory=True))
        with self.assertRaisesRegex(ValueError, "batch_size is 0: expected 1 or more"):
            next(job.batches(Numbers(3), 0, 1, {}))


if __name__ == "__main__":
    unittest.main()
