"""Copies of the state in memory that outlive the process: a restart in place continues from there, without a disk.

Used by `swell.saving`. A copy is a file in /dev/shm, which every pod has of its own and keeps while its containers
restart (SWELL_MEMORY_DIR names another folder). Two ranks, on two machines if there are two, keep the newest copy, so
the loss of one machine leaves the other. A copy is also what a checkpoint on disk is written from, in the background.

`begin` copies the tensors, which the training waits for, and `finish` makes the copy whole, at any later time.

Layout of the file: 64 bytes of `_HEAD` (magic, 1 if whole, place and size of the index), the bytes of the records
(tensors first: those are mapped), and the index as JSON: {"run", "step", "epoch", "metrics", "time", "codec",
"records": [[name, place, size], ...]}.

What always holds:
* A copy is whole or does not count: `whole` is 0 while it is written. There are two files, and the older one is
  overwritten, so one whole copy is left whenever a process dies.
* A copy of another run of the job does not count (`run`): who removes the checkpoint folder starts anew.
* A copy is made only if it leaves half of the free memory free.
* What is copied by `begin` is the state of that moment, whatever the training changes before `finish`.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import io
import json
import os
import shutil
import struct

from swell import pack, plain, snapshot
from swell.slots import Slot

_HEAD = struct.Struct("<8sQQQ32x")
_MAGIC = b"SWELLMEM"
_SLOTS = ("a", "b")
_INDEX_BYTES_MAX = 64 << 20
_ALSO_BYTES = 4 << 20  # beside the state that was known before: random generators of all ranks, what has grown


class NoRoom(OSError):
    """The copy would take memory that the training may need."""


class Cancelled(Exception):
    """The copy is written no further, since a newer one counts."""


class MemoryCopies:
    def __init__(self, checkpoint_dir, environ=None):
        environ = os.environ if environ is None else environ
        base = environ.get("SWELL_MEMORY_DIR") or "/dev/shm"
        key = hashlib.sha256(os.path.abspath(checkpoint_dir).encode()).hexdigest()[:16]
        self.dir = os.path.join(base, f"swell-{os.getuid()}-{key}")
        self.run = None  # which run of the job the copies belong to; without one there are none
        self._mapped = {name: Slot() for name in _SLOTS}

    def prepare(self, size):
        """Reserves memory for copies of so many bytes and touches it, so that no save has to. Takes long."""
        size += (size >> 5) + _ALSO_BYTES
        for name in _SLOTS:
            with self.alone(), self._open(name) as file:
                self._reserve(name, file, size)
            self._mapped[name].touch()

    def _open(self, name):
        path = os.path.join(self.dir, name)
        return open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)

    def _reserve(self, name, file, size):
        _check_room(self.dir, size - os.fstat(file.fileno()).st_size)
        return self._mapped[name].reserve(file.fileno(), _HEAD.size + size)

    def write(self, step, state, stamp, epoch=None, metrics=None):
        """Copies the state and returns the Copy. Raises OSError, NoRoom among them. Call it in `alone()`."""
        return self.begin(step, state, stamp, epoch, metrics).finish()

    def begin(self, step, state, stamp, epoch=None, metrics=None):
        """Copies what can change of the state, and returns a `Begun`. `finish` it before `alone()` ends.

        `stamp`: the time of the save. If another rank on this machine made the copy of this save, that one counts.
        """
        if self.run is None:
            raise NoRoom("there is no checkpoint folder that it could belong to")
        newest = self.newest()
        if newest is not None and (newest.index["step"], newest.index["time"]) == (step, stamp):
            return Begun(lambda: newest)
        slot = next(s for s in _SLOTS if newest is None or os.path.basename(newest.path) != s)
        index = {"run": self.run, "step": step, "epoch": epoch, "metrics": metrics or {}, "time": stamp}
        file = self._open(slot)
        try:
            write = self._copy(slot, file, state)
        except BaseException:
            self._give_up(slot, file)
            raise

        def finish():
            try:
                write(index)
            except BaseException:
                self._give_up(slot, file)
                raise
            file.close()
            self.drop_after(step)
            return _read(os.path.join(self.dir, slot))

        return Begun(finish)

    def _copy(self, slot, file, state):
        """Copies the state. Returns a function that writes the rest and, given an index, makes the copy whole."""
        sink = _Sink(file.fileno())
        if snapshot.loaded() and not isinstance(state, (bytes, bytearray, memoryview)):
            with contextlib.suppress(plain.NotPlain):
                taken = snapshot.Snapshot(state)
                memory = self._reserve(slot, file, taken.size)
                copied = taken.copy_to(memory, _HEAD.size)
                return lambda index: sink.finish({**index, "codec": sink.write_copied(copied, memory, taken.size)})
        _check_room(self.dir, pack.size_of(state) - os.fstat(file.fileno()).st_size)
        codec = pack.write_state(state, sink)
        return lambda index: sink.finish({**index, "codec": codec})

    def _give_up(self, slot, file):
        # Its memory is worth more than half a copy.
        self._mapped[slot] = Slot()
        os.ftruncate(file.fileno(), 0)
        file.close()

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


class Begun:
    """A copy whose tensors are copied. `finish()` makes it whole and returns the Copy."""

    def __init__(self, finish):
        self.finish = finish


class Copy:
    """A whole copy. `index` is the JSON of the layout above."""

    def __init__(self, path, index):
        self.path = path
        self.index = index
        self._cancelled = False

    def cancel(self):
        """Ends a `pour` of another thread with Cancelled, soon."""
        self._cancelled = True

    @property
    def size(self):
        return sum(size for _, _, size in self.index["records"])

    def pour(self, sink):
        """Passes all records to `sink`."""
        with open(self.path, "rb", buffering=0) as file:
            for name, place, size in self.index["records"]:
                file.seek(place)
                sink.add(name, size, self._parts(file, size))

    def _parts(self, file, size):
        while size:
            if self._cancelled:
                raise Cancelled
            part = file.read(min(size, pack.CHUNK_BYTES))
            if not part:
                raise OSError("a copy in memory is shorter than its index says")
            size -= len(part)
            yield part

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

    def write_copied(self, state, memory, size):
        """The records of a state whose tensors lie in the first `size` bytes of `memory` behind the head already."""
        self._place = _HEAD.size + size
        view = ctypes.c_char.from_buffer(memory)
        begin = ctypes.addressof(view)
        del view

        def add_at(name, address, size):
            if not begin <= address < begin + self._place:
                return False
            self._records.append([name, address - begin, size])
            return True

        self.add_at = add_at
        return pack.write_plain(state, self)

    def finish(self, index):
        place = self._place
        data = json.dumps({**index, "records": self._records}).encode()
        self._write(data)
        os.pwrite(self._file, _HEAD.pack(_MAGIC, 1, place, len(data)), 0)

    def _write(self, data):
        # Not through a mapping: if memory runs out, a write fails, and a mapping kills the process.
        view = memoryview(data)
        while len(view):
            done = os.pwrite(self._file, view, self._place)
            self._place += done
            view = view[done:]


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
        raise NoRoom(f"a copy needs {wanted >> 20} MiB, more than half of the {free >> 20} MiB of memory that are free")


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
