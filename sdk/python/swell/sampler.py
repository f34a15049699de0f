"""`ResumableDistributedSampler`: which records each rank trains in the next step. Survives preemption and resizing.

Used by training scripts as the `batch_sampler` of a torch DataLoader, or iterated directly; needs no torch. One step
takes the next `batch_size` records of the shuffled epoch *for the whole job*, and each rank gets a share of them. So
the number of steps in an epoch and the effective batch do not depend on the number of ranks.

What always holds:
* In an epoch every record is handed out exactly once over all ranks, whatever the world size was before and is
  after a resume, if the state is taken between two steps.
* Every rank gets the same number of batches. If records do not divide evenly, a rank's share may be smaller or
  empty. Multiply the sum of the losses with `scale`: then the mean over ranks is the mean over records.
* A step counts once `commit()` is called. Batches that a loader has prefetched are handed out again after a resume.
  A state that is loaded within a loop, as after the loss of a peer, ends that loop if batches were prefetched. Until
  another loop begins, their use is an error: they are not those that come next.
"""

import os
import random
from collections import deque


_BATCHES = ("job", "rank", "goodput")


class ResumableDistributedSampler:
    def __init__(
        self, length, batch_size, seed=0, rank=0, world=1, shuffle=True, job=None, batch_of=None
    ):
        """`job`: takes rank and world size from this Job, also when they change, instead of from `rank` and `world`.

        `batch_of`: "job" keeps the effective batch constant. With "rank" it is batch_size times the number of ranks,
        and with "goodput" the job chooses it (`swell.batch`), so the learning rate may have to change too
        (`Job.learning_rate`). The default comes from the job's manifest.
        """
        batch_of = batch_of or os.environ.get("SWELL_BATCH_OF") or "job"
        if length < 1 or batch_size < 1:
            what = ("length", length) if length < 1 else ("batch_size", batch_size)
            raise ValueError("%s is %s: expected 1 or more" % what)
        if not 0 <= rank < world:
            raise ValueError(f"rank is {rank} and world {world}: expected a rank of 0 to {world - 1}")
        if batch_of not in _BATCHES:
            raise ValueError(f"batch_of is {batch_of!r}: expected {', '.join(_BATCHES)} (or SWELL_BATCH_OF)")
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
        self._drew_last = False  # and not committed
        self._loop = 0  # counts those that a loaded state has ended
        self._ended = False  # no other loop has begun since
        self._drawn = (None, None)  # (what decides an order, that order)
        self._step_size()  # a job that chooses the batch learns the script's own, which rates refer to

    @property
    def rank(self):
        return self._job.env.rank if self._job is not None else self._rank

    @property
    def world(self):
        return self._job.env.world if self._job is not None else self._world

    def __len__(self):
        """Batches left in this epoch at the current world size."""
        return -(-(self.length - self.position) // self._step_size())

    @property
    def steps_per_epoch(self):
        """Steps of a whole epoch at the current world size."""
        return -(-self.length // self._step_size())

    @property
    def done(self):
        """True if every record of this epoch is trained."""
        return self.position == self.length

    def __iter__(self):
        order = self._order()
        self._outstanding.clear()
        self._ended = False
        world, size, epoch, loop = self.world, self._step_size(), self.epoch, self._loop
        while self.epoch == epoch and self._loop == loop:
            start = self.position + sum(self._outstanding)
            # Prefetched shares are of the old number of ranks, or of the old batch. The loader must start again.
            moved = (self.world, self._step_size()) != (world, size)
            if start >= self.length or (self._outstanding and moved):
                return
            world, size = self.world, self._step_size()
            count = min(size, self.length - start)
            self._outstanding.append(count)
            self._drew_last = True
            low = start + count * self.rank // world
            high = start + count * (self.rank + 1) // world
            yield list(order[low:high])

    @property
    def step_records(self):
        """Records of the current step, over all ranks."""
        self._refuse_stale()
        return self._outstanding[0]

    @property
    def at_last(self):
        """True if the current step is the last of the epoch."""
        return self.position + self.step_records == self.length

    @property
    def scale(self):
        """The factor for the sum of this rank's losses in the current step, if ranks average gradients as DDP does."""
        self._refuse_stale()
        return self.world / self._outstanding[0]

    def commit(self):
        """Call it when all ranks have trained the oldest batch that was handed out."""
        self._refuse_stale()
        self.position += self._outstanding.popleft()
        self._drew_last = False

    def next_epoch(self):
        """Begins the next epoch. Raises RuntimeError if records of this one are left."""
        if self.position != self.length:
            raise RuntimeError(f"epoch {self.epoch} is at record {self.position} of {self.length}")
        self.epoch += 1
        self.position = 0
        self._outstanding.clear()

    def state_dict(self):
        """The position in the data. It is the same on every rank, so one copy restores all ranks."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "seed": self.seed,
            "length": self.length,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state):
        # The order of records depends on these, and "position" is a position in that order.
        if state["length"] != self.length:
            before = state["length"]
            raise ValueError(f"the dataset had {before} records in the run that saved, and has {self.length} now")
        if state["shuffle"] != self.shuffle:
            raise ValueError(f"shuffle was {state['shuffle']} in the run that saved, and is {self.shuffle} now")
        self.seed = state["seed"]
        self.epoch = state["epoch"]
        self.position = state["position"]
        if self._prefetched():
            self._loop += 1
            self._ended = True
        self._outstanding.clear()

    def _prefetched(self):
        """Whether batches were drawn before the one under way was trained. Without workers there is one at a time."""
        return len(self._outstanding) > 1 or (len(self._outstanding) == 1 and not self._drew_last)

    def _refuse_stale(self):
        if self._ended:
            raise RuntimeError(
                "this batch was prefetched before another state was loaded. After `with job.guard(state, load) as "
                "guarded:`, start the DataLoader again if guarded.repeats"
            )

    def _step_size(self):
        if self._batch_of == "goodput" and self._job is not None:
            return self._job.batch_size.of(self.batch_size)
        return self.batch_size * (self.world if self._batch_of == "rank" else 1)

    def _order(self):
        if not self.shuffle:
            return range(self.length)
        # A loop that begins anew within an epoch, as after a loss, does not draw again: of a million records that takes
        # a second, for which all ranks wait. A string seed is hashed by content, so the order is the same on every
        # machine and every rank.
        place = f"{self.seed}/{self.epoch}"
        if self._drawn[0] != place:
            order = list(range(self.length))
            random.Random(place).shuffle(order)
            self._drawn = (place, order)
        return self._drawn[1]
