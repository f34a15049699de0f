"""`Job`, the helper around a training loop: it restores, saves, stops and resizes on all ranks together.

Used by training scripts; README.md has the three lines that a plain DDP script needs. All ranks make the same calls in
the same order: `join`, `restore`, `step_done`, `should_stop`, `save` and `stop` are collective if the job has more than
one rank.

What always holds:
* All ranks stop or change size after the same step, also if only one of them got the notice.
* A rank exits with 143 only when that step is on disk or in the memory of a rank that stays.
* If the world size is unchanged, the random generators of each rank continue where they were.
* A checkpoint that cannot be written does not stop the training.
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
from swell.notice import EXIT_NOTICED, Notice
from swell.rendezvous import JobEnded
from swell.weight import Weight

_FORMAT = "swell-job-1"
# What a rank wants after a step. The greatest value of all ranks wins.
_CONTINUE, _SAVE, _STOP = 0, 1, 2


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
        """Create the Job first in the script. Until `restore` returns, a notice ends the process at once.

        `checkpoint_seconds`: `step_done` saves if the last checkpoint is older than this. The default comes from the
        job's manifest (`spec.checkpoint.intervalSeconds`); without either, the job saves only when it must stop.
        """
        self.env = env or Env.read()
        self.checkpoints = checkpoints or CheckpointManager()
        self.notice = notice or Notice(hold=False)
        self.resizes = 0
        self.weight = Weight()  # of the current step of `batches`
        self.backend = backend
        self._timeout = timeout
        self._flag = None
        self._saved_step = None
        self._wrappers = []
        self._rates = []
        self._group = None
        self._joined = False
        self._received = None
        self._progress = report.Progress()
        self._clock = clock
        self._save_seconds = _save_seconds() if checkpoint_seconds is None else checkpoint_seconds
        self._last_save_attempt = clock()

    @property
    def scale(self):
        """In the current step of `batches`: the factor for the sum of this rank's losses.

        A script whose loss is a mean does not need it: `parallel` weighs the gradients.
        """
        return self.weight.of_sum()

    def parallel(self, network, example=None, **options):
        """DistributedDataParallel(network, **options) that stays valid when the job changes size.

        `example`: an input for the network, for instance zeros. With it a resumed run computes the same weights as an
        undisturbed one, bit for bit; see README.md.
        """
        from swell.parallel import Parallel

        wrapper = Parallel(network, example, options, lambda: self.weight)
        self._wrappers.append(wrapper)
        return wrapper

    def learning_rate(self, optimizer, rule=None, world=None):
        """Adapts the learning rates of `optimizer` when the number of ranks changes; see `swell.rates`.

        `rule`: "none", "linear" or "sqrt"; the default comes from the job's manifest. `world`: the number of ranks that
        the rates were chosen for; the default is the number at the start.
        """
        from swell.rates import Rates

        rule = rule or os.environ.get("SWELL_LEARNING_RATE") or "none"
        self._rates.append(Rates(optimizer, rule, world or self.env.world))
        if self._joined:
            self._rates[-1].follow(self.env.world)

    def join(self):
        """Forms the process group, unless the script has done so. `restore` calls it."""
        if self._joined:
            return
        if self.env.elastic and not _initialized():
            self._join_group()
        elif self.env.distributed and self._wrappers and not _initialized():
            import torch.distributed as dist

            dist.init_process_group(self.backend or _backend(), timeout=self._timeout)
            _at_clean_exit(self._destroy_group)
        if self._group is None:
            for wrapper in self._wrappers:
                wrapper.rebuild(self.env.world)
        self._joined = True
        for rates in self._rates:
            rates.follow(self.env.world)

    def restore(self):
        """The newest `Checkpoint`, or None if there is none.

        Rank 0 reads it and sends it to the others, so they need no shared disk. A rank that joins while the others
        train gets the state from the memory of rank 0. Call it after the networks are made, before the first step.
        """
        self.join()
        self.notice.hold()
        if self._received is not None:
            found, self._received = self._received, None
            self._saved_step = None
            return found
        found = self.checkpoints.load() if self.env.leader else None
        if found is not None:
            # A new pod has no report yet. Work since this checkpoint is what a preemption would lose.
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
        """Call it after every step, on every rank. True if the number of ranks has changed since the last step.

        If the job must stop, it saves and exits with 143. An elastic job continues with the ranks that stay and those
        that join. `state`: what to save, or a function that returns it. `records`: how many records the whole job
        trained in this step, for the reported speed.
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
            # Another group of this job has trained further. The work of this one is dropped.
            self._leave(step, saved=False)
        if len(leaving) == self.env.world:
            self.stop(step, state, epoch=epoch, metrics=metrics)
        return self._change_size(step, state, leaving, epoch)

    @contextlib.contextmanager
    def guard(self, state, load):
        """A context for one step. If a peer dies in it, the other ranks form a new group and repeat the step.

        `state()` returns what a checkpoint would hold, with its "step"; `load(state)` restores it. The ranks continue
        from the memory of the rank that trained furthest. Without `guard`, or if no other rank is left, the error ends
        the process; when it is restarted, it resumes from the last checkpoint.
        """
        try:
            yield
        except RuntimeError as error:
            if self._group is None or not _is_lost_peer(error):
                raise
            self._recover(error, state, load)

    def batches(self, dataset, batch_size, epochs, keep, seed=0, checkpoint_every=0, **loader):
        """The batches of all epochs: `for batch in job.batches(...)`; see `swell.loop`."""
        from swell.loop import batches

        return batches(self, dataset, batch_size, epochs, keep, seed, checkpoint_every, loader)

    def should_stop(self):
        """True on every rank if any rank got a notice. Call it between two steps."""
        return self._agree() == _STOP

    def _agree(self):
        own = _STOP if self.notice.requested else _SAVE if self._save_is_due() else _CONTINUE
        if not self.env.distributed:
            return own
        import torch.distributed as dist

        if self._flag is None:
            import torch

            # One byte, allocated once. A step costs one small all-reduce.
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flag = torch.zeros(1, dtype=torch.uint8, device=device)
        self._flag.fill_(own)
        dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
        return int(self._flag.item())

    def _save_is_due(self):
        """Decided by rank 0: the clocks of other ranks could be one step apart."""
        if not self.env.leader or self._save_seconds <= 0:
            return False
        return self._clock() - self._last_save_attempt >= self._save_seconds

    def save(self, step, state, epoch=None, metrics=None):
        """Saves a checkpoint on rank 0. `state`: what to save, or a function that returns it, called on rank 0 only.

        Returns True on every rank once the checkpoint is on disk. If it cannot be written, the reason goes to stderr,
        earlier checkpoints stay as they are, and the result is False.
        """
        ranks = self._gather(_random_state())
        saved = True
        self._last_save_attempt = self._clock()
        if self.env.leader:
            content = state() if callable(state) else state
            wrapped = {"format": _FORMAT, "state": content, "random": ranks}
            try:
                self.checkpoints.save(step, wrapped, epoch=epoch, metrics=metrics)
            except OSError as error:
                saved = False
                reason = error.strerror or str(error)
                report.complain(f"checkpoint of step {step} not saved, training continues: {reason}")
        saved = self._broadcast(saved)
        if saved:
            self._saved_step = step
        return saved

    def stop(self, step, state, epoch=None, metrics=None):
        """Saves and exits with 143 on every rank. Does not return."""
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
            # Everything is saved. A regular exit would shut gloo down, which can wait for peers that are gone.
            os._exit(EXIT_NOTICED)
        raise SystemExit(EXIT_NOTICED)

    def _destroy_group(self):
        """Runs before the interpreter shuts down: torch's threads need it, and would abort the process later."""
        from swell.resize import destroy_group

        destroy_group(self._wrappers)

    def _join_group(self):
        from swell.resize import Group

        self._group = Group(self.env, self.backend or _backend(), self._timeout)
        _at_clean_exit(self._destroy_group)
        # Registered last, so it runs first: exit functions run in reverse order.
        _at_clean_exit(lambda: self._group.close(done=True))
        # Tells the controller that this member waits, so that it does not wait for this member.
        report.report_progress({"world": 0})
        with _exit_if_job_ended():
            received = self._group.join(self._wrappers)
        self.env = self._group.env
        report.report_progress({"world": self.env.world})
        if received is not None:
            self._received = Checkpoint(received["step"], received["state"], report.now(), received["epoch"])

    def _recover(self, error, state, load):
        begin = time.monotonic()
        before = self.env.world
        # Locals of the failed step would keep the old wrappers alive, and with them their group.
        traceback.clear_frames(error.__traceback__)
        own = state()
        step = own["step"]
        print(f"swell: step {step}: lost a peer ({str(error).splitlines()[0]})", file=sys.stderr, flush=True)
        with _exit_if_job_ended():
            received = self._group.rejoin(self._wrappers, step, {"step": step, "epoch": None, "state": own})
        self.env = self._group.env
        # Every rank loads a whole state: a half-done step leaves traces, such as a batch that was handed out.
        load(received["state"] if received is not None else own)
        self._resized(received["step"] if received is not None else step, before, begin)

    def _change_size(self, step, state, leaving, epoch):
        begin = time.monotonic()
        before = self.env.world

        def full_state():
            content = state() if callable(state) else state
            return {"step": step, "epoch": epoch, "state": content}

        if not self._group.change(leaving, self._wrappers, full_state):
            # The ranks that stay have this rank's work in memory.
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
def _exit_if_job_ended():
    """Exits with 0 if the job succeeded while this member waited to join."""
    try:
        yield
    except JobEnded:
        print("swell: the training ended before this member could join", file=sys.stderr, flush=True)
        raise SystemExit(0) from None


def _is_lost_peer(error):
    """True if a collective failed because a peer is gone, and not because of this process, as with a wrong shape."""
    text = str(error)
    return "gloo" in text or "NCCL" in text or "Connection closed by peer" in text


def _backend():
    import torch

    return "nccl" if torch.cuda.is_available() else "gloo"


def _at_clean_exit(action):
    """Runs `action` when the process exits, unless an exception ends it."""
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
