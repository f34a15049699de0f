"""Notices, saves and progress for trainings that a framework runs: Lightning, Hugging Face's Trainer, Accelerate.

Each function takes a `swell.Job` and imports its framework when it is called:

    trainer = lightning.Trainer(callbacks=[frameworks.lightning(job)], ...)
    trainer.fit(model, frameworks.Loader(job, data, batch_size=64), ckpt_path=frameworks.last(job, "lightning"))

    trainer = transformers.Trainer(callbacks=[frameworks.huggingface(job)], ...)    # output_dir: job.checkpoints.dir
    trainer.train(resume_from_checkpoint=frameworks.last(job, "huggingface"))

    loader = frameworks.Loader(job, data, batch_size=64)
    accelerator.register_for_checkpointing(loader)                                  # not prepare(loader)
    state = frameworks.Accelerate(job, accelerator)                                 # after accelerator.prepare
    step = state.restore()                                                          # 0 on the first start
    state.step_done(step)               # after every step of the optimizer (accelerator.sync_gradients), on every rank

The framework saves in its own form. Swell decides when: at its interval, and on a notice, after which the process exits
with 143, or with 138 if the save failed. The number of ranks does not change while it runs.

What always holds:
* All ranks save and stop after the same step.
* A checkpoint of Lightning or Accelerate gets its name when it is complete. Hugging Face's Trainer names its folders
  itself; `last` passes over those that it has not finished.
* With a `Loader` a record is trained once in an epoch, also if the run stops within it and resumes with another number
  of ranks. Hugging Face's Trainer finds its place at the same number only: it counts steps, whose size depends on it.
"""

import importlib
import json
import math
import os
import random
import re
import shutil

from swell import plain, random_state, report
from swell.files import TEMPORARY_PREFIX, write_atomic
from swell.sampler import ResumableDistributedSampler


def last(job, name):
    """The path of the last whole checkpoint of "lightning", "huggingface" or "accelerate", or None."""
    folder = job.checkpoints.dir
    if name == "huggingface":
        return _last_of_trainer(folder)
    # A crash between the two renames of `_publish` leaves only the checkpoint before it, as NAME.old.
    paths = [os.path.join(folder, name), os.path.join(folder, f"{name}.old")]
    return next((path for path in paths if os.path.exists(path)), None)


