"""The thin helper around a training loop: stop together, change size together, save once, leave with the agreed code.

Used by training scripts; three lines in a plain DDP script, see README.md. All ranks make the same calls in the
same order (`join`, `restore`, `step_done`, `should_stop`, `save`, `stop` are collective when the job has more than one
rank).

What always holds: all ranks stop or change size at the very same step, also when only one of them got the notice; a
rank exits with 143 only once that step is on disk or in the memory of a rank that stays; each rank's random generators
continue where they were when the world size is unchanged; a checkpoint that cannot be written costs no training.
"""

import atexit
import contextlib
import os
import random
import sys
import time
import traceback
from datetime import timedelta

from swell import report
from swell.checkpoint import Checkpoint, CheckpointManager
from swell.env import Env
from swell.meeting import Done
from swell.notice import EXIT_NOTICED, Notice
from swell.weight import Weight

_FORMAT = "swell-job-1"
# What ranks agree on after a step; the greatest of what they say holds.
_GO_ON, _SAVE, _STOP = 0, 1, 2


class Job:
    def __init__(
        self,
        checkpoints=None,
        notice=None,
        env=None,
        backend=None,
        timeout=timedelta(minutes=10),
        checkpoint_seconds=None,
        clock=time.monotonic,
    ):
        """Make it first thing in the script: from here on a notice that comes too early ends it at once.

        `checkpoint_seconds`: `step_done` saves when the last checkpoint is older; without it, as the job's manifest
        says (`spec.checkpoint.intervalSeconds`), else only when ranks are told to leave.
        """
        self.env = env or Env.read()
        self.checkpoints = checkpoints or CheckpointManager()
        self.notice = notice or Notice(hold=False)
        self.resizes = 0
        self.weight = Weight()  # of the step being trained in `batches`
        self.backend = backend
        self._timeout = timeout
        self._flag = None
        self._saved_step = None
        self._wrappers = []
        self._rates = []
        self._group = None
        self._joined = False
        self._handed_over = None
        self._progress = report.Progress()
        self._clock = clock
        self._save_seconds = _save_seconds() if checkpoint_seconds is None else checkpoint_seconds
        self._save_tried = clock()

    @property
    def scale(self):
        """What a sum of this rank's losses is multiplied by in the step being trained in `batches`.

        A script whose loss is a mean needs none: `parallel` weighs it.
        """
        return self.weight.of_sum()

    def parallel(self, network, example=None, **options):
        """`network` as DistributedDataParallel(network, **options), which holds for every size of the job.

        `example`: an input, of zeros say. With it sums come out the same to the last bit however often the job is
        resumed; see README.md.
        """
        from swell.parallel import Parallel

        wrapper = Parallel(network, example, options, lambda: self.weight)
        self._wrappers.append(wrapper)
        return wrapper

    def learning_rate(self, optimizer, rule=None, world=None):
        """Keeps the rates of `optimizer` right when the number of ranks changes; see `swell.rates`.

        `rule`: "none", "linear" or "sqrt"; without one, what the job's manifest says. `world`: the number of ranks that
        the rates were chosen for; without it, as many as the job begins with.
        """
        from swell.rates import Rates

        rule = rule or os.environ.get("SWELL_LEARNING_RATE") or "none"
        self._rates.append(Rates(optimizer, rule, world or self.env.world))
        if self._joined:
            self._rates[-1].follow(self.env.world)

    def join(self):
        """Meets the other ranks: starts torch.distributed unless the script has. `restore` does it, too."""
        if self._joined:
            return
        if self.env.elastic and not _initialized():
            self._join_group()
        elif self.env.distributed and self._wrappers and not _initialized():
            import torch.distributed as dist

            dist.init_process_group(self.backend or _backend(), timeout=self._timeout)
            _at_good_end(self._let_go)
        if self._group is None:
            for wrapper in self._wrappers:
                wrapper.rebuild(self.env.world)
        self._joined = True
        for rates in self._rates:
            rates.follow(self.env.world)

    def restore(self):
        """The newest checkpoint, read by rank 0 and sent to the others (they need no common disk), or None.

        A rank that joins a job that trains gets the state from the memory of another. Call it before the first step,
        once the networks are made.
        """
        self.join()
        self.notice.hold()
        if self._handed_over is not None:
            found, self._handed_over = self._handed_over, None
            self._saved_step = None
            return found
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

    def step_done(self, step, state, epoch=None, metrics=None, records=None):
        """Call it after every step, on every rank: True when ranks have come or gone since the last one.

        Saves and exits with 143 when the job is told to stop; an elastic job goes on with the ranks that stay and
        those that joined. `records`: how many were trained in this step by the whole job, for the reported speed.
        """
        if self.env.leader:
            self._progress.step(step, self.env.world, records)
        if self._group is None:
            agreed = self._agree()
            if agreed == _STOP:
                self.stop(step, state, epoch=epoch, metrics=metrics)
            if agreed == _SAVE and self._saved_step != step:
                self.save(step, state, epoch=epoch, metrics=metrics)
            return False
        leaving, joining, giving_up, save = self._group.agree(self.notice.requested, step, self._save_is_due())
        if not leaving and not joining and not giving_up:
            if save and self._saved_step != step:
                self.save(step, state, epoch=epoch, metrics=metrics)
            return False
        if giving_up:
            # Another group of this job has trained further; what this one has done is not to be kept.
            self._leave(step, saved=False)
        if len(leaving) == self.env.world:
            self.stop(step, state, epoch=epoch, metrics=metrics)
        return self._change_size(step, state, leaving, epoch)

    @contextlib.contextmanager
    def guard(self, state, load):
        """Around one step: when a peer is lost without a word, the others meet anew and do that step again.

        `state()` returns what a checkpoint would hold, with its "step"; `load(state)` takes it back. Those left
        go on from the memory of the one that came furthest. Without it, or where nobody is left, the loss ends the
        process, which comes back and goes on from the last checkpoint.
        """
        try:
            yield
        except RuntimeError as error:
            if self._group is None or not _lost_peers(error):
                raise
            self._recover(error, state, load)

    def batches(self, dataset, batch_size, epochs, keep, seed=0, checkpoint_every=0, **loader):
        """The whole loop around a step: `for batch in job.batches(...)`; see `swell.loop`."""
        from swell.loop import batches

        return batches(self, dataset, batch_size, epochs, keep, seed, checkpoint_every, loader)

    def should_stop(self):
        """At a step boundary: has any rank been told to leave? The same answer on every rank."""
        return self._agree() == _STOP

    def _agree(self):
        own = _STOP if self.notice.requested else _SAVE if self._save_is_due() else _GO_ON
        if not self.env.distributed:
            return own
        import torch.distributed as dist

        if self._flag is None:
            import torch

            # One byte, allocated once: the whole cost of agreeing is one small all-reduce per step.
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flag = torch.zeros(1, dtype=torch.uint8, device=device)
        self._flag.fill_(own)
        dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
        return int(self._flag.item())

    def _save_is_due(self):
        """By the clock of rank 0: others could be a step apart."""
        if not self.env.leader or self._save_seconds <= 0:
            return False
        return self._clock() - self._save_tried >= self._save_seconds

    def save(self, step, state, epoch=None, metrics=None):
        """Saves on rank 0; `state` is the state or a function returning it, called on rank 0 only.

        True on every rank once the checkpoint is on disk. When the disk does not take it, says so and goes on: False,
        and the checkpoints before it are as they were.
        """
        ranks = self._gather(_random_state())
        saved = True
        self._save_tried = self._clock()
        if self.env.leader:
            content = state() if callable(state) else state
            wrapped = {"format": _FORMAT, "state": content, "random": ranks}
            try:
                self.checkpoints.save(step, wrapped, epoch=epoch, metrics=metrics)
            except OSError as error:
                saved = False
                reason = error.strerror or str(error)
                report.complain(f"checkpoint of step {step} not saved, training goes on: {reason}")
        saved = self._broadcast(saved)
        if saved:
            self._saved_step = step
        return saved

    def stop(self, step, state, epoch=None, metrics=None):
        """Saves, says so, and exits with 143 on every rank. Does not return."""
        saved = self._saved_step == step or self.save(step, state, epoch=epoch, metrics=metrics)
        if saved and self.env.leader:
            print(f"swell: checkpoint saved step={step} reason=notice", flush=True)
        self._leave(step, saved)

    def _leave(self, step, saved):
        if saved:
            report.report_termination(step)
        sys.stdout.flush()
        sys.stderr.flush()
        if self._group is not None:
            self._group.close(done=False)
        if _initialized():
            # Everything is saved. Tearing gloo down could wait for peers whose network is gone already.
            os._exit(EXIT_NOTICED)
        raise SystemExit(EXIT_NOTICED)

    def _let_go(self):
        """While the interpreter is whole: torch's threads need it, and abort the process where it is going already."""
        from swell.resize import destroy_group

        destroy_group(self._wrappers)

    def _join_group(self):
        from swell.resize import Group

        self._group = Group(self.env, self.backend or _backend(), self._timeout)
        _at_good_end(self._let_go)
        # Before that: what runs at the end runs in the reverse of this order.
        _at_good_end(lambda: self._group.close(done=True))
        # Whoever looks after the job need not wait for a member that waits itself.
        report.report_progress({"world": 0})
        with _nobody_left_to_join():
            received = self._group.join(self._wrappers)
        self.env = self._group.env
        report.report_progress({"world": self.env.world})
        if received is not None:
            self._handed_over = Checkpoint(received["step"], received["state"], report.now(), received["epoch"])

    def _recover(self, error, state, load):
        begin = time.monotonic()
        before = self.env.world
        # What the failed step left on its frames would keep the old wrappers, and with them their group.
        traceback.clear_frames(error.__traceback__)
        own = state()
        step = own["step"]
        print(f"swell: step {step}: lost a peer ({str(error).splitlines()[0]})", file=sys.stderr, flush=True)
        with _nobody_left_to_join():
            received = self._group.rejoin(self._wrappers, step, {"step": step, "epoch": None, "state": own})
        self.env = self._group.env
        # A half-done step leaves traces, such as a batch that is out: everybody takes a whole state.
        load(received["state"] if received is not None else own)
        self._resized(received["step"] if received is not None else step, before, begin)

    def _change_size(self, step, state, leaving, epoch):
        begin = time.monotonic()
        before = self.env.world

        def hand_over():
            content = state() if callable(state) else state
            return {"step": step, "epoch": epoch, "state": content}

        if not self._group.change(leaving, self._wrappers, hand_over):
            # What this rank has trained lives on in those that stay.
            self._leave(step, saved=True)
        self.env = self._group.env
        self._resized(step, before, begin)
        return True

    def _resized(self, step, before, begin):
        for rates in self._rates:
            rates.follow(self.env.world)
        self.resizes += 1
        seconds = time.monotonic() - begin
        self._progress.resized(seconds)
        if self.env.leader:
            print(f"swell: step {step}: {before} -> {self.env.world} ranks in {seconds:.3f} s", flush=True)

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


def _save_seconds():
    try:
        return float(os.environ.get("SWELL_CHECKPOINT_SECONDS") or 0)
    except ValueError:
        return 0.0


def _initialized():
    torch = sys.modules.get("torch")
    return torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()


@contextlib.contextmanager
def _nobody_left_to_join():
    """When the job ends while this member waits for the others, it ends as well as they did."""
    try:
        yield
    except Done:
        print("swell: the training ended before this member could join", file=sys.stderr, flush=True)
        raise SystemExit(0) from None


def _lost_peers(error):
    """Whether a collective failed because of the others; a wrong shape, say, is this process's own failure."""
    text = str(error)
    return "gloo" in text or "NCCL" in text or "Connection closed by peer" in text


def _backend():
    import torch

    return "nccl" if torch.cuda.is_available() else "gloo"


def _at_good_end(action):
    """Runs `action` when the process ends, unless an exception ends it."""
    failed = []
    report_exception = sys.excepthook

    def note(kind, value, trace):
        failed.append(kind)
        report_exception(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: failed or action())


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
