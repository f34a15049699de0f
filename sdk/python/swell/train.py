"""`Job`, the helper around a training loop: it restores, saves, stops and resizes on all ranks together.

Used by training scripts; README.md has the four lines that a plain DDP script needs. All ranks make the same calls in
the same order: `join`, `restore`, `step_done`, `should_stop`, `save` and `stop` are collective if the job has more than
one rank.

What always holds:
* All ranks stop or change size after the same step, also if only one of them got the notice.
* A rank exits with 143 only when that step is on disk, left in memory for the node agent, or in the memory of a rank
  that stays; otherwise with 138.
* Without further settings a job saves itself, at intervals that `swell.saving` chooses.
* If the world size is unchanged, the random generators of each rank continue where they were.
* A checkpoint that cannot be written does not stop the training.
"""

import contextlib
import os
import sys
import time
import traceback
from dataclasses import replace
from datetime import timedelta

from swell import random_state, report, snapshot
from swell.batch import BatchSize
from swell.broken import GuardedStep, StepGuard, step_of
from swell.checkpoint import Checkpoint, CheckpointManager, DamagedCheckpoint, place_of
from swell.env import Env
from swell.exchange import Exchange
from swell.exits import at_clean_exit, leave, watch_loaders
from swell.job_reports import JobReports
from swell.memory import MemoryCopies
from swell.noise import GradientNoise
from swell.notice import EXIT_NOT_SAVED, EXIT_NOTICED, Notice
from swell.own_time import OwnTime, watch_collectives
from swell.progress import ProgressRecord
from swell.rendezvous import JobEnded
from swell.resize import (
    Group, LostPeer, bounded, check_group, default_backend, destroy_group, finish, init_group, initialized,
    is_lost_peer,
)
from swell.saving import Saver, save_seconds
from swell.scalars import Scalars
from swell.weight import Weight

_FORMAT = "swell-job-1"
# Memory for copies of less is not worth being made ready before.
_PREPARED_BYTES = 16 << 20
# What a rank wants after a step. The greatest value of all ranks wins.
_CONTINUE, _SAVE, _STOP = 0, 1, 2


