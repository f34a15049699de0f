"""State as plain tensors, numbers and strings, which `torch.load(weights_only=True)` accepts.

Used by `swell.checkpoint`. torch 2.6 and newer refuse by default to load anything that could run code, NumPy arrays
included. So arrays travel as tensors of their bytes beside their type and shape, and come back as arrays. A Counter, in
which torch's MultiStepLR keeps its milestones, travels as a dict.

What always holds: `restore(flatten(state))` equals `state`; `flatten` copies only the containers that it must change,
so tensors are never copied and an OrderedDict of a model keeps its version metadata.
"""

import sys
from collections import Counter, OrderedDict

# The key that marks a dict as a NumPy array in plain form.
_ARRAY = "swell:numpy"
_COUNTER = "swell:counter"
_SAFE_NUMPY_KINDS = "biufc"  # bool, int, unsigned, float, complex
_LEAVES = (type(None), bool, int, float, complex, str, bytes, bytearray)


class NotPlain(TypeError):
    """The state holds something that only pickle can keep. The message says where and of which type."""


class OnlyPart(TypeError):
    """The state holds this rank's part of a tensor that is spread over the ranks. The message says where."""


def flatten(value, path="state"):
    """`value` with NumPy arrays and numbers in plain form. Raises NotPlain and OnlyPart."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind in (dict, OrderedDict):
        check_keys(value, path)
        plain = {key: flatten(item, f"{path}[{key!r}]") for key, item in value.items()}
        return value if all(plain[key] is value[key] for key in plain) else kind(plain)
    if kind is Counter and all(type(count) is int for count in value.values()):
        return {_COUNTER: flatten(dict(value), path)}
    if kind in (list, tuple):
        plain = [flatten(item, f"{path}[{i}]") for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(plain, value)) else kind(plain)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        if isinstance(value, torch.Tensor) or kind in (torch.Size, torch.dtype):
            check_whole(value, path)
            return value
        if numpy is not None and kind is numpy.ndarray and value.dtype.kind in _SAFE_NUMPY_KINDS:
            data = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
            return {_ARRAY: value.dtype.str, "shape": list(value.shape), "data": torch.from_numpy(data.copy())}
    if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in _SAFE_NUMPY_KINDS:
        return value.item()
    raise NotPlain(f"{path} is of type {_name(kind)}")


def check_keys(value, path):
    for key in value:
        if type(key) not in (str, int, float, bool, tuple, type(None)):
            raise NotPlain(f"{path} has a key of type {_name(type(key))}")


def check_whole(value, path):
    if is_part(value):
        raise OnlyPart(
            f"{path} is spread over the ranks (FSDP, tensor parallel), and a checkpoint of rank 0 would have its part "
            "alone; save with swell.Sharded"
        )


def is_part(value):
    """Whether it is a DTensor or ShardedTensor of which other ranks have other parts."""
    placements = getattr(value, "placements", None)
    if placements is not None:
        return not all(placement.is_replicate() for placement in placements)
    return hasattr(value, "local_shards")


def restore(value):
    """What `flatten` was given. Needs NumPy only where there are arrays."""
    if isinstance(value, dict):
        if _ARRAY in value:
            import numpy

            return numpy.frombuffer(value["data"].numpy().tobytes(), dtype=value[_ARRAY]).reshape(value["shape"]).copy()
        if _COUNTER in value:
            return Counter(value[_COUNTER])
        for key, item in value.items():
            changed = restore(item)
            if changed is not item:
                value[key] = changed
        return value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        items = [restore(item) for item in value]
        return value if all(a is b for a, b in zip(items, value)) else type(value)(items)
    return value


def load(file):
    """torch.load of plain tensors, numbers and strings, to the CPU: the device that saved need not exist here."""
    import torch

    # The safe reader of torch 1.13 knows no floating-point numbers.
    return torch.load(file, map_location="cpu", weights_only=not torch.__version__.startswith("1."))


def load_with_numpy(file):
    """torch.load of what Swell wrote before 0.1.0: random states in it are NumPy arrays.

    torch without an allow-list (before 2.5) loads it as it always did.
    """
    import torch

    if not hasattr(torch.serialization, "safe_globals"):
        return torch.load(file, map_location="cpu")
    import numpy

    core = getattr(numpy, "_core", None) or numpy.core
    allowed = [numpy.ndarray, numpy.dtype, core.multiarray._reconstruct, core.multiarray.scalar]
    allowed += [(core.multiarray._reconstruct, "numpy.core.multiarray._reconstruct"),
                (core.multiarray._reconstruct, "numpy._core.multiarray._reconstruct"),
                (core.multiarray.scalar, "numpy.core.multiarray.scalar"),
                (core.multiarray.scalar, "numpy._core.multiarray.scalar")]
    # NumPy 1.25 and newer have a class for each type of number.
    allowed += [kind for kind in {type(numpy.dtype(code)) for code in "?bBhHiIlLqQefdFD"} if kind is not numpy.dtype]
    with torch.serialization.safe_globals(allowed):
        return torch.load(file, map_location="cpu", weights_only=True)


def _name(kind):
    return f"{kind.__module__}.{kind.__qualname__}"
