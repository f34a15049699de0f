"""The tensors of a state, copied to one piece of memory as fast as memory is: all that stops the training in a save.

Used by `swell.memory`. `Snapshot(state)` finds the storages; `copy_to` copies them and leaves a state whose tensors lie
in that memory, and whose other values are copies, too. So it can be pickled later, while the training continues.

What always holds: tensors that share a storage share it in the copy. A state with values that only pickle can copy
raises `plain.NotPlain`, and is then pickled while the training waits.
"""

import copy
import os
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from swell import plain

_ALIGNED = 64
_THREADS_MAX = 4
_THREADS_FROM_BYTES = 32 << 20
_CHUNK_BYTES = 16 << 20


class Snapshot:
    def __init__(self, state):
        import torch

        self._torch = torch
        self._kinds = (torch.Tensor, torch.nn.Parameter)
        self._storages = {}  # {key: (flat tensor, place)}, in the order of their places
        self._keys = {}  # {id of a tensor: the key of its storage}
        self.size = 0
        self._state = state
        self._find(state)

    def copy_to(self, memory, place):
        """The state with its tensors in `memory`, from `place` on: a writable buffer of `place + size` bytes."""
        flat = {}
        for key, (source, at) in self._storages.items():
            flat[key] = self._torch.frombuffer(memory, dtype=source.dtype, count=source.numel(), offset=place + at)
        _copy_all([(flat[key], source) for key, (source, _) in self._storages.items()], self._torch)
        return self._rebuild(self._state, flat)

    def _find(self, value, path="state"):
        if type(value) in self._kinds and self._is_dense(value):
            self._find_storage(value)
        elif type(value) in (dict, OrderedDict):
            plain.check_keys(value, path)
            for key, item in value.items():
                self._find(item, f"{path}[{key!r}]")
        elif type(value) in (list, tuple):
            for i, item in enumerate(value):
                self._find(item, f"{path}[{i}]")
        elif isinstance(value, self._torch.Tensor):
            plain.check_whole(value, path)
            # It is more than its bytes.
            raise plain.NotPlain(f"a tensor of type {type(value).__qualname__}")

    def _find_storage(self, tensor):
        storage = _storage(tensor)
        bytes_ = storage.nbytes()
        # torch saves no storage with two types, so a tensor that reads another one's bytes has a copy of its own.
        key = (tensor.device, tensor.dtype, storage.data_ptr()) if bytes_ else None
        self._keys[id(tensor)] = key
        if key is not None and key not in self._storages:
            flat = tensor.detach().as_strided((bytes_ // tensor.element_size(),), (1,), 0)
            self._storages[key] = (flat, self.size)
            self.size += -(-bytes_ // _ALIGNED) * _ALIGNED

    def _rebuild(self, value, flat, path="state"):
        kind = type(value)
        if kind in self._kinds:
            return self._rebuild_tensor(value, flat)
        if kind in (dict, OrderedDict):
            # A model's state has attributes of its own, which say the versions of its parts.
            new = copy.copy(value)
            for key, item in value.items():
                new[key] = self._rebuild(item, flat, f"{path}[{key!r}]")
            return new
        if kind in (list, tuple):
            return kind(self._rebuild(item, flat, f"{path}[{i}]") for i, item in enumerate(value))
        if kind is bytearray:
            return bytearray(value)
        # Arrays are copied, numbers and texts never change; all else is refused.
        return plain.flatten(value, path)

    def _rebuild_tensor(self, value, flat):
        key = self._keys[id(value)]
        if key is None:
            new = value.detach().cpu().clone()
        else:
            new = flat[key].as_strided(value.shape, value.stride(), value.storage_offset())
        if type(value) is self._torch.nn.Parameter:
            return self._torch.nn.Parameter(new, value.requires_grad)
        return new.requires_grad_() if value.requires_grad else new

    def _is_dense(self, value):
        return (
            value.layout is self._torch.strided
            and (value.is_cuda or value.device.type == "cpu")
            and not (value.is_quantized or value.is_conj() or value.is_neg())
        )


def _storage(tensor):
    # torch 1.13 has no untyped_storage, and takes ten times longer for its public storage().
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()


def _copy_all(pairs, torch):
    total = sum(source.numel() * source.element_size() for _, source in pairs)
    threads = min(_THREADS_MAX, len(os.sched_getaffinity(0)))
    if total < _THREADS_FROM_BYTES or torch.get_num_threads() > 1 or threads == 1:
        # torch has threads of its own, or one is enough.
        for target, source in pairs:
            _copy(target, source)
    else:
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(_copy, *chunk) for pair in pairs for chunk in _chunks(*pair)]:
                done.result()
    if any(source.is_cuda for _, source in pairs):
        torch.cuda.synchronize()


def _chunks(target, source):
    count = max(1, _CHUNK_BYTES // source.element_size())
    return zip(target.split(count), source.split(count))


def _copy(target, source):
    # A copy from a GPU to memory that is pinned for it need not be waited for one by one.
    target.copy_(source, non_blocking=True)


def loaded():
    """Whether torch is: without it there are no tensors."""
    return sys.modules.get("torch") is not None


def size_of(state):
    """The bytes of a snapshot; 0 if only pickle can copy the state."""
    try:
        return Snapshot(state).size if loaded() else 0
    except plain.NotPlain:
        return 0