class Job(JobReports):
    def __init__(
        self,
        checkpoints=None,
        notice=None,
        env=None,
        backend=None,
        timeout=timedelta(minutes=10),
        checkpoint_seconds=None,
        clock=time.monotonic,
        log_dir=None,
    ):
        """Create the Job first in the script. Until `restore` returns, a notice ends the process at once.

        `checkpoints`: a folder, or a `CheckpointManager`; the default is SWELL_CHECKPOINT_DIR, else `./checkpoints`.
        `timeout`: of torch's collectives, and of the wait for a member that replaces a lost one; timedelta or seconds.
        `checkpoint_seconds`: `step_done` saves if the last checkpoint is older than this. The default comes from the
        job's manifest (`spec.checkpoint.intervalSeconds`); without either, from the measured cost of a save
        (`swell.saving`). With 0 the job saves only when it must stop.
        `log_dir`: a folder for TensorBoard's curves (`swell.scalars`); the default is SWELL_LOG_DIR, without which none
        are written.
        """
        self.env = env or Env.read()
        folder = checkpoints is None or isinstance(checkpoints, (str, os.PathLike))
        self._save_with(CheckpointManager(checkpoints) if folder else checkpoints)
        self.notice = notice or Notice(hold=False)
        watch_loaders()
        self.resizes = 0
        self.step = 0  # steps that `batches` has finished
        self.epoch = 0  # the epoch that `batches` is in
        self.epoch_ends = False  # the step of `batches` under way is the last of its epoch
        self.finishing = False  # the step of `batches` under way is the last
        self._loops = {}  # of `batches` that ended: {name: place of its checkpoints}
        self._above = None  # checkpoints and folder of curves above those of loops with names
        self.metrics = {}  # the last values given to `log`
        self._not_finite_since = None  # the step at which one of them was not finite first
        self.weight = Weight()  # of the current step of `batches`
        self._step_guard = StepGuard()
        self.backend = backend
        self._timeout = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
        self._flag = None
        self._wrappers, self._rates = [], []
        self._group = None
        self._joined = False
        self._received = None
        self._left = False
        self._speed = report.Progress()
        self._exchange = Exchange()
        self._noise = GradientNoise()
        self.batch_size = BatchSize()
        self._proposal = (0, 0)  # of rank 0, of the batch
        self._step_begin = None
        self.progress = ProgressRecord(self.env.rank, self.env.world)
        self.own_time = OwnTime(self.progress)
        self._scalars = Scalars(log_dir or os.environ.get("SWELL_LOG_DIR") or None)
        self._optimizers = []  # whose learning rates are in the curves
        self._clock = clock
        self._save_seconds = save_seconds(checkpoint_seconds)
        if self._save_seconds is None and self._memory is None:
            self._save_seconds = 0.0
        self._last_save_attempt = clock()

    def _save_with(self, checkpoints):
        self.checkpoints = checkpoints
        # Checkpoints in a form of the script's own are written while the training waits.
        own_form = not isinstance(checkpoints, CheckpointManager)
        self._memory = None if own_form else MemoryCopies(checkpoints.dir)
        self._saver = Saver(checkpoints, self._memory)
        self._saved_step = None
        self._memory_prepared = False

    @property
    def rank(self):
        """This process's number in the job, from 0. It may change when the job changes its size."""
        return self.env.rank

    @property
    def world(self):
        """How many ranks train."""
        return self.env.world

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

        # One network is measured, the first: each has gradients of its own.
        first = {} if self._wrappers else {"noise": self._noise, "formed": self._share}
        wrapper = Parallel(
            network, example, options, lambda: self.weight, self._step_guard, self.own_time, self._exchange, **first
        )
        self._wrappers.append(wrapper)
        if self._joined and self._group is None and initialized():
            wrapper.rebuild(self.env.world)  # a loop before this one has formed the group
        elif self._joined and self.env.world > 1:
            report.complain(
                "job.parallel came after job.restore or job.batches, so the ranks do not share the gradients of this "
                "network: make all networks before"
            )
        return wrapper

    def learning_rate(self, optimizer, rule=None, world=None):
        """Adapts the learning rates of `optimizer` when the batch or the number of ranks changes; see `swell.rates`.

        `rule`: "none", "linear", "sqrt", "adascale" or "adamscale"; the default comes from the job's manifest.
        `world`: the number of ranks that the rates were chosen for; the default is the number at the start.
        """
        from swell.rates import Rates

        rule = rule or os.environ.get("SWELL_LEARNING_RATE") or "none"
        self.show_rates([optimizer])
        self._rates.append(Rates(optimizer, rule, world or self.env.world))
        if self._joined:
            self._follow_rates()

    def _follow_rates(self):
        for rates in self._rates:
            rates.follow(self.env.world, self.batch_size.noise, self.batch_size.scale)

    def _share(self):
        """Called when a group has formed: all ranks get what rank 0 knows of noise and batch."""
        import torch
        import torch.distributed as dist

        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        own = [*self._noise.numbers(), *self.batch_size.numbers()]
        numbers = torch.tensor(own, dtype=torch.float64, device=device)
        finish(dist.broadcast(numbers, src=0, async_op=True), numbers, self._step_guard.group_broken)
        *noise, level, noise_level = numbers.tolist()
        self._noise.load_numbers(noise)
        self.batch_size.load_numbers([level, noise_level])
        self.batch_size.begin_group()

    def join(self):
        """Forms the process group, unless the script has done so. `restore` calls it."""
        if self._joined:
            return
        self.env.complain_of_no_launcher()
        if initialized():
            pass  # the script has its own group
        elif self.env.elastic or (self.env.distributed and self._wrappers and not self.env.under_agent):
            self._join_group()
        elif self.env.distributed and self._wrappers:
            init_group(self.env, self.backend or default_backend(), self._timeout)
            at_clean_exit(self._destroy_group)
        if self._group is None:
            for wrapper in self._wrappers:
                wrapper.rebuild(self.env.world)
        self._joined = True
        self._follow_rates()

    def restore(self):
        """The newest `Checkpoint`, or None if there is none.

        Rank 0 reads it and sends it to the others, so they need no shared disk. A rank that joins while the others
        train gets the state from the memory of rank 0. Call it after the networks are made, before the first step.
        """
        self.join()
        self.notice.hold()
        self.progress.rank, self.progress.world = self.env.rank, self.env.world
        with self.phase("load"):
            while True:
                try:
                    return self._restore()
                except RuntimeError as error:
                    # A member was lost meanwhile. The others may have a state; else all retry.
                    if not self._can_recover(error):
                        raise
                    traceback.clear_frames(error.__traceback__)
                    look = bounded(self._timeout)
                    self._take(self._form(lambda: self._group.rejoin(self._wrappers, None, None, look)))

    def _restore(self):
        if self._received is not None:
            found, self._received = self._received, None
            self._saved_step = None
            return found
        found, on_disk = self._newest()
        self._scalars.begin(1 if found is None else found.step + 1)
        if found is None:
            return None
        self.progress.step = found.step
        self._saved_step = found.step if on_disk else None
        state = found.state
        if isinstance(state, dict) and state.get("format") == _FORMAT:
            if len(state["random"]) == self.env.world:
                random_state.restore(state["random"][self.env.rank])
            if "noise" in state:
                self._noise.load_numbers(state["noise"])
                self.batch_size.load_numbers(state["batch"])
                self._follow_rates()
            state = state["state"]
        return Checkpoint(found.step, state, found.time, found.epoch, found.metrics)

    def _newest(self):
        """(newest good state that any rank finds in memory or rank 0 on disk, whether on disk). All ranks get it."""
        if self._memory is None:
            return self._broadcast(self._reported(self.checkpoints.load()) if self.env.leader else None), True
        self._memory.run = self._broadcast(self.checkpoints.run() if self.env.leader else None)
        own = []
        copy = self._memory.newest()
        if copy is not None:
            own.append((copy.index["step"], 1))
        if self.env.leader:
            own += [(step, 0) for step in self.checkpoints.steps()]
        places = [(step, kind, -rank) for rank, found in enumerate(self._gather(own)) for step, kind in found]
        for step, in_memory, rank in sorted(places, reverse=True):
            found = None
            if self.env.rank == -rank:
                found = self._read_copy(copy) if in_memory else self._read_checkpoint(step)
            found = self._broadcast(found, -rank)
            if found is not None:
                return found, not in_memory
        return None, False

    def _read_copy(self, copy):
        try:
            state = copy.state()
        except Exception as error:
            # Anything could be wrong with it, and the disk has an older one.
            report.complain(f"skipping the copy in memory of step {copy.index['step']}: {error}")
            return None
        self._saver.keep(copy)
        index = copy.index
        return Checkpoint(index["step"], state, index["time"], index["epoch"], index["metrics"])

    def _read_checkpoint(self, step):
        try:
            found = self.checkpoints.load(step)
        except DamagedCheckpoint as error:
            report.complain(f"skipping checkpoint of step {step}: {error}")
            return None
        return self._reported(found)

    def _reported(self, found):
        if found is not None:
            # A new pod has no report yet. Work since this checkpoint is what a preemption would lose.
            report.report_checkpoint(found.step, found.time, found.epoch, found.metrics)
        return found

    def step_done(self, step, state, epoch=None, metrics=None, records=None):
        """Call it after every step, on every rank. True if the number of ranks or the batch has changed.

        If the job must stop, it saves and exits with 143. An elastic job continues with the ranks that stay and those
        that join. `state`: what to save, or a function that returns it. `records`: how many records the whole job
        trained in this step, for the reported speed.
        """
        self.progress.epoch = epoch or 0
        self.progress.enter("step", step)
        if not self._memory_prepared:
            self._prepare_memory(state)
        self.note_step(step, records)
        if self.env.leader:
            noise = self._noise.scale
            now = self._clock()
            seconds = None if self._step_begin is None else now - self._step_begin
            self._step_begin = now
            self._proposal = self.batch_size.proposal(self.env.world, records, seconds, noise)
        if self._group is None:
            agreed = self._agree()
            self._noise.end_step(self.env.world, records)
            changed = self._take_batch()
            if agreed == _STOP:
                self.stop(step, state, epoch=epoch, metrics=metrics)
            if agreed == _SAVE and self._saved_step != step:
                self.save(step, state, epoch=epoch, metrics=metrics, wait=False)
            return changed
        leaving, joining, giving_up, save = self._meet(
            lambda: self._group.agree(self.notice.requested, step, self._save_is_due(), self._proposal))
        # After the meeting, since what it waits for is there by then.
        self._noise.end_step(self.env.world, records)
        self._proposal = self._group.proposal
        changed = self._take_batch()
        if not leaving and not joining and not giving_up:
            if save and self._saved_step != step:
                self.save(step, state, epoch=epoch, metrics=metrics, wait=False)
            return changed
        if giving_up:
            # Another group of this job has trained further. The work of this one is dropped, and nothing is lost.
            self._leave(step, saved=None)
        if len(leaving) == self.env.world or (leaving and not self.env.elastic):
            self.stop(step, state, epoch=epoch, metrics=metrics)
        return self._change_size(step, state, leaving, epoch)

    def _take_batch(self):
        """Takes the batch that the ranks agreed on, if it changes. True if it does."""
        proposal, self._proposal = self._proposal, (0, 0)
        if proposal == (0, 0):
            return False
        before = self.batch_size.level
        self.batch_size.take(proposal)
        self._follow_rates()
        return self.batch_size.level != before

    @contextlib.contextmanager
    def guard(self, state, load):
        """A context for one step. If a peer dies in it, the other ranks form a new group and repeat the step.

        `state()` returns what a checkpoint would hold; `load(state)` restores it. The ranks continue from the memory of
        the rank that trained furthest. A rigid job waits for a replacement of the lost rank. If `guarded.repeats` after
        `with job.guard(state, load) as guarded`, a DataLoader with workers must start again.
        """
        drawn, guarded = self._drawn(), GuardedStep()
        try:
            yield guarded
            if self._group is not None and self._group.broken is not None:
                raise LostPeer(self._group.broken)
        except RuntimeError as error:
            if not self._can_recover(error):
                self._keep_for_restart(error, state)
                raise
            self._recover(error, state, load, drawn)
            guarded.repeats = True

    def _begin_loop(self, name):
        """Called by `batches`, if the loop has a name: nothing of the loop before goes into what this one writes."""
        self._above = self._above or (self.checkpoints, self._scalars.folder)
        checkpoints, curves = self._above
        self._saver.close()
        self._save_with(checkpoints.below(name))
        self._scalars.close()
        self._scalars = Scalars(curves and os.path.join(curves, name))
        self.metrics, self._not_finite_since = {}, None

    def _end_loop(self, name):
        """Called by `batches`. What the script shows after a loop with a name is of the next loop."""
        self._loops[name] = place_of(self.checkpoints)
        if name is not None:
            self._optimizers = []

    def _hold_back(self, things):
        """Called by `batches`: in a step that must be repeated, these do nothing."""
        self._step_guard.hold_back(things)

    def _begin_step(self):
        """Called by `batches` before the script's part of a step. Returns the random state."""
        self._step_guard.begin()
        self.progress.enter("step")
        return self._drawn()

    def _drawn(self):
        return random_state.of_step() if self._group is not None else None

    def _end_step(self):
        """Called by `batches` after the script's part. Raises `LostPeer` if the step must be repeated."""
        error = self._step_guard.end()
        broken = None if self._group is None else self._group.broken
        if error is None and broken is None:
            return
        if self._group is None:
            raise error
        raise LostPeer(broken or str(error).splitlines()[0])

    def _can_recover(self, error):
        return self._group is not None and (is_lost_peer(error) or self._group.broken is not None)

    def batches(self, dataset, batch_size, epochs, keep, seed=0, checkpoint_every=0, name=None, **loader):
        """The batches of all epochs: `for batch in job.batches(...)`; see `swell.loop`.

        `batch_size`: records in a step of the whole job; each rank gets its share. `keep`: {name: object} with what a
        checkpoint must contain; each object has state_dict and load_state_dict. `seed`: of the order in which records
        are drawn, another one in each epoch. `checkpoint_every`: steps between two checkpoints, beside those that the
        job makes by itself. `name`: each of several loops in one script needs one, and has folders of that name.
        `loader`: further options of torch's DataLoader, such as num_workers.
        """
        from swell.loop import batches

        return batches(self, dataset, batch_size, epochs, keep, seed, checkpoint_every, loader, name)

    def finish(self):
        """Ends `batches` after the step under way, with a checkpoint. Call it on every rank, in the same step."""
        self.finishing = True

    def should_stop(self, step=None):
        """True on every rank if any rank got a notice. Call it between two steps.

        `step`: how many steps are finished, to be shown as the job's progress.
        """
        if step is None:
            self.progress.touch()
        else:
            self.progress.enter("step", step)
        return self._agree() == _STOP

    # For scripts and frameworks that save in a way of their own; see `swell.sharded` and `swell.frameworks`.

    def wanted(self):
        """"continue", "save" or "stop", the same on all ranks. Call it between two steps, on every rank."""
        return ("continue", "save", "stop")[self._agree()]

    def adopt_group(self):
        """Takes rank and world from the process group that a framework has made."""
        if initialized():
            watch_collectives(self.own_time)
            import torch.distributed as dist

            self.env = replace(self.env, rank=dist.get_rank(), world=dist.get_world_size())
            self.progress.rank, self.progress.world = self.env.rank, self.env.world

    def note_save(self):
        """The script saves now, so no save is due for an interval."""
        self._last_save_attempt = self._clock()

    @contextlib.contextmanager
    def saving(self, step=None):
        """A save of the script's own. Its time decides when the next one is due; with `step` it is reported, too."""
        begin = self._clock()
        with self.phase("save"):
            yield
        self._last_save_attempt = self._clock()
        self._saver.note_stall(self._last_save_attempt - begin)
        if step is not None and self.env.leader:
            report.report_checkpoint(step, report.now())

    def gather(self, thing):
        """[thing of each rank], on every rank."""
        return self._gather(thing)

    def agree_on(self, thing):
        """Rank 0's thing, on every rank."""
        return self._broadcast(thing)

    def leave(self, step, saved):
        """Exits on a notice: with 143, or with 138 if the state could not be saved. Does not return."""
        if saved:
            self._say(f"checkpoint saved step={step} reason=notice")
        self._leave(step, saved)

    def _meet(self, agree):
        """What `agree` returns: here the ranks meet after a step."""
        if not self.env.distributed:
            return agree()
        self.own_time.arrive()
        agreed = agree()
        self.own_time.leave()
        return agreed

    def _agree(self):
        own = _STOP if self.notice.requested else _SAVE if self._save_is_due() else _CONTINUE
        if not self.env.distributed:
            return own
        import torch.distributed as dist

        import torch

        if self._flag is None:
            # Three bytes, allocated once. A step costs one small all-reduce.
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flag = torch.zeros(3, dtype=torch.uint8, device=device)
        self._flag.copy_(torch.tensor((own, *self._proposal), dtype=torch.uint8))

        def agree():
            dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
            agreed, *self._proposal = self._flag.tolist()
            self._proposal = tuple(self._proposal)
            return agreed

        return self._meet(agree)

    def _save_is_due(self):
        """Decided by rank 0: the clocks of other ranks could be one step apart."""
        if not self.env.leader or self._save_seconds == 0 or self._saver.busy:
            return False
        seconds = self._saver.interval(self.env.world) if self._save_seconds is None else self._save_seconds
        return self._clock() - self._last_save_attempt >= seconds

    def save(self, step, state, epoch=None, metrics=None, wait=True):
        """Saves a checkpoint on rank 0. `state`: what to save, or a function that returns it.

        Returns True on every rank once the checkpoint is on disk. If it cannot be written, the reason goes to stderr
        and to the node agent, earlier checkpoints stay as they are, and the result is False. With `wait=False` the
        training continues as soon as the state is copied, and the result says nothing about the disk.
        """
        self.progress.step = step
        with self.phase("save"):
            return self._save(step, state, epoch, metrics, wait)

    def _save(self, step, state, epoch, metrics, wait):
        ranks, stamp = self._prepare_save()
        self._last_save_attempt = self._clock()
        if not wait and self._memory is not None:
            if self.env.rank in self._copy_ranks():
                self._saver.remove_copies_at_the_end()
                wrapped = self._wrap(state, ranks)
                self._saver.copy(step, wrapped, stamp, epoch, metrics, on_disk=self.env.leader)
            return True
        saved = self.env.leader and self._saver.save(step, self._wrap(state, ranks), epoch, metrics)
        saved = self._broadcast(saved)
        if saved:
            self._saved_step = step
        return saved

    def _prepare_save(self):
        """The random generators of all ranks, and the time of the save."""
        memory = self._memory
        if memory is not None and memory.run is None and self.env.leader:
            memory.run = self.checkpoints.run()  # the script did not call `restore`, or this rank joined a group
        gathered = self._gather((random_state.whole(), report.now(), memory and memory.run))
        _, stamp, run = gathered[0]
        if memory is not None:
            memory.run = run
        return [drawn for drawn, _, _ in gathered], stamp

    def flush(self):
        """Waits until a save in the background has ended."""
        self._saver.flush()

    def _wrap(self, state, ranks):
        content = state() if callable(state) else state
        return {
            "format": _FORMAT,
            "state": content,
            "random": ranks,
            "noise": self._noise.numbers(),
            "batch": self.batch_size.numbers(),
        }

    def _prepare_memory(self, state):
        """After a step, since optimizers make their state in the first one."""
        self._memory_prepared = True
        if self._memory is None or self._save_seconds == 0 or self.env.rank not in self._copy_ranks():
            return
        size = snapshot.size_of(state() if callable(state) else state)
        if size >= _PREPARED_BYTES:
            self._saver.remove_copies_at_the_end()
            self._saver.prepare(size)

    def _copy_ranks(self):
        """Rank 0, and one on another machine, so that a machine can be lost."""
        return (0, self._group.another_machine() if self._group is not None else 1)

    def stop(self, step, state, epoch=None, metrics=None):
        """Saves and exits on every rank, with 143; with 138 if the state could not be saved. Does not return."""
        self._saver.process_ends = True
        saved = self._saved_step == step or self.save(step, state, epoch=epoch, metrics=metrics)
        self.leave(step, saved)

    def _leave(self, step, saved):
        """`saved`: None if there was nothing to save."""
        if saved is not None:
            report.report_termination(step, saved)
        self._saver.flush()
        self._scalars.flush()
        if self._group is not None:
            self._group.close(done=False)
        # A regular exit would shut gloo down, which can wait for peers that are gone, or wait for the disk. A script
        # that has caught the first exit would train until it is killed.
        at_once = initialized() or self._saver.busy or self._left
        self._left = True
        leave(EXIT_NOT_SAVED if saved is False else EXIT_NOTICED, at_once)

    def _destroy_group(self):
        """Runs before the interpreter shuts down: torch's threads need it, and would abort the process later."""
        destroy_group(self._wrappers)

    def _join_group(self):
        self._group = Group(self.env, self.backend or default_backend(), self._timeout)
        self._step_guard.group_broken = lambda: self._group.broken
        self._group.at_break = self._give_up
        at_clean_exit(self._destroy_group)
        # Registered last, so it runs first: exit functions run in reverse order.
        at_clean_exit(lambda: self._group.close(done=True))
        # Tells the controller that this member waits, so that it does not wait for this member.
        report.report_progress({"world": 0})
        self._take(self._form(lambda: self._group.join(self._wrappers)))
        report.report_progress({"world": self.env.world})

    def _give_up(self):
        for wrapper in self._wrappers:
            wrapper.give_up()

    def _form(self, form):
        """Forms a group; exits with 0 if the job succeeded while this member waited to join."""
        try:
            received = form()
        except JobEnded:
            print("swell: the training ended before this member could join", file=sys.stderr, flush=True)
            raise SystemExit(0) from None
        self.env = self._group.env
        return received

    def _take(self, received):
        if received is not None:
            self._received = Checkpoint(received["step"], received["state"], report.now(), received["epoch"])

    def _keep_for_restart(self, error, state):
        """Under torch's agent a lost peer ends this process, too. The next one continues from its memory."""
        if self.env.under_agent and self._memory is not None and is_lost_peer(error):
            own = state()
            step = step_of(own, self.progress.step)
            self._saver.copy_for_restart(step, self._wrap(own, [random_state.whole()]), report.now())

    def _recover(self, error, state, load, drawn):
        """Forms a group with the members that are left. `drawn`: the random state before the broken step."""
        begin = time.monotonic()
        before = self.env.world
        self.progress.repeated += 1
        # Locals of the failed step would keep the old wrappers alive, and with them their group.
        traceback.clear_frames(error.__traceback__)
        own = state()
        step = step_of(own, self.progress.step)
        reason = self._group.broken or str(error).splitlines()[0]
        print(f"swell: step {step}: lost a peer ({reason})", file=sys.stderr, flush=True)
        content = {"step": step, "epoch": None, "state": own}
        look = bounded(self._timeout, lambda: self._leave_if_noticed(step, own))
        received = self._form(lambda: self._group.rejoin(self._wrappers, step, content, look))
        if received is None:
            random_state.restore(drawn)
        # Every rank loads a whole state: a half-done step leaves traces, such as a batch that was handed out.
        load(received["state"] if received is not None else own)
        self._flag = None
        self._resized(received["step"] if received is not None else step, before, begin)

    def _leave_if_noticed(self, step, state):
        """While this rank waits for others there is nobody to agree with. Each rank saves what it has."""
        if self.notice.requested:
            saved = self._saved_step == step or self._saver.save(step, self._wrap(state, [random_state.whole()]))
            self._leave(step, saved)

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
        self.batch_size.begin_group()
        self._follow_rates()
        self._step_begin = None
        self.resizes += 1
        if not self.env.leader:
            self._scalars.close()
        seconds = time.monotonic() - begin
        self._speed.resized(seconds)
        self._memory_prepared = False
        self.own_time.forget()
        self.progress.step, self.progress.rank, self.progress.world = step, self.env.rank, self.env.world
        if self.env.leader:
            print(f"swell: step {step}: {before} -> {self.env.world} ranks in {seconds:.3f} s", flush=True)

    def _broadcast(self, thing, source=0):
        if not self.env.distributed:
            return thing
        import torch.distributed as dist

        check_group(self.env)
        box = [thing]
        dist.broadcast_object_list(box, src=source)
        return box[0]

    def _gather(self, thing):
        if not self.env.distributed:
            return [thing]
        import torch.distributed as dist

        check_group(self.env)
        things = [None] * self.env.world
        dist.all_gather_object(things, thing)
        return things
