"""Which records of an `IterableDataset` each rank trains in the next step: `job.batches` for data without an index.

Used by `swell.loop` in place of sampler and loader. Every rank reads the whole stream, and trains its share of each
batch of the job. So the batches do not depend on the number of ranks, and a position in the stream is one number. To
resume, a rank reads and drops the records that were trained; a dataset that can do better has `skip(count)`, called
before it is iterated. `set_epoch(epoch)` is called, too, if the dataset has it.

What always holds: in an epoch every record is trained exactly once, if the stream is the same whenever it is read.
"""

import os
from itertools import islice


class Stream:
    def __init__(self, dataset, batch_size, job, collate):
        self._dataset = dataset
        self._batch_size = batch_size
        self._job = job
        self._collate = collate
        self._batch_of = os.environ.get("SWELL_BATCH_OF")
        self._share = 0
        self._step_size()  # a job that chooses the batch learns the script's own, which rates refer to
        self.seed = 0
        self.epoch = 0
        self.position = 0
        self.done = False
        self.step_records = 0
        self.steps_per_epoch = 0  # not known

    def __iter__(self):
        for record, call in ((self.epoch, "set_epoch"), (self.position, "skip")):
            if hasattr(self._dataset, call):
                getattr(self._dataset, call)(record)
        source = iter(self._dataset)
        if not hasattr(self._dataset, "skip"):
            for _ in islice(source, self.position):
                pass
        while records := list(islice(source, self._step_size())):
            rank, world = self._job.env.rank, self._job.env.world
            share = records[len(records) * rank // world : len(records) * (rank + 1) // world]
            self.step_records, self._share = len(records), len(share)
            # A rank without a record computes one with weight 0, because all ranks must take part.
            yield self._collate(share or records[:1])
        self.done = True

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
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state):
        self.epoch, self.position, self.done = state["epoch"], state["position"], False
