"""Checkpoints on disk. A damaged or incomplete one does not count, and the one before it is used.

Used by `swell.train.Job` on rank 0, and directly by scripts and tests that read checkpoints. A checkpoint is two
files in the manager's folder:

    step-000000000123-<first 12 of sha256>.state    the bytes of the state
    step-000000000123.json                          the manifest, with the name, size and sha256 of that file

What always holds:
* The manifest is written last and replaced atomically, so it never names bytes that are not on disk.
* Bytes that do not match their manifest are detected.
* A save that fails leaves every earlier checkpoint as it was.
* One process at a time writes to a folder; it holds a lock on the file `.lock`.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import pickle
import re
import secrets
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Optional

from swell import pack, plain, report
from swell.files import TEMPORARY_PREFIX, remove_quietly, sync_folder, write_atomic

_MANIFEST = re.compile(r"^step-(\d{12})\.json$")
# How to read the bytes. "tensors": tensors, numbers and strings, which torch.load(weights_only=True) accepts.
# "objects": the state has objects that only pickle can store. "pickle": saved without torch. "torch": written by a
# version before 0.1.0.
CODECS = ("bytes", "pickle", "tensors", "objects", "torch")
_STATE = re.compile(r"^step-\d{12}-[0-9a-f]{12}\.state$")


class DamagedCheckpoint(Exception):
    """The bytes on disk are not the bytes that were saved."""


@dataclass(frozen=True)
class Checkpoint:
    step: int
    state: Any
    time: str
    epoch: Optional[int] = None
    metrics: dict = field(default_factory=dict)


def place_of(checkpoints):
    """Their folder; checkpoints in a form of the script's own may have none."""
    return getattr(checkpoints, "dir", checkpoints)


