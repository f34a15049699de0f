"""Curves for TensorBoard: event files, written without TensorBoard or TensorFlow.

Used by `swell.train.Job`, on rank 0. An event file is a row of records, all numbers little-endian:

    length of data, 8 bytes | masked CRC32C of these 8 bytes, 4 | data | masked CRC32C of data, 4

Data is an `Event` of TensorFlow's event.proto. These fields are written:

    Event:        1 wall_time (double) | 2 step (varint) | 3 file_version (text) | 5 Summary | 7 SessionLog
    Summary:      1 Value, repeated
    Value:        1 tag (text) | 2 simple_value (float)
    SessionLog:   1 status (varint; 1: START)

A process begins a file of its own, later in the order of names than all in the folder. Its first record after the
version is START with a step: TensorBoard drops that step and later ones of earlier files. So a run that resumes at step
200 continues the curve at 201, even if an attempt that crashed had reached 207.

What always holds:
* Nothing here raises into a training. What cannot be written is reported once on stderr and dropped.
* The buffer holds 64 KiB at most, a file 256 MiB, a process 1,000 tags. A file ends with a whole record.
* Each event is in the file two seconds after it was added if others follow, and at the latest when the process exits.
"""

import atexit
import math
import os
import re
import socket
import struct
import time

from swell import report

_BUFFER_BYTES = 1 << 16
_FILE_BYTES = 1 << 28
_FLUSH_SECONDS = 2.0
_TAGS = 1000
_TAG_BYTES = 200
_OF_SPEED = ("world", "steps_per_second", "records_per_second")
# Every step has a point in a short run; a long one has a point a second.
_DENSE_EVENTS = 1000
_SPARSE_SECONDS = 1.0
_NAME = re.compile(r"^events\.out\.tfevents\.(\d{10})\.")
_FLOAT32_MAX = 3.4028234663852886e38


class Scalars:
    def __init__(self, folder, clock=time.monotonic, wall_clock=time.time):
        """`folder`: None if nothing is to be written. It is made with the first event."""
        self.folder = folder
        self._clock = clock
        self._wall_clock = wall_clock
        self._file = None
        self._process = os.getpid()
        self._buffer = bytearray()
        self._size = 0  # of the file, up to its last whole record
        self._events = 0
        self._tags = set()
        self._complained = set()
        self._begin = None
        self._last_event = self._last_flush = clock()

    @property
    def enabled(self):
        return self.folder is not None

    @property
    def due(self):
        """Whether a step should have its numbers written."""
        if not self.enabled:
            return False
        return self._events < _DENSE_EVENTS or self._clock() - self._last_event >= _SPARSE_SECONDS

    def begin(self, step):
        """The next event is of this step or a later one. What other files say of these steps counts no more."""
        self._begin = step

    def add(self, step, values):
        """One event. `values`: {tag: number}."""
        if not self.enabled or not values:
            return
        try:
            self._add(max(0, int(step)), values)
        except Exception as error:
            # Curves must not end a training, whatever the cause.
            self._complain(f"scalars of step {step} are not written: {error}")

    def add_step(self, step, values, optimizers, speed):
        """The event of a step. `speed`: the numbers of `report.Progress`, None if no report was due."""
        if speed is None and not self.due:
            return
        own = {f"swell/{name}": speed[name] for name in _OF_SPEED if name in (speed or {})}
        self.add(step, {**values, **rates_of(optimizers), **own})

    def flush(self):
        try:
            self._flush()
        except Exception as error:
            self._complain(f"scalars are not written: {error}")

    def close(self):
        """Another rank writes now, or the process ends."""
        self.flush()
        if self._file is not None and self._process == os.getpid():
            os.close(self._file)
        self._file = None
        self._size = 0
        self._begin = None

    def _add(self, step, values):
        fields = b"".join(self._value(str(tag), value) for tag, value in values.items())
        if not fields:
            return
        if self._file is None:
            self._open(step)
        self._buffer += record(event(self._wall_clock(), step, _bytes_field(5, fields)))
        self._events += 1
        now = self._last_event = self._clock()
        if len(self._buffer) >= _BUFFER_BYTES or now - self._last_flush >= _FLUSH_SECONDS:
            self._flush()

    def _value(self, tag, value):
        name = tag.encode("utf-8", "replace")
        if tag not in self._tags:
            if not name or len(name) > _TAG_BYTES or len(self._tags) >= _TAGS:
                self._complain(f"a scalar needs a name of 1 to {_TAG_BYTES} bytes, one of {_TAGS} at most", "tag")
                return b""
            self._tags.add(tag)
        number = float(value)
        if abs(number) > _FLOAT32_MAX and math.isfinite(number):
            number = math.copysign(math.inf, number)
        return _bytes_field(1, _bytes_field(1, name) + b"\x15" + struct.pack("<f", number))

    def _open(self, step):
        os.makedirs(self.folder, exist_ok=True)
        stamp = int(self._wall_clock())
        for name in os.listdir(self.folder):
            found = _NAME.match(name)
            if found:
                stamp = max(stamp, int(found.group(1)) + 1)
        name = f"events.out.tfevents.{stamp:010d}.{socket.gethostname()}.{os.getpid()}.swell"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        # Others read it: a TensorBoard of another user.
        self._file = os.open(os.path.join(self.folder, name), flags, 0o644)
        self._process = os.getpid()
        self._size = 0
        begin = step if self._begin is None else min(step, self._begin)
        now = self._wall_clock()
        self._buffer = bytearray(
            record(event(now, 0, _bytes_field(3, b"brain.Event:2")))
            + record(event(now, begin, _bytes_field(7, b"\x08\x01")))
        )
        atexit.register(self.flush)

    def _flush(self):
        self._last_flush = self._clock()
        data, self._buffer = bytes(self._buffer), bytearray()
        # A forked process has a copy of the buffer and must not write it again.
        if self._file is None or not data or self._process != os.getpid():
            return
        if self._size + len(data) > _FILE_BYTES:
            self._complain(f"scalars end here: the file has {_FILE_BYTES >> 20} MiB", "size")
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            # A torn record would hide everything behind it.
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
            raise
        self._size += len(data)

    def _complain(self, text, kind="other"):
        if kind not in self._complained:
            self._complained.add(kind)
            report.complain(text)


def rates_of(optimizers):
    """{tag: rate} of the first groups of these optimizers; things that are not optimizers are left out."""
    rates = []
    for optimizer in optimizers:
        for group in (getattr(optimizer, "param_groups", None) or [])[:4]:
            if isinstance(group, dict) and isinstance(group.get("lr"), (int, float)):
                rates.append(group["lr"])
    return {"learning_rate" if at == 0 else f"learning_rate/{at}": rate for at, rate in enumerate(rates[:8])}


def event(wall_time, step, what):
    """`what`: a field of an Event, encoded."""
    return b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step) + what


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def masked_crc(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data):
    """Castagnoli's, which Python's library lacks."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _bytes_field(number, data):
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
