"""Which records the next step trains, on every rank, such that an epoch survives preemption and resizing.

Used by training scripts as the `batch_sampler` of a torch DataLoader, or iterated directly; needs no torch.
One step takes the next `batch_size` records of the epoch's shuffle *for the whole job*; the ranks share them out.
So the number of steps in an epoch and the effective batch do not depend on the number of ranks.

What always holds:
* In an epoch every record is handed out exactly once over all ranks, whatever the world size was before and is
  after a resume, as long as the state is taken at a step boundary that all ranks have reached.
* Every rank gets the same number of batches. Where records do not divide evenly a rank's share may be smaller,
  even empty, so weigh the sum of the losses with `scale`: the mean over ranks is then the mean over records.
* A step counts once `commit()` is called. Whatever a prefetching loader has taken ahead is handed out again.
"""

import os
import random
from collections import deque


class ResumableDistributedSampler:
    def __init__(
        self, length, batch_size, seed=0, rank=0, world=1, shuffle=True, job=None, batch_of=None
    ):
        """`job`: whose rank and size count, as they change; in place of `rank` and `world`.

        `batch_of`: "job" keeps the effective batch constant; with "rank" it is batch_size times the number of ranks,
        and the learning rate may want to follow (`Job.learning_rate`). Without it, what the job's manifest says.
        """
        batch_of = batch_of or os.environ.get("SWELL_BATCH_OF") or "job"
        if length < 1 or batch_size < 1 or not 0 <= rank < world or batch_of not in ("job", "rank"):
            raise ValueError(
                f"bad sampler: length={length} batch_size={batch_size} rank={rank} world={world} batch_of={batch_of}"
            )
        self.length = length
        self.batch_size = batch_size
        self.seed = seed
        self._rank = rank
        self._world = world
        self._job = job
        self._batch_of = batch_of
        self.shuffle = shuffle
        self.epoch = 0
        self.position = 0
        self._outstanding = deque()

    @property
    def rank(self):
        return self._job.env.rank if self._job is not None else self._rank

    @property
    def world(self):
        return self._job.env.world if self._job is not None else self._world

    def __len__(self):
        """Batches left in this epoch, at the present size."""
        return -(-(self.length - self.position) // self._step_size())

    @property
    def done(self):
        """Whether every record of this epoch is trained."""
        return self.position == self.length

    def __iter__(self):
        order = self._order()
        self._outstanding.clear()
        world, epoch = self.world, self.epoch
        while self.epoch == epoch:
            start = self.position + sum(self._outstanding)
            # Shares taken ahead were cut for another number of ranks: a loader that did so starts again.
            if start >= self.length or (self._outstanding and self.world != world):
                return
            world = self.world
            count = min(self._step_size(), self.length - start)
            self._outstanding.append(count)
            low = start + count * self.rank // world
            high = start + count * (self.rank + 1) // world
            yield order[low:high]

    @property
    def step_records(self):
        """Records of the step being trained, on all ranks together."""
        return self._outstanding[0]

    @property
    def scale(self):
        """Factor for this rank's summed loss in the step being trained, for ranks that average gradients."""
        return self.world / self._outstanding[0]

    def commit(self):
        """The oldest batch handed out is trained, on all ranks."""
        self.position += self._outstanding.popleft()

    def next_epoch(self):
        if self.position != self.length:
            raise RuntimeError(f"epoch {self.epoch} is at record {self.position} of {self.length}")
        self.epoch += 1
        self.position = 0
        self._outstanding.clear()

    def state_dict(self):
        """The same on every rank, so one rank's copy restores them all."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "seed": self.seed,
            "length": self.length,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state):
        # The shuffle depends on these: with others, "position" would point into another order.
        for name in ("length", "shuffle"):
            if state[name] != getattr(self, name):
                raise ValueError(
                    f"the checkpoint's {name} is {state[name]}, this run's is {getattr(self, name)}"
                )
        self.seed = state["seed"]
        self.epoch = state["epoch"]
        self.position = state["position"]
        self._outstanding.clear()

    def _step_size(self):
        return self.batch_size * (self.world if self._batch_of == "rank" else 1)

    def _order(self):
        order = list(range(self.length))
        if self.shuffle:
            # A string seed: hashed by content, so the same on every machine and every rank.
            random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        return order
