"""Reads Fashion-MNIST from its gzipped idx files, as in Debian's dataset-fashion-mnist.

Used by mnist.py and by examples/imagenet. What always holds: the first N records are read without unpacking the rest,
and a damaged file is an error.
"""

import gzip
import os
import struct

import torch

DEFAULT_DIR = "/usr/share/datasets/fashion-mnist"
_PIXELS = 28 * 28


class Images:
    """Images with their labels. Pixels are bytes and become floats batch by batch."""

    def __init__(self, pixels, labels):
        self._pixels = pixels
        self._labels = labels

    def __len__(self):
        return len(self._labels)

    def batch(self, indices):
        chosen = torch.tensor(indices, dtype=torch.long)
        images = self._pixels[chosen].to(torch.float32)
        # Mean and deviation of the training set, in pixel values.
        return images.sub_(72.94).div_(90.02), self._labels[chosen]


def count_right(network, images, rank, world):
    """How many of this rank's share of the images are classified correctly, as a tensor that ranks can sum."""
    right = torch.zeros(1)
    share = list(range(rank, len(images), world))
    with torch.no_grad():
        for start in range(0, len(share), 500):
            pixels, labels = images.batch(share[start : start + 500])
            right += (network(pixels).argmax(1) == labels).sum()
    return right


def read_images(folder, part, limit):
    """The first `limit` records, or all of them if there are fewer. `part` is "train" or "t10k"."""
    pixels = _read_idx(os.path.join(folder, f"{part}-images-idx3-ubyte.gz"), 16, _PIXELS, limit)
    labels = _read_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte.gz"), 8, 1, limit)
    if len(pixels) // _PIXELS != len(labels):
        raise ValueError(f"{folder}: {part} has {len(pixels) // _PIXELS} images, {len(labels)} labels")
    return Images(
        torch.frombuffer(pixels, dtype=torch.uint8).view(-1, 1, 28, 28),
        torch.frombuffer(labels, dtype=torch.uint8).to(torch.long),
    )


def _read_idx(path, header_bytes, record_bytes, limit):
    with gzip.open(path, "rb") as file:
        header = file.read(header_bytes)
        if len(header) != header_bytes or header[:3] != b"\0\0\x08":
            raise ValueError(f"{path} is not an idx file of bytes")
        count = struct.unpack(">I", header[4:8])[0]
        wanted = min(limit, count) * record_bytes
        # A bytearray, because torch needs writable memory.
        data = bytearray(file.read(wanted))
    if len(data) != wanted:
        raise ValueError(f"{path} is truncated")
    return data
