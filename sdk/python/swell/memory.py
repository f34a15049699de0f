"""Copies of the state in memory that outlive the process: a restart in place continues from there, without a disk.

Used by `swell.saving`. A copy is a file in /dev/shm, which every pod has of its own and keeps while its containers
restart (SWELL_MEMORY_DIR names another folder). Two ranks, on two machines if there are two, keep the newest copy, so
the loss of one machine leaves the other. A copy is also what a checkpoint on disk is written from, in the background.

Layout of the file: 64 bytes of `_HEAD` (magic, 1 if whole, place and size of the index), the bytes of the records, and
the index as JSON: {"run", "step", "epoch", "metrics", "time", "codec", "records": [[name, place, size], ...]}.

What always holds:
* A copy is whole or does not count: `whole` is 0 while it is written. There are two files, and the older one is
  overwritten, so one whole copy is left whenever a process dies.
* A copy of another run of the job does not count (`run`): who removes the checkpoint folder starts anew.
* A copy is made only if it leaves half of the free memory free.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import struct

from swell import pack

_HEAD = struct.Struct("<8sQQQ32x")
_MAGIC = b"SWELLMEM"
_SLOTS = ("a", "b")
_INDEX_BYTES_MAX = 64 << 20


class NoRoom(OSError):
    """The copy would take memory that the training may need."""


class MemoryCopies:
    def __init__(self, checkpoint_dir, environ=None):
        environ = os.environ if environ is None else environ
        base = environ.get("SWELL_MEMORY_DIR") or "/dev/shm"
        key = hashlib.sha256(os.path.abspath(checkpoint_dir).encode()).hexdigest()[:16]
        self.dir = os.path.join(base, f"swell-{os.getuid()}-{key}")
        self.run = None  # which run of the job the copies belong to; without one there are none

    def write(self, step, state, stamp, epoch=None, metrics=None, size_hint=0):
        """Copies the state and returns the Copy. Raises OSError, NoRoom among them. Call it in `alone()`.

        `stamp`: the time of the save. If another rank on this machine made the copy of this save, that one counts.
        """
        if self.run is None:
            raise NoRoom("there is no checkpoint folder that it could belong to")
        newest = self.newest()
        if newest is not None and (newest.index["step"], newest.index["time"]) == (step, stamp):
            return newest
        slot = next(s for s in _SLOTS if newest is None or os.path.basename(newest.path) != s)
        path = os.path.join(self.dir, slot)
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
            _check_room(self.dir, size_hint - os.fstat(file.fileno()).st_size)
            sink = _Sink(file.fileno())
            try:
                codec = pack.write_state(state, sink)
                index = {"run": self.run, "step": step, "epoch": epoch, "metrics": metrics or {}, "time": stamp}
                sink.finish({**index, "codec": codec})
            except BaseException:
                # Its memory is worth more than half a copy.
                os.ftruncate(file.fileno(), 0)
                raise
        self.drop_after(step)
        return _read(path)

    def newest(self):
        """The newest whole copy of this run, or None."""
        copies = [_read(os.path.join(self.dir, slot)) for slot in _SLOTS]
        own = [copy for copy in copies if copy is not None and self.run and copy.index["run"] == self.run]
        return max(own, key=lambda copy: copy.index["step"], default=None)

    def drop_after(self, step):
        """Removes copies of later steps: the run went back to an earlier checkpoint."""
        for slot in _SLOTS:
            copy = _read(os.path.join(self.dir, slot))
            if copy is not None and copy.index["step"] > step:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(copy.path)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    @contextlib.contextmanager
    def alone(self):
        """One process of this machine at a time."""
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(self.dir, "lock"), "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Copy:
    """A whole copy. `index` is the JSON of the layout above."""

    def __init__(self, path, index):
        self.path = path
        self.index = index

    @property
    def size(self):
        return sum(size for _, _, size in self.index["records"])

    def pour(self, sink):
        """Passes all records to `sink`."""
        with open(self.path, "rb", buffering=0) as file:
            for name, place, size in self.index["records"]:
                file.seek(place)
                sink.add(name, size, _parts(file, size))

    def state(self):
        from swell import checkpoint

        buffer = io.BytesIO()
        archive = pack.Archive(buffer)
        self.pour(archive)
        archive.close()
        return checkpoint.decode(self.index["codec"], buffer.getvalue())


class _Sink:
    def __init__(self, file):
        self._file = file
        self._place = _HEAD.size
        self._records = []
        os.pwrite(file, _HEAD.pack(_MAGIC, 0, 0, 0), 0)

    def add(self, name, size, parts):
        self._records.append([name, self._place, size])
        for part in parts:
            self._write(part)

    def finish(self, index):
        place = self._place
        data = json.dumps({**index, "records": self._records}).encode()
        self._write(data)
        os.ftruncate(self._file, self._place)
        os.pwrite(self._file, _HEAD.pack(_MAGIC, 1, place, len(data)), 0)

    def _write(self, data):
        # Not through a mapping: if memory runs out, a write fails, and a mapping kills the process.
        view = memoryview(data)
        while len(view):
            done = os.pwrite(self._file, view, self._place)
            self._place += done
            view = view[done:]


def _parts(file, size):
    while size:
        part = file.read(min(size, pack.CHUNK_BYTES))
        if not part:
            raise OSError("a copy in memory is shorter than its index says")
        size -= len(part)
        yield part


def _read(path):
    try:
        with open(path, "rb") as file:
            magic, whole, place, size = _HEAD.unpack(file.read(_HEAD.size))
            if magic != _MAGIC or whole != 1 or size > _INDEX_BYTES_MAX:
                return None
            file.seek(place)
            index = json.loads(file.read(size))
            if not isinstance(index, dict) or not isinstance(index.get("step"), int) or "run" not in index:
                return None
            return Copy(path, index)
    except (OSError, ValueError, struct.error):
        return None


def _check_room(folder, wanted):
    if wanted <= 0:
        return
    stat = os.statvfs(folder)
    free = min([stat.f_bavail * stat.f_frsize, _available(), *_cgroup_room()])
    if wanted > free // 2:
        raise NoRoom(f"a copy needs {wanted >> 20} MiB, and {free >> 20} MiB of memory are free")


def _available():
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            (line,) = [line for line in file if line.startswith("MemAvailable")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 1 << 62


def _cgroup_room():
    """What the container may still use, in a list; empty if there is no bound."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            bound = limit.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as current:
            used = int(current.read())
        return [] if bound == "max" else [max(0, int(bound) - used)]
    except (OSError, ValueError):
        return []