class CheckpointManager:
    def __init__(self, dir=None, keep=2, environ=None):
        self._environ = os.environ if environ is None else environ
        self.dir = os.path.abspath(dir or self._environ.get("SWELL_CHECKPOINT_DIR") or "checkpoints")
        self.keep = max(1, keep)

    def below(self, name):
        """A manager of the folder `name` in this one's."""
        return CheckpointManager(os.path.join(self.dir, name), self.keep, self._environ)

    def save(self, step, state, epoch=None, metrics=None):
        """Saves a checkpoint and reports it to the node agent. When it returns, the checkpoint survives a power cut."""
        self._save(step, epoch, metrics, report.now(), lambda sink: pack.write_state(state, sink))

    def save_copy(self, copy):
        """As `save`, from a `swell.memory.Copy`."""

        def pour(sink):
            copy.pour(sink)
            return copy.index["codec"]

        index = copy.index
        self._save(index["step"], index["epoch"], index["metrics"], index["time"], pour)

    def _save(self, step, epoch, metrics, time, write):
        os.makedirs(self.dir, exist_ok=True)
        with self._alone():
            temporary, size, digest, codec = self._write_bytes(write)
            # The digest is in the name, so that saving a step again does not touch the bytes that its manifest names.
            name = f"step-{step:012d}-{digest[:12]}.state"
            manifest = {
                "version": 1,
                "step": step,
                "epoch": epoch,
                "metrics": metrics or {},
                "time": time,
                "file": name,
                "codec": codec,
                "size": size,
                "sha256": digest,
            }
            try:
                os.replace(temporary, os.path.join(self.dir, name))
            except BaseException:
                remove_quietly(temporary)
                raise
            write_atomic(self._manifest_path(step), json.dumps(manifest, indent=1).encode())
            self._prune(step)
        report.report_checkpoint(step, manifest["time"], epoch, metrics, self._environ)

    def _write_bytes(self, write):
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=self.dir)
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                target = _Hashing(file)
                archive = pack.Archive(target)
                codec = write(archive)
                archive.close()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
        except BaseException:
            remove_quietly(temporary)
            raise
        return temporary, target.size, target.hash.hexdigest(), codec

    @contextlib.contextmanager
    def _alone(self):
        """Ranks that lost their group may save for themselves, several at a time."""
        with open(os.path.join(self.dir, ".lock"), "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def run(self):
        """The id of this folder's run, which its copies carry; None if the folder cannot be written."""
        path = os.path.join(self.dir, ".run")
        try:
            os.makedirs(self.dir, exist_ok=True)
            if not os.path.exists(path):
                write_atomic(path, secrets.token_hex(8).encode())
            with open(path, encoding="ascii") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def steps(self):
        """The steps that have a manifest, newest first. Their bytes may be damaged; `load` finds out."""
        try:
            names = os.listdir(self.dir)
        except FileNotFoundError:
            return []
        return sorted((int(m.group(1)) for m in map(_MANIFEST.match, names) if m), reverse=True)

    def latest(self):
        """The step that `load()` would return; None if there is no checkpoint."""
        found = self._newest_whole()
        return found[0]["step"] if found else None

    def load(self, step=None):
        """The newest undamaged checkpoint, or that of `step`; None if there is none.

        Raises DamagedCheckpoint if that of `step` is damaged.
        """
        if step is not None:
            found = self._read(step) if step in self.steps() else None
        else:
            found = self._newest_whole()
        if found is None:
            return None
        manifest, data = found
        return Checkpoint(
            step=manifest["step"],
            state=decode(manifest["codec"], data),
            time=manifest["time"],
            epoch=manifest["epoch"],
            metrics=manifest["metrics"],
        )

    def _newest_whole(self):
        for step in self.steps():
            try:
                return self._read(step)
            except DamagedCheckpoint as error:
                print(f"swell: skipping checkpoint of step {step}: {error}", file=sys.stderr, flush=True)
        return None

    def _read(self, step):
        manifest = self._read_manifest(step)
        try:
            with open(os.path.join(self.dir, manifest["file"]), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise DamagedCheckpoint("its bytes are missing") from None
        if len(data) != manifest["size"]:
            raise DamagedCheckpoint(f"{len(data)} bytes instead of {manifest['size']}")
        if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
            raise DamagedCheckpoint("its bytes do not match their checksum")
        return manifest, data

    def _read_manifest(self, step):
        try:
            with open(self._manifest_path(step), encoding="utf-8") as file:
                manifest = json.load(file)
        except (ValueError, FileNotFoundError):
            raise DamagedCheckpoint("its manifest is unreadable") from None
        wanted = {"step", "epoch", "metrics", "time", "file", "codec", "size", "sha256"}
        if not isinstance(manifest, dict) or not wanted <= manifest.keys() or manifest["step"] != step:
            raise DamagedCheckpoint("its manifest is incomplete")
        if not _STATE.match(str(manifest["file"])):
            raise DamagedCheckpoint("its manifest names a file that is not a checkpoint")
        return manifest

    def _prune(self, saved):
        kept, files = 0, set()
        for step in self.steps():
            if step > saved:
                # The run went back to an earlier checkpoint. It must not resume from a later one.
                remove_quietly(self._manifest_path(step))
                continue
            try:
                manifest = self._read_manifest(step)
                # A cheap check, so that a damaged new checkpoint does not displace an undamaged older one.
                size = os.path.getsize(os.path.join(self.dir, manifest["file"]))
                whole = size == manifest["size"]
            except (DamagedCheckpoint, OSError):
                whole = False
            if whole and kept < self.keep:
                kept += 1
                files.add(manifest["file"])
            else:
                remove_quietly(self._manifest_path(step))
        # Manifests are removed first: a crash in between leaves bytes without a manifest, never the opposite.
        sync_folder(self.dir)
        for name in os.listdir(self.dir):
            if name.startswith(TEMPORARY_PREFIX) or (_STATE.match(name) and name not in files):
                remove_quietly(os.path.join(self.dir, name))

    def _manifest_path(self, step):
        return os.path.join(self.dir, f"step-{step:012d}.json")


class _Hashing:
    """A file that counts and hashes what is written to it. It cannot seek, so nothing is changed afterwards.

    After a failure, or once the file is closed, it takes everything and writes nothing: an archive writes its end even
    then.
    """

    def __init__(self, file):
        self._file = file
        self._failed = False
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data):
        self.hash.update(data)
        self.size += len(data)
        view = memoryview(data)
        try:
            while len(view) and not self._failed and not self._file.closed:
                view = view[self._file.write(view) :]
        except OSError:
            self._failed = True
            raise
        return len(data)

    def flush(self):
        pass


def encode(state):
    """(codec, bytes) of a state."""
    buffer = io.BytesIO()
    archive = pack.Archive(buffer)
    codec = pack.write_state(state, archive)
    archive.close()
    return codec, buffer.getvalue()


def decode(codec, data):
    """The state that `encode` was given."""
    if codec == "bytes":
        return data
    if codec == "pickle":
        return pickle.loads(data)
    if codec == "tensors":
        return plain.restore(plain.load(io.BytesIO(data)))
    if codec == "objects":
        import torch

        # The script's own classes, from the script's own folder. torch 1.13 and newer know the argument.
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)
    if codec == "torch":
        return plain.load_with_numpy(io.BytesIO(data))
    raise DamagedCheckpoint(f"codec {codec!r} is not known")
