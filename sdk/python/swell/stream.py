"""Which records of an `IterableDataset` each rank trains in the next step: `job.batches` for data without an index.

Used by `swell.loop` in place of sampler and loader. Every rank reads the whole stream, and trains its share of each
batch of the job. So the batches do not depend on the number of ranks, and a position in the stream is one number. To
resume, a rank reads and drops the records that were trained; a dataset that can do better has `skip(count)`, called
before it is iterated. `set_epoch(epoch)` is called, too, if the dataset has it.

With `num_workers` torch's loader reads the stream, a few records from each worker in turn. That order depends on the
number of workers, so a run must resume with the same number. `skip` is not called then: a worker sees a part only.

What always holds: in an epoch every record is trained exactly once, if the stream is the same whenever it is read.
"""

import os
import random
from itertools import chain, islice

# Records that a worker hands over at once. It is saved, because the order of records depends on it.
_CHUNK = 16


class Stream:
    def __init__(self, dataset, batch_size, job, collate, loader_options=None):
        """`loader_options`: of torch's DataLoader, for the workers that read the stream."""
        self._dataset = dataset
        self._batch_size = batch_size
        self._job = job
        self._collate = collate
        self._options = loader_options or {}
        self._workers = self._options.get("num_workers", 0)
        self._chunk = _CHUNK
        self._batch_of = os.environ.get("SWELL_BATCH_OF")
        self._share = 0
        self._step_size()  # a job that chooses the batch learns the script's own, which rates refer to
        self.seed = 0
        self.epoch = 0
        self.position = 0
        self.done = False
        self.at_last = False  # the current step is the last of the epoch
        self.step_records = 0
        self.steps_per_epoch = 0  # not known

    def __iter__(self):
        source = self._records()
        following = []
        while records := list(islice(chain(following, source), self._step_size())):
            following = list(islice(source, 1))
            rank, world = self._job.env.rank, self._job.env.world
            share = records[len(records) * rank // world : len(records) * (rank + 1) // world]
            self.step_records, self._share, self.at_last = len(records), len(share), not following
            # A rank without a record computes one with weight 0, because all ranks must take part.
            yield self._collate(share or records[:1])
        self.done = True

    def _records(self):
        """Those of the epoch that are left."""
        own_skip = hasattr(self._dataset, "skip") and not self._workers
        if hasattr(self._dataset, "set_epoch"):
            self._dataset.set_epoch(self.epoch)
        if own_skip:
            self._dataset.skip(self.position)
        source = self._read_by_workers() if self._workers else iter(self._dataset)
        return source if own_skip else islice(source, self.position, None)

    def _read_by_workers(self):
        import torch

        # Workers get their seeds from it: the same on every rank and whenever the epoch is read, so that a dataset
        # which shuffles draws the same order.
        generator = torch.Generator()
        generator.manual_seed(random.Random(f"{self.seed}/{self.epoch}").getrandbits(63))
        options = {"generator": generator, **self._options}
        loader = torch.utils.data.DataLoader(self._dataset, self._chunk, collate_fn=list, **options)
        return chain.from_iterable(loader)

    def _step_size(self):
        if self._batch_of == "goodput":
            return self._job.batch_size.of(self._batch_size)
        return self._batch_size * (self._job.env.world if self._batch_of == "rank" else 1)

    def take(self):
        """The number of records in this rank's share of the current step."""
        return self._share

    def commit(self):
        self.position += self.step_records

    def next_epoch(self):
        self.epoch, self.position, self.done = self.epoch + 1, 0, False

    def state_dict(self):
        return {"epoch": self.epoch, "position": self.position, "workers": self._workers, "chunk": self._chunk}

    def load_state_dict(self, state):
        workers = state.get("workers", 0)
        if workers != self._workers:
            raise ValueError(
                f"num_workers was {workers} in the run that saved and is {self._workers} now; the order of a stream's "
                "records depends on it"
            )
        self._chunk = state.get("chunk", _CHUNK)
        self.epoch, self.position, self.done = state["epoch"], state["position"], False
