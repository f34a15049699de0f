"""State as named records, written straight to where they belong: no copy of the whole state in between.

Used by `swell.checkpoint` (to disk) and `swell.memory` (to shared memory, and later from there to disk). A file of
records is what `torch.save` writes: a zip archive without compression, so `torch.load(path)` reads it. State without
torch in the process, or that is bytes already, is one record without a name, and its file has just these bytes.

What always holds: `write_state` passes every record to `sink.add(name, size, chunks)` while its bytes are valid, and
keeps none of them. A sink with `add_at(name, address, size)` may take the bytes of a tensor where they are.
"""

import ctypes
import inspect
import io
import pickle
import sys
import zipfile

from swell import plain, report

CHUNK_BYTES = 4 << 20
_FOLDER = "archive/"  # torch reads the folder's name from the archive; any will do
_reported = set()


def write_state(state, sink):
    """Writes the state to `sink` and returns its codec; see `swell.checkpoint.CODECS`."""
    if isinstance(state, (bytes, bytearray, memoryview)):
        _add(sink, "", state)
        return "bytes"
    # torch knows tensors on other devices and shared storage; without torch there are none.
    if sys.modules.get("torch") is None:
        _add(sink, "", pickle.dumps(state, protocol=4))
        return "pickle"
    try:
        state = plain.flatten(state)
    except plain.NotPlain as found:
        _save_objects(state, sink, str(found).replace("state['state']", "state", 1))  # within what a Job adds
        return "objects"
    _save(state, sink)
    return "tensors"


def write_plain(state, sink):
    """As `write_state`, of what `swell.snapshot` has copied."""
    _save(state, sink)
    return "tensors"


def size_of(state):
    """The bytes of the tensors in the state, each storage once; what else there is, is small."""
    sizes = {}
    pending = [state]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            sizes[id(value)] = len(value)
        elif hasattr(value, "storage_offset"):
            storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        elif hasattr(value, "nbytes"):
            sizes[id(value)] = value.nbytes
    return sum(sizes.values())


def _save_objects(state, sink, reason):
    """`reason`: which of them is not plain."""
    if reason not in _reported:
        _reported.add(reason)
        report.complain(
            f"{reason}, which only pickle can store: torch.load reads this checkpoint with weights_only=False, so read "
            "it from a folder that you trust"
        )
    try:
        _save(state, sink)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"the state cannot be saved: {reason}, and pickle says: {error}") from error


def _save(state, sink):
    import torch

    save = getattr(torch.serialization, "_save", None)
    known = ["obj", "zip_file", "pickle_module", "pickle_protocol"]
    parameters = [] if save is None else list(inspect.signature(save).parameters)
    if parameters[:4] != known or parameters[4:] not in ([], ["_disable_byteorder_record"]):
        # A torch that does it in another way. One copy more.
        buffer = io.BytesIO()
        torch.save(state, buffer)
        _add(sink, "", buffer.getvalue())
        return
    writer = _Writer(sink)
    save(state, writer, pickle, 2, *[False] * (len(parameters) - 4))
    if not writer.has_version:
        writer.write_record("version", b"3\n", 2)


class _Writer:
    """Takes what `torch.save` writes, in place of torch's own writer of archives."""

    def __init__(self, sink):
        self._sink = sink
        self.has_version = False

    def write_record(self, name, data, size):
        self.has_version = self.has_version or name == "version"
        if isinstance(data, str):
            data = data.encode()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            # The address of a storage on the CPU (torch 1.13), or the storage itself.
            address = data if isinstance(data, int) else data.data_ptr()
            add_at = getattr(self._sink, "add_at", None)
            if add_at is not None and size and add_at(name, address, size):
                return  # it is where it belongs already
            data = (ctypes.c_char * size).from_address(address) if size else b""
        _add(self._sink, name, data, size)

    def write_end_of_file(self):
        pass


class Archive:
    """A sink: the file that `torch.load` reads. `file` need not be able to seek."""

    def __init__(self, file):
        self._file = file
        self._zip = None

    def add(self, name, size, parts):
        if not name:
            for part in parts:
                self._file.write(part)
            return
        if self._zip is None:
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED, allowZip64=True)
        entry = zipfile.ZipInfo(_FOLDER + name)
        entry.file_size = size
        with self._zip.open(entry, "w") as record:
            for part in parts:
                record.write(part)

    def close(self):
        if self._zip is not None:
            self._zip.close()


def _add(sink, name, data, size=None):
    view = memoryview(data).cast("B")[:size]
    sink.add(name, len(view), chunks(view))


def chunks(view):
    return (view[i : i + CHUNK_BYTES] for i in range(0, len(view), CHUNK_BYTES))
