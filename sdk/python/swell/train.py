"""The thin helper around a training loop: stop together, save once, leave with the agreed exit code.

Used by training scripts; three lines in a plain DDP script, see README.md. All ranks make the same calls in the
same order (`restore`, `should_stop`, `save`, `stop` are collective when the job has more than one rank).

What always holds: all ranks stop at the very same step, also when only one of them got the notice; when any
rank exits with 143, the checkpoint of that step is on disk; each rank's random generators continue where they
were when the world size is unchanged.
"""

import os
import random
import sys

from swell import report
from swell.checkpoint import Checkpoint, CheckpointManager
from swell.env import Env
from swell.notice import EXIT_NOTICED, Notice

_FORMAT = "swell-job-1"


class Job:
    def __init__(self, checkpoints=None, notice=None, env=None):
        """Make it first thing in the script: from here on a notice that comes too early ends it at once."""
        self.env = env or Env.read()
        self.checkpoints = checkpoints or CheckpointManager()
        self.notice = notice or Notice(hold=False)
        self._flag = None
        self._saved_step = None

    def restore(self):
        """The newest checkpoint, read by rank 0 and sent to the others (they need no common disk), or None.

        Call it once torch.distributed is up and before the first step.
        """
        self.notice.hold()
        found = self.checkpoints.load() if self.env.leader else None
        if found is not None:
            # A new pod has no report yet, and what stopping it would lose counts from this checkpoint.
            report.report_checkpoint(found.step, found.time, found.epoch, found.metrics)
        found = self._broadcast(found)
        if found is None:
            return None
        self._saved_step = found.step
        state = found.state
        if isinstance(state, dict) and state.get("format") == _FORMAT:
            if len(state["random"]) == self.env.world:
                _set_random_state(state["random"][self.env.rank])
            state = state["state"]
        return Checkpoint(found.step, state, found.time, found.epoch, found.metrics)

    def should_stop(self):
        """At a step boundary: has any rank been told to leave? The same answer on every rank."""
        if not self.env.distributed:
            return self.notice.requested
        import torch.distributed as dist

        if self._flag is None:
            import torch

            # One byte, allocated once: the whole cost of agreeing is one small all-reduce per step.
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flag = torch.zeros(1, dtype=torch.uint8, device=device)
        self._flag.fill_(1 if self.notice.requested else 0)
        dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
        return bool(self._flag.item())

    def save(self, step, state, epoch=None, metrics=None):
        """Saves on rank 0; `state` is the state or a function returning it, called on rank 0 only.

        Returns on every rank once the checkpoint is on disk.
        """
        ranks = self._gather(_random_state())
        if self.env.leader:
            content = state() if callable(state) else state
            wrapped = {"format": _FORMAT, "state": content, "random": ranks}
            self.checkpoints.save(step, wrapped, epoch=epoch, metrics=metrics)
        self._saved_step = step
        self._barrier()

    def stop(self, step, state, epoch=None, metrics=None):
        """Saves, says so, and exits with 143 on every rank. Does not return."""
        if self._saved_step != step:
            self.save(step, state, epoch=epoch, metrics=metrics)
        report.report_termination(step)
        sys.stdout.flush()
        sys.stderr.flush()
        if self.env.distributed:
            # Everything is saved. Tearing gloo down could wait for peers whose network is gone already.
            os._exit(EXIT_NOTICED)
        raise SystemExit(EXIT_NOTICED)

    def _broadcast(self, thing):
        if not self.env.distributed:
            return thing
        import torch.distributed as dist

        box = [thing]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def _gather(self, thing):
        if not self.env.distributed:
            return [thing]
        import torch.distributed as dist

        things = [None] * self.env.world
        dist.all_gather_object(things, thing)
        return things

    def _barrier(self):
        if self.env.distributed:
            import torch.distributed as dist

            dist.barrier()


def _random_state():
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return {
        "python": random.getstate(),
        "numpy": numpy.random.get_state() if numpy is not None else None,
        "torch": torch.get_rng_state() if torch is not None else None,
        "cuda": torch.cuda.get_rng_state() if torch is not None and torch.cuda.is_initialized() else None,
    }


def _set_random_state(state):
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    random.setstate(state["python"])
    if numpy is not None and state["numpy"] is not None:
        numpy.random.set_state(state["numpy"])
    if torch is not None and state["torch"] is not None:
        torch.set_rng_state(state["torch"])
    if torch is not None and state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
