"""Checkpoints of models whose state is spread over the ranks (FSDP, FSDP2, tensor parallel): each rank writes its part.

For scripts with their own process group; needs torch 2.3 or newer (`torch.distributed.checkpoint`), and a checkpoint
folder that all ranks share. A run may resume with another number of ranks.

    shards = Sharded(job, model, optimizer)
    found = shards.restore()                   # None on the first start, else what `extra` was
    ...
    shards.step_done(step, {"step": step, "sampler": sampler.state_dict()})    # after every step, on every rank

A checkpoint is a folder `step-000000000123.shards` with torch's files, `extra.state` with what rank 0 gave as `extra`
and the random generators of all ranks, and `manifest.json`: {"version", "step", "time", "codec", "files": {name: [size,
sha256]}}.

What always holds:
* The folder gets its name when everything in it is on disk, so a half checkpoint is never seen.
* A checkpoint with a missing or damaged file is skipped with a message, on all ranks.
* If the number of ranks is unchanged, the random generators of each rank continue where they were.
* A save that fails on any rank fails on all, is reported, and leaves earlier checkpoints as they were.
"""

import hashlib
import json
import os
import re
import shutil

from swell import random_state, report
from swell.checkpoint import decode, encode
from swell.files import TEMPORARY_PREFIX, sync_folder, write_atomic

_NAME = re.compile(r"^step-(\d{12})\.shards$")
_VERSION = 2
_EXTRA = "extra.state"


