"""Four shapes drawn into 8 x 8 noisy pixels: a data set that needs no download.

Used by plain.py and elastic.py. What always holds: record N is the same in every process and on every machine.
"""

import torch
from torch.utils.data import Dataset

_NOISE = 1.0


class Shapes(Dataset):
    def __init__(self, length, seed=7):
        generator = torch.Generator().manual_seed(seed)
        self._labels = torch.randint(4, (length,), generator=generator)
        self._images = _patterns()[self._labels] + _NOISE * torch.randn(length, 64, generator=generator)

    def __len__(self):
        return len(self._labels)

    def __getitem__(self, index):
        return self._images[index], self._labels[index]


def accuracy(model):
    """The accuracy on held-out records. Each rank computes the same value by itself."""
    test = Shapes(1000, seed=8)
    with torch.no_grad():
        network = getattr(model, "module", model)
        return (network(test._images).argmax(1) == test._labels).float().mean().item()


def _patterns():
    square, cross, bar, corner = torch.zeros(4, 8, 8).unbind()
    square[2:6, 2:6] = 1
    cross[3:5, :] = cross[:, 3:5] = 1
    bar[:, 5:7] = 1
    corner[:3, :3] = corner[5:, 5:] = 1
    return torch.stack([square, cross, bar, corner]).reshape(4, 64)
