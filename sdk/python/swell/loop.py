"""`Job.batches`: the loop around a training step.

It restores, hands out batches, counts steps, saves, and handles notices and changes of size between two steps. The body
of the `for` does one step:

    for images, labels in job.batches(dataset, batch_size=96, epochs=3, keep={"model": model, "optimizer": optimizer}):
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

What always holds:
* A step counts if its body ran to the end on all ranks.
* Every record is trained once per epoch, however often the job is preempted or resized.
* The gradient is that of the mean loss over the whole job's batch, also if ranks have shares of different size:
  `Job.parallel` weighs them.
* Each of several loops in one script has a name, and folders of that name for its checkpoints and its curves.
* `Job.finish` ends the loop after the step in which all ranks call it, as the last epoch does.
* A resumed run draws the same random numbers as an undisturbed one, unless the loader has worker processes.
"""

import numbers
import random
import re
import sys
from collections import deque

from swell import report
from swell.checkpoint import CheckpointManager, place_of
from swell.exits import at_clean_exit
from swell.own_time import elements_of
from swell.plain import is_part
from swell.rates import adapt
from swell.sampler import ResumableDistributedSampler
from swell.stream import Stream
from swell.weight import Weight

# A stream is collated in this process, from records that it or workers read.
_STREAM_OPTIONS = {
    "collate_fn", "multiprocessing_context", "num_workers", "prefetch_factor", "timeout", "worker_init_fn"
}


def batches(job, dataset, batch_size, epochs, keep, seed, checkpoint_every, loader_options, name=None):
    """`keep`: {name: object}; the objects have state_dict and load_state_dict, and are part of every checkpoint."""
    _check_counts(batch_size, epochs)
    _check_options(loader_options)
    _check_keep(keep)
    _begin(job, name)
    sampler, shares, loader, generator = _sources(job, dataset, batch_size, seed, loader_options)
    step = 0
    job.finishing = False

    def state():
        kept = {name: thing.state_dict() for name, thing in keep.items()}
        return {"step": step, "sampler": sampler.state_dict(), "keep": kept, "finished": job.finishing}

    def load(state):
        nonlocal step
        step = state["step"]
        job.finishing = state.get("finished", False)
        sampler.load_state_dict(state["sampler"])
        for name, thing in keep.items():
            if name not in state["keep"]:
                saved = ", ".join(sorted(state["keep"]))
                raise ValueError(f"keep[{name!r}] is not in the checkpoint of step {step}, which has: {saved}")
            thing.load_state_dict(state["keep"][name])

    adapt(job, keep.values())
    found = job.restore()
    if found is not None:
        _load_checkpoint(job, found, load)
        if job.env.leader:
            does = "was finished at" if job.finishing else "continues from"
            print(f"swell: {does} step {step}", flush=True)
    told = not job.env.leader
    prefetches = getattr(loader, "num_workers", 0) > 0
    job._hold_back(keep.values())
    job.show_rates(keep.values())

    job.progress.total, job.progress.epochs = sampler.steps_per_epoch * epochs, epochs
    job.progress.enter("data", step)
    while sampler.epoch < epochs and not job.finishing:
        place = f"{sampler.seed}/{sampler.epoch}/{sampler.position}/{job.env.rank}"
        generator.manual_seed(random.Random(place).getrandbits(63))
        for batch in job.notice.batches_of(loader):
            records = sampler.step_records
            job.weight = Weight(shares.take(), records, job.env.world)
            job.step, job.epoch, job.epoch_ends = step, sampler.epoch, sampler.at_last
            job.progress.epoch = sampler.epoch
            job.own_time.elements = elements_of(batch)
            drawn = job._begin_step()
            try:
                yield batch
            except GeneratorExit:
                _tell_of_break(job)
                raise
            try:
                job._end_step()
                told = told or _tell_of_gradients(job)
                sampler.commit()
                step += 1
                if job.finishing:
                    break
                if checkpoint_every and step % checkpoint_every == 0:
                    job.save(step, state, epoch=sampler.epoch, metrics=job.metrics, wait=False)
                changed = job.step_done(step, state, sampler.epoch, job.metrics, records)
            except RuntimeError as error:
                if not job._can_recover(error):
                    job._keep_for_restart(error, state)
                    raise
                job.finishing = False
                job._recover(error, state, load, drawn)
                break
            job.progress.enter("data")
            if changed and sampler.steps_per_epoch:
                job.progress.total = step + len(sampler) + sampler.steps_per_epoch * (epochs - sampler.epoch - 1)
            if changed and prefetches:
                # The loader's processes hold shares of the old number of ranks, or of the old batch.
                break
        if sampler.done:
            sampler.next_epoch()
    job.weight = Weight()
    job.step, job.epoch, job.epoch_ends = step, sampler.epoch, False
    if job.finishing:
        job.progress.total = step
    job.save(step, state, epoch=sampler.epoch, metrics=job.metrics)
    job.progress.enter("done", step)
    job._end_loop(name)


def _tell_of_break(job):
    # Only at a clean end: an error that ends the script leaves the loop, too, and looks the same from here.
    text = (
        f"the script left job.batches in step {job.step + 1}, which is in no checkpoint; to end the training with one, "
        "call job.finish() in place of break, on every rank"
    )
    if job.env.leader:
        at_clean_exit(lambda: report.complain(text))


def _tell_of_gradients(job):
    if not job._step_guard.keeps_gradients():
        return False
    report.complain(
        f"step {job.step + 1} ended without the step of an optimizer in keep: gradients that wait for another batch "
        "are in no checkpoint, and are lost when the job stops or changes size; to accumulate them, take one larger "
        "batch apart within a step (the SDK's README, Accumulated gradients). If a GradScaler left that step out, put "
        "the GradScaler into keep, too"
    )
    return True


