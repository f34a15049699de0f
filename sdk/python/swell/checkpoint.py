"""Checkpoints on disk. A damaged or incomplete one does not count, and the one before it is used.

Used by `swell.train.Job` on rank 0, and directly by scripts and tests that read checkpoints. A checkpoint is two
files in the manager's folder:

    step-000000000123-<first 12 of sha256>.state    the bytes of the state
    step-000000000123.json                          the manifest, with the name, size and sha256 of that file

What always holds:
* The manifest is written last and replaced atomically, so it never names bytes that are not on disk.
* Bytes that do not match their manifest are detected.
* A save that fails leaves every earlier checkpoint as it was.
* One process at a time writes to a folder.
"""

import hashlib
import io
import json
import os
import pickle
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Optional

from swell import plain, report
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


class CheckpointManager:
    def __init__(self, dir=None, keep=3, environ=None):
        self._environ = os.environ if environ is None else environ
        self.dir = os.path.abspath(dir or self._environ.get("SWELL_CHECKPOINT_DIR") or "checkpoints")
        self.keep = max(1, keep)

    def save(self, step, state, epoch=None, metrics=None):
        """Saves a checkpoint and reports it to the node agent. When it returns, the checkpoint survives a power cut."""
        os.makedirs(self.dir, exist_ok=True)
        codec, data = encode(state)
        digest = hashlib.sha256(data).hexdigest()
        # The digest is in the name, so that saving a step again does not touch the bytes that its manifest names now.
        name = f"step-{step:012d}-{digest[:12]}.state"
        manifest = {
            "version": 1,
            "step": step,
            "epoch": epoch,
            "metrics": metrics or {},
            "time": report.now(),
            "file": name,
            "codec": codec,
            "size": len(data),
            "sha256": digest,
        }
        write_atomic(os.path.join(self.dir, name), data)
        write_atomic(self._manifest_path(step), json.dumps(manifest, indent=1).encode())
        self._prune(step)
        report.report_checkpoint(step, manifest["time"], epoch, metrics, self._environ)

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


def encode(state):
    """(codec, bytes) of a state."""
    if isinstance(state, (bytes, bytearray, memoryview)):
        return "bytes", bytes(state)
    # torch.save understands tensors on other devices and shared storage; without torch there are none.
    torch = sys.modules.get("torch")
    if torch is None:
        return "pickle", pickle.dumps(state, protocol=4)
    codec = "tensors"
    try:
        state = plain.flatten(state)
    except plain.NotPlain as reason:
        codec = "objects"
        if str(reason) not in _reported:
            _reported.add(str(reason))
            report.complain(f"{reason}: the checkpoint needs pickle, and programs must trust it to read it")
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return codec, buffer.getvalue()


_reported = set()


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