def _last_of_trainer(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    steps = [int(name[len("checkpoint-") :]) for name in names if re.fullmatch(r"checkpoint-\d+", name)]
    paths = [os.path.join(folder, f"checkpoint-{step}") for step in sorted(steps, reverse=True)]
    return next(filter(_is_whole, paths), None)


def _is_whole(folder):
    """Whether the Trainer has finished this checkpoint: it writes the file last, but not at once."""
    try:
        with open(os.path.join(folder, "trainer_state.json"), encoding="utf-8") as file:
            json.load(file)
    except (OSError, ValueError):
        return False
    return True


class Loader:
    """Batches of a dataset with a length, for Lightning and Accelerate: it knows its place, and saves it.

    `batch_size`: of the whole job; each rank gets its share, also when the job resumes with another number of ranks. A
    rank gets the record 0 where the last batch of an epoch has none for it. `options`: of torch's DataLoader. Iterate
    over it once an epoch; `epoch` is the one that the next batch belongs to.
    """

    def __init__(self, job, dataset, batch_size, seed=0, **options):
        from torch import Generator
        from torch.utils.data import DataLoader

        self._job = job
        self._sampler = ResumableDistributedSampler(len(dataset), batch_size, seed, job=job)
        # Not the script's generator: each start of a loader draws from it, and a run that resumes has one more.
        self._generator = Generator()
        options = {"generator": self._generator, **options}
        self._loader = DataLoader(dataset, batch_sampler=_Filled(self._sampler), **options)

    def __len__(self):
        """Steps of a whole epoch."""
        return self._sampler.steps_per_epoch

    @property
    def epoch(self):
        return self._sampler.epoch + self._sampler.done

    def __iter__(self):
        sampler = self._sampler
        if sampler.done:
            sampler.next_epoch()
        place = f"{sampler.seed}/{sampler.epoch}/{sampler.position}/{self._job.env.rank}"
        self._generator.manual_seed(random.Random(place).getrandbits(63))
        for batch in self._job.notice.batches_of(self._loader):
            # The framework saves after the step with this batch, and before it asks for the next one.
            sampler.commit()
            yield batch

    def state_dict(self):
        return self._sampler.state_dict()

    def load_state_dict(self, state):
        self._sampler.load_state_dict(state)


class _Filled:
    """The sampler's shares, never empty: all ranks must take part in a step."""

    def __init__(self, sampler):
        self._sampler = sampler

    def __iter__(self):
        return (share or [0] for share in self._sampler)


def lightning(job):
    """A callback for `lightning.Trainer` or `pytorch_lightning.Trainer`."""

    class SwellCallback(_first_of("lightning.pytorch", "pytorch_lightning").Callback):
        drawn = None

        def on_train_start(self, trainer, pl_module):
            job.adopt_group()
            job.notice.hold()
            self.step = trainer.global_step
            job.note_restore(self.step)
            steps = trainer.estimated_stepping_batches
            # Infinite or -1 where the training has no end that is known.
            job.progress.total = int(steps) if 0 < steps < math.inf else 0
            if self.drawn is not None and len(self.drawn) == job.env.world:
                random_state.restore(self.drawn[job.env.rank])

        # Lightning calls it on all ranks when it saves. It does not save the random generators itself.
        def state_dict(self):
            job.adopt_group()  # Lightning's search for a learning rate saves before the training starts
            return {"random": plain.flatten(job.gather(random_state.whole()))}

        def load_state_dict(self, state):
            self.drawn = plain.restore(state["random"])

        def on_train_batch_end(self, trainer, pl_module, *arguments, **named):
            # Gradients that are still being accumulated are in no checkpoint.
            if trainer.global_step != self.step:
                self.step = trainer.global_step
                _step_done(job, self.step, trainer.save_checkpoint, "lightning")

        def on_validation_start(self, trainer, pl_module):
            job.progress.enter("eval")

        def on_validation_end(self, trainer, pl_module):
            job.progress.enter("step")

    return SwellCallback()


def huggingface(job):
    """A callback for `transformers.Trainer`."""

    class SwellCallback(importlib.import_module("transformers").TrainerCallback):
        stopping = False
        saved_step = None

        def on_train_begin(self, args, state, control, **named):
            job.adopt_group()
            job.notice.hold()
            job.note_restore(state.global_step)
            job.progress.total = max(0, state.max_steps)

        def on_step_end(self, args, state, control, **named):
            job.progress.enter("step", state.global_step)
            job.note_step(state.global_step)
            wanted = job.wanted()
            if wanted != "continue":
                job.note_save()
                control.should_save = True
            if wanted == "stop":
                self.stopping = control.should_training_stop = True
            return control

        def on_save(self, args, state, control, **named):
            self.saved_step = state.global_step
            if job.env.leader:
                report.report_checkpoint(state.global_step, report.now())

        def on_train_end(self, args, state, control, **named):
            if self.stopping:
                job.leave(state.global_step, self.saved_step == state.global_step)

    return SwellCallback()


class Accelerate:
    """Saves everything that `accelerator.prepare` and `register_for_checkpointing` know."""

    def __init__(self, job, accelerator):
        self._job = job
        self._accelerator = accelerator
        job.adopt_group()

    def restore(self):
        """Loads the last checkpoint. Returns its step, or 0."""
        self._job.notice.hold()
        path = self._job.agree_on(last(self._job, "accelerate"))
        step = 0
        if path is not None:
            with self._job.phase("load"):
                self._accelerator.load_state(path)
                with open(os.path.join(path, "swell.json"), encoding="utf-8") as file:
                    step = json.load(file)["step"]
        self._job.note_restore(step)
        return step

    def step_done(self, step):
        def save(path):
            self._accelerator.save_state(path)
            if self._job.env.leader:
                write_atomic(os.path.join(path, "swell.json"), json.dumps({"step": step}).encode())

        _step_done(self._job, step, save, "accelerate")


def _step_done(job, step, save, name):
    job.progress.enter("step", step)
    job.note_step(step)
    wanted = job.wanted()
    if wanted == "continue":
        return
    with job.saving():
        saved = _save(job, step, save, name, ends=wanted == "stop")
    if wanted == "stop":
        job.leave(step, saved)


def _save(job, step, save, name, ends):
    """`save(path)` writes a file or a folder, on all ranks. True on every rank if all is well. `ends`: the process."""
    temporary = os.path.join(job.checkpoints.dir, f"{TEMPORARY_PREFIX}{name}")
    # Each rank hears of an error before the next step, in which all ranks must take part.
    error = job.agree_on(_failure(_make_room, temporary) if job.env.leader else None)
    if error is None:
        error = next((text for text in job.gather(_failure(save, temporary)) if text), None)
    if job.env.leader and error is None:
        error = _failure(_publish, temporary, os.path.join(job.checkpoints.dir, name))
    error = job.agree_on(error)
    if error is not None and job.env.leader:
        _failure(_remove, temporary)  # a full disk needs the room
        report.report_failed_save(step, error, ends=ends)
    elif job.env.leader:
        report.report_checkpoint(step, report.now())
    return error is None


def _failure(action, *arguments):
    """The first line of the error that the action raises, or None."""
    try:
        action(*arguments)
    except Exception as error:  # of a full disk: torch says RuntimeError, safetensors has a type of its own
        return str(error).split("\n", 1)[0] or type(error).__name__
    return None


def _make_room(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _remove(path)


def _publish(temporary, path):
    if os.path.isdir(path):
        # A folder cannot replace one that has files. After a crash in between, `last` finds the old one.
        old = f"{path}.old"
        _remove(old)
        os.rename(path, old)
        os.rename(temporary, path)
        _remove(old)
    else:
        os.replace(temporary, path)


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def _first_of(*names):
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"none of {', '.join(names)} is installed")
