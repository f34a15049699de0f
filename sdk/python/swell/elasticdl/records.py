"""The records at --train_data_dir and the like, read by position.

Used by master.py, which needs their number, and worker.py, which reads ranges. The files decide the format:

    *-images-idx3-ubyte[.gz]   images, with the file of their labels; a record is the label's byte and the pixels
    *.csv                      a record is one line; a first line of column names is skipped
    *.tfrecord, *.recordio     TFRecord framing; a record is its bytes

A model file's custom_data_reader (ElasticDL's AbstractDataReader: create_shards, read_records) takes precedence. What
always holds: record i has the same bytes in every worker; a damaged file is an error.
"""

import bisect
import gzip
import os
import struct
from types import SimpleNamespace


class Idx:
    """Images and labels in idx files, the format of the MNIST family."""

    def __init__(self, folder, part, limit=None):
        images = _open_idx(folder, f"{part}-images-idx3-ubyte")
        labels = _open_idx(folder, f"{part}-labels-idx1-ubyte")
        with images, labels:
            _, count, rows, columns = struct.unpack(">IIII", _read(images, 16))
            label_count = struct.unpack(">II", _read(labels, 8))[1]
            if count != label_count:
                raise ValueError(f"{folder}: {part} has {count} images and {label_count} labels")
            self.size = count if limit is None else min(count, limit)
            self.record_bytes = rows * columns
            self._pixels = _read(images, self.size * self.record_bytes)
            self._labels = _read(labels, self.size)

    def __len__(self):
        return self.size

    def read(self, start, end, codec="bytes"):
        for index in range(start, end):
            at = index * self.record_bytes
            label, pixels = self._labels[index:index + 1], self._pixels[at:at + self.record_bytes]
            # ElasticDL's codec tf_example has features by name.
            yield {"image": pixels, "label": label[0]} if codec == "tf_example" else label + pixels


class Lines:
    """Text with one record per line."""

    def __init__(self, paths, limit=None, header=None):
        self._lines = []
        for path in paths:
            with _open(path) as file:
                lines = [line.rstrip(b"\r\n") for line in file if line.strip()]
            named = _is_header(lines[0]) if lines and header is None else header
            self._lines += lines[1:] if named else lines
        self._lines = self._lines[:limit]

    def __len__(self):
        return len(self._lines)

    def read(self, start, end, codec="bytes"):
        for line in self._lines[start:end]:
            yield line.decode().split(",") if codec == "csv" else line


class TfRecords:
    """TFRecord files: length, checksum, bytes, checksum. The checksums are ignored."""

    def __init__(self, paths, limit=None):
        self._records = []
        for path in paths:
            with _open(path) as file:
                while head := file.read(12):
                    if len(head) < 12:
                        raise ValueError(f"{path} is truncated")
                    self._records.append(_read(file, struct.unpack("<Q", head[:8])[0]))
                    _read(file, 4)
        self._records = self._records[:limit]

    def __len__(self):
        return len(self._records)

    def read(self, start, end, codec="bytes"):
        return iter(self._records[start:end])


class Custom:
    """A model file's own reader. Its shards, sorted by name, follow each other."""

    def __init__(self, reader):
        self._reader = reader
        self._shards, self._ends = [], []
        total = 0
        for name, (start, count) in sorted(reader.create_shards().items()):
            total += count
            self._shards.append((name, start, count))
            self._ends.append(total)

    def __len__(self):
        return self._ends[-1] if self._ends else 0

    def read(self, start, end, codec="bytes"):
        while start < end:
            which = bisect.bisect_right(self._ends, start)
            name, first, count = self._shards[which]
            begins = self._ends[which] - count
            stop = min(end, self._ends[which])
            shard = SimpleNamespace(name=name, start=first + start - begins, end=first + stop - begins)
            yield from self._reader.read_records(
                SimpleNamespace(shard=shard, shard_name=name, start=shard.start, end=shard.end))
            start = stop


def open_records(path, custom=None, parameters=None, limit=None):
    """The records at `path`. `parameters` are --data_reader_params; `limit` is the most records to read."""
    if custom is not None:
        return Custom(custom(data_origin=path, **(parameters or {})))
    if not os.path.exists(path):
        raise ValueError(f"{path} does not exist")
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    names = sorted(os.listdir(path)) if os.path.isdir(path) else [os.path.basename(path)]
    parts = sorted({name.split("-images-idx3-ubyte")[0] for name in names if "-images-idx3-ubyte" in name})
    if parts:
        held_out = os.path.basename(path.rstrip("/")) in ("test", "t10k", "validation", "val", "evaluation")
        wanted = "t10k" if held_out else "train"
        return Idx(folder, wanted if wanted in parts else parts[0], limit)
    for kind, endings in ((Lines, (".csv", ".csv.gz", ".txt")), (TfRecords, (".tfrecord", ".recordio"))):
        chosen = [os.path.join(folder, name) for name in names if name.endswith(endings)]
        if chosen:
            return kind(chosen, limit)
    raise ValueError(f"{path} has no file in a known format: idx images, *.csv, *.txt, *.tfrecord, *.recordio")


def _open(path):
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


def _open_idx(folder, name):
    for ending in (".gz", ""):
        if os.path.exists(os.path.join(folder, name + ending)):
            return _open(os.path.join(folder, name + ending))
    raise ValueError(f"{folder} has no {name}")


def _read(file, count):
    data = file.read(count)
    if len(data) != count:
        raise ValueError(f"{file.name if hasattr(file, 'name') else 'the file'} is truncated")
    return data


def _is_header(line):
    def is_number(text):
        try:
            float(text)
            return True
        except ValueError:
            return False
    return not any(is_number(field) for field in line.split(b","))