class Sharded:
    def __init__(self, job, model, optimizer=None, dir=None, keep=2):
        """`optimizer`: one, or a list of them. Several networks are one `model` as a torch.nn.ModuleDict of them."""
        self._job = job
        self._model = model
        if optimizer is None:
            self._optimizers = []
        else:
            self._optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        self.dir = os.path.abspath(dir or job.checkpoints.dir)
        self.keep = max(1, keep)
        self.saved_step = None
        self._ends = False  # the process does, after the save under way

    def restore(self):
        """Loads the newest good checkpoint into model and optimizer. Returns its `extra`, or None if there is none."""
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import set_state_dict

        self._job.notice.hold()
        self._job.adopt_group()
        with self._job.phase("load"):
            for step in self._job.agree_on(self.steps()):
                folder = self._folder(step)
                problems = [text for text in self._job.gather(self._problem(folder)) if text]
                if problems:
                    if self._job.env.leader:
                        report.complain(f"skipping checkpoint of step {step}: {problems[0]}")
                    continue
                state = self._state()
                dcp.load(state, checkpoint_id=folder)
                set_state_dict(self._model, self._optimizers, model_state_dict=state["model"],
                               optim_state_dict=state["optimizer"])
                self.saved_step = step
                self._job.note_restore(step)
                return self._load_extra(folder)
        self._job.note_restore(0)
        return None

    def _load_extra(self, folder):
        with open(os.path.join(folder, _EXTRA), "rb") as file:
            found = decode(_manifest(folder)["codec"], file.read())
        if len(found["random"]) == self._job.env.world:
            random_state.restore(found["random"][self._job.env.rank])
        return found["extra"]

    def step_done(self, step, extra=None, records=None):
        """Call it after every step, on every rank. Saves if it is time to; on a notice it saves and exits.

        `records`: how many records the whole job trained in this step, for the reported speed.
        """
        self._job.progress.enter("step", step)
        self._job.note_step(step, records)
        wanted = self._job.wanted()
        self._ends = wanted == "stop"
        if wanted != "continue" and self.saved_step != step:
            self.save(step, extra)
        if wanted == "stop":
            self._job.leave(step, self.saved_step == step)

    def save(self, step, extra=None):
        """Saves on all ranks. Returns True on every rank once it is on disk.

        `extra`: of rank 0, what else a resumed run needs, such as a scheduler's state. It may hold whole tensors.
        """
        import torch.distributed.checkpoint as dcp

        job = self._job
        temporary = os.path.join(self.dir, f"{TEMPORARY_PREFIX}{step:012d}")
        with job.saving():
            error = None
            try:
                if job.env.leader:
                    shutil.rmtree(temporary, ignore_errors=True)
                    os.makedirs(temporary)
            except OSError as caught:
                error = caught
            if not self._all_well(step, error):
                return False
            try:
                dcp.save(self._state(), checkpoint_id=temporary)
            except Exception as caught:
                # torch raises one error of its own for whatever any rank met.
                error = caught
            if self._all_well(step, error) and self._publish(step, temporary, extra):
                self.saved_step = step
                return True
            if job.env.leader:
                shutil.rmtree(temporary, ignore_errors=True)
            return False

    def steps(self):
        """The steps that have a checkpoint, newest first."""
        try:
            names = os.listdir(self.dir)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted((int(m.group(1)) for m in map(_NAME.match, names) if m), reverse=True)

    def _state(self):
        from torch.distributed.checkpoint.state_dict import get_state_dict

        model, optimizer = get_state_dict(self._model, self._optimizers)
        return {"model": model, "optimizer": optimizer}

    def _publish(self, step, temporary, extra):
        """Adds `extra` and the manifest to torch's files, and gives the folder its name. True on every rank if it has.

        Each rank hashes its share of the files, rank 0 does the rest.
        """
        drawn = self._job.gather(random_state.whole())
        codec, error = self._write_extra(temporary, {"extra": extra, "random": drawn})
        if not self._all_well(step, error):
            return False
        try:
            own = {name: _measure(os.path.join(temporary, name)) for name in self._share(sorted(os.listdir(temporary)))}
        except OSError as caught:
            own, error = {}, caught
        parts = self._job.gather(own)
        if not self._all_well(step, error):
            return False
        files = {name: measured for part in parts for name, measured in part.items()}
        return self._all_well(step, self._give_name(step, temporary, codec, files))

    def _write_extra(self, temporary, content):
        """(codec, error) on rank 0."""
        if not self._job.env.leader:
            return None, None
        try:
            codec, data = encode(content)
            write_atomic(os.path.join(temporary, _EXTRA), data)
            return codec, None
        except Exception as caught:
            # It may hold what nothing can save. The other ranks must learn that rank 0 gives up.
            return None, caught

    def _give_name(self, step, temporary, codec, files):
        """The error on rank 0, or None."""
        if not self._job.env.leader:
            return None
        try:
            manifest = {"version": _VERSION, "step": step, "time": report.now(), "codec": codec, "files": files}
            write_atomic(os.path.join(temporary, "manifest.json"), json.dumps(manifest).encode())
            folder = self._folder(step)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(temporary, folder)
            sync_folder(self.dir)
            report.report_checkpoint(step, manifest["time"])
            for old in self.steps()[self.keep :]:
                shutil.rmtree(self._folder(old), ignore_errors=True)
        except OSError as caught:
            return caught
        return None

    def _all_well(self, step, error):
        texts = self._job.gather(None if error is None else (getattr(error, "strerror", None) or str(error)))
        texts = [text.splitlines()[0] for text in texts if text]
        if texts and self._job.env.leader:
            report.report_failed_save(step, texts[0], self.dir, self._ends)
        return not texts

    def _problem(self, folder):
        """What is wrong with this rank's share of the files; None if nothing is."""
        manifest = _manifest(folder)
        if manifest is None:
            return "its manifest is unreadable, or of another version of the SDK"
        for name in self._share(sorted(manifest["files"])):
            try:
                if _measure(os.path.join(folder, os.path.basename(name))) != manifest["files"][name]:
                    return f"{name} does not match its checksum"
            except OSError as error:
                return f"{name}: {error.strerror}"
        return None

    def _share(self, names):
        return names[self._job.env.rank :: self._job.env.world]

    def _folder(self, step):
        return os.path.join(self.dir, f"step-{step:012d}.shards")


def _manifest(folder):
    try:
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError):
        return None
    whole = isinstance(manifest, dict) and isinstance(manifest.get("files"), dict)
    return manifest if whole and manifest.get("version") == _VERSION else None


def _measure(path):
    """[size, sha256] of a file, which is on disk then."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(4 << 20):
            digest.update(part)
        os.fsync(file.fileno())
        return [file.tell(), digest.hexdigest()]
