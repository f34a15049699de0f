"""Atomic writes: a reader, also after a crash, sees the old content or the new one.

Used by `swell.checkpoint` and `swell.report`. What always holds: after `write_atomic` returns, the content survives a
power cut (if `durable`). If it raises, the target is unchanged and no temporary file is left.
"""

import os
import tempfile


def write_atomic(path, data, durable=True):
    folder = os.path.dirname(os.path.abspath(path))
    # The same folder as the target: a rename is atomic only inside one file system.
    handle, temporary = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        # mkstemp makes files private; the node agent, another user, must be able to read them.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        remove_quietly(temporary)
        raise
    if durable:
        sync_folder(folder)


def sync_folder(folder):
    """Makes renames and removals in `folder` durable: fsync of a file does not cover its name."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_quietly(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


TEMPORARY_PREFIX = ".swell-tmp-"