def _begin(job, name):
    """Each of several loops has a folder of its own, in which a resumed run finds the end of those before."""
    if name is not None:
        _check_name(job, name)
    if name in job._loops if name is not None else place_of(job.checkpoints) in job._loops.values():
        # It would find that end, and train nothing.
        raise RuntimeError(
            "an earlier loop of job.batches ended in this folder of checkpoints: give each of several loops a name, "
            'job.batches(..., name="fold-1")'
        )
    if name is not None:
        job._begin_loop(name)


def _check_name(job, name):
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"name={name!r:.80}: expected letters, digits, dots and dashes: it is the name of a folder")
    if job.env.elastic or (job.env.distributed and not job.env.under_agent):
        # A member that joins begins with the first loop, whose state the others have no more.
        raise RuntimeError(
            f"name={name!r}: a rank that joins while others train cannot skip the loops that they have done; start "
            "the script with python -m swell.launch, or a job for each loop"
        )
    if not isinstance(job.checkpoints, CheckpointManager):
        raise RuntimeError(
            f"name={name!r}: it would be the name of a folder, and the checkpoints of this job are in a form of the "
            "script's own; give Job(checkpoints=) a folder, or start a job for each loop"
        )


def _check_counts(batch_size, epochs):
    for name, value, least in (("batch_size", batch_size, 1), ("epochs", epochs, 0)):
        if not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} is a {type(value).__name__}, {value!r:.80}: expected a whole number")
        if value < least:
            raise ValueError(f"{name} is {value}: expected {least} or more")


def _check_options(options):
    own = sorted(options.keys() & {"shuffle", "sampler", "batch_sampler", "drop_last"})
    if own:
        raise TypeError(
            f"job.batches takes no {', '.join(own)}: it draws each record once in an epoch, in an order by `seed`; for "
            "another order use a loop of your own with swell.ResumableDistributedSampler"
        )


def _check_keep(keep):
    if not hasattr(keep, "items"):
        what = type(keep).__name__
        raise TypeError(f'keep is a {what}: expected a dict like {{"model": model, "optimizer": optimizer}}')
    for name, thing in keep.items():
        if not (hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")):
            what = type(thing).__name__
            raise TypeError(f"keep[{name!r}] is a {what}: expected an object with state_dict and load_state_dict")
        if any(map(is_part, _parameters(thing))) or _has_fsdp(thing):
            raise TypeError(
                f"keep[{name!r}] is spread over the ranks (FSDP, tensor parallel), and job.batches saves what rank 0 "
                "has; use a loop of your own with swell.Sharded"
            )


def _parameters(thing):
    """Those of a model or an optimizer."""
    if hasattr(thing, "param_groups"):
        return [parameter for group in thing.param_groups for parameter in group["params"]]
    return thing.parameters() if hasattr(thing, "named_modules") else []


def _has_fsdp(thing):
    """Whether it is a model of torch's first FSDP, whose parts are plain tensors."""
    fsdp = getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", None)
    return fsdp is not None and hasattr(thing, "modules") and any(isinstance(part, fsdp) for part in thing.modules())


def _load_checkpoint(job, found, load):
    try:
        load(found.state)
    except (RuntimeError, ValueError, KeyError) as error:
        # Among RuntimeErrors only torch's own about state: a full GPU or a lost peer is not the checkpoint's fault.
        if isinstance(error, RuntimeError) and "loading state_dict" not in str(error):
            raise
        place = getattr(job.checkpoints, "dir", "its directory")
        reason = " ".join(str(error).split())
        if isinstance(error, KeyError):
            reason = f"no entry {reason}: another optimizer or model?"
        # One line, since the last line of a log is what commands show. They cut its end.
        raise ValueError(
            f"the checkpoint of step {found.step} in {place} does not fit this script; to start anew, remove the "
            f"checkpoints there or save elsewhere ({reason:.400})"
        ) from error


def _sources(job, dataset, batch_size, seed, options):
    """What counts the records, what knows this rank's share of a step, what yields the batches, and its generator."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    if isinstance(dataset, DataLoader):
        raise TypeError(
            "job.batches got a DataLoader: give it the dataset, and options of the loader such as num_workers; it "
            "makes a loader that resumes within an epoch"
        )
    # A loader draws a seed for its workers whenever it starts. From a generator of its own: a draw from the script's
    # would make a resumed run, which starts a loader within an epoch, differ from an undisturbed one.
    generator = torch.Generator()
    if isinstance(dataset, IterableDataset):
        unknown = sorted(options.keys() - _STREAM_OPTIONS)
        if unknown:
            known = ", ".join(sorted(_STREAM_OPTIONS))
            raise ValueError(
                f"job.batches: an IterableDataset takes no {', '.join(unknown)}; of a loader's options: {known}"
            )
        collate = options.pop("collate_fn", default_collate)
        stream = Stream(dataset, batch_size, job, collate, options)
        return stream, stream, stream, generator
    if len(dataset) == 0:
        raise ValueError("the dataset has no records")
    sampler = ResumableDistributedSampler(len(dataset), batch_size, seed, job=job)
    shares = _Shares(sampler)
    loader = DataLoader(dataset, batch_sampler=shares, **{"generator": generator, **options})
    return sampler, shares, loader, generator


class _Shares:
    """The sampler's shares, for a loader. An empty share becomes record 0, with weight 0."""

    def __init__(self, sampler):
        self._sampler = sampler
        self._sizes = deque()

    def __len__(self):
        return len(self._sampler)

    def __iter__(self):
        self._sizes.clear()
        for share in self._sampler:
            self._sizes.append(len(share))
            yield share or [0]

    def take(self):
        """The number of records in the oldest share that was not taken yet."""
        return self._sizes.popleft()
