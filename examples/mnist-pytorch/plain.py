"""Replaces the Swell SDK where it is not installed: the same calls, without notices and checkpoints.

Used by mnist.py, so that the same script runs with and without Swell.
"""

import atexit
import contextlib
import os
import random


class Env:
    def __init__(self):
        self.rank = int(os.environ.get("RANK") or 0)
        self.world = int(os.environ.get("WORLD_SIZE") or 1)
        self.distributed = self.world > 1
        self.leader = self.rank == 0


class Job:
    checkpoints = None
    backend = None

    def __init__(self):
        self.env = Env()

    def parallel(self, network, example=None):
        if not self.env.distributed:
            return network
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group(self.backend)
        # Before the interpreter shuts down: torch's threads need it, and would abort the process later.
        atexit.register(dist.destroy_process_group)
        return DistributedDataParallel(network)

    def join(self):
        pass

    def restore(self):
        return None

    def guard(self, state, load):
        return contextlib.nullcontext()

    def step_done(self, step, state, epoch=None, records=None):
        return False

    def save(self, step, state, epoch=None, metrics=None):
        return False


class ResumableDistributedSampler:
    def __init__(self, length, batch_size, seed, job):
        self.length, self.batch_size, self.seed = length, batch_size, seed
        self.rank, self.world = job.env.rank, job.env.world
        self.epoch = self.position = self._count = 0

    def __iter__(self):
        order = list(range(self.length))
        random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        while self.position < self.length:
            batch = order[self.position : self.position + self.batch_size]
            self._count = len(batch)
            low = self._count * self.rank // self.world
            yield batch[low : self._count * (self.rank + 1) // self.world]

    @property
    def scale(self):
        return self.world / self._count

    def commit(self):
        self.position += self._count

    def next_epoch(self):
        self.epoch += 1
        self.position = 0

    def state_dict(self):
        return {}
