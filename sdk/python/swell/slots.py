"""Files in memory that a process keeps mapped, so that writing to them costs no more than copying memory.

Used by `swell.memory`. The first touch of a page costs several times what copying it costs. So the pages are reserved
and touched in the background before the first save, and stay mapped afterwards.

What always holds: the pages of a mapping are reserved before they are written. If memory lacks, `reserve` raises;
nothing is killed later. A file is never made shorter while it is mapped here.
"""

import ctypes
import mmap
import os
import sys

_POPULATE_WRITE = 23  # Linux 5.14; without it the first save touches the pages
_HUGE_PAGES = 14
_POPULATE_BYTES = 64 << 20
_ROUND_BYTES = 2 << 20


class Slot:
    def __init__(self):
        self._map = None
        self._inode = None

    def reserve(self, file, size):
        """A mapping of at least the first `size` bytes of the file, a descriptor. Raises OSError if memory lacks."""
        size = -(-size // _ROUND_BYTES) * _ROUND_BYTES  # a state that grows a little needs no other mapping
        info = os.fstat(file)
        if info.st_size < size or info.st_blocks * 512 < size:
            os.posix_fallocate(file, 0, size)
        if self._inode != (info.st_dev, info.st_ino) or len(self._map) < size:
            self._map = mmap.mmap(file, size)
            self._inode = (info.st_dev, info.st_ino)
        return self._map

    def touch(self):
        """Touches all pages, and changes none. Takes long, and lets other threads run."""
        memory = self._map
        if memory is None:
            return
        # While the mapping is exported, it is not closed.
        address = ctypes.addressof(exported := ctypes.c_char.from_buffer(memory))
        libc = ctypes.CDLL(None)
        libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        libc.madvise(address, len(memory), _HUGE_PAGES)
        for at in range(0, len(memory), _POPULATE_BYTES):
            if libc.madvise(address + at, min(_POPULATE_BYTES, len(memory) - at), _POPULATE_WRITE) != 0:
                break
        _pin(address, len(memory))
        del exported


def _pin(address, size):
    """Lets GPUs write to the memory directly."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.cudart().cudaHostRegister(address, size, 0)
