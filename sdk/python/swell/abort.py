"""Ends what a process group waits for, so that a lost peer costs milliseconds and not torch's ten minutes.

Used by `swell.resize`. torch has no call that ends gloo's collectives in every version. gloo gives up when its
connections end, so this module shuts them down: those sockets that appeared while the group was formed. What gloo
forgets then (`swell.resize.finish`) is not waited for. NCCL's groups are aborted by torch, from 2.6 on.

What always holds: sockets that the process had before are left alone, also if a number of a closed one is used again,
because a socket is known by its inode.
"""

import os
import socket
import struct
import sys


def sockets():
    """The inodes of this process's sockets."""
    return set(_descriptors())


def inodes(connections):
    """The inodes of Python's sockets; those that are closed have none."""
    return {os.fstat(each.fileno()).st_ino for each in connections if each.fileno() >= 0}


def shut_down(inodes):
    """Ends the connections among these sockets. Listeners stay: gloo does not survive the end of its own."""
    for inode, descriptor in _descriptors().items():
        if inode in inodes:
            _shut_down(inode, descriptor)


def end_waits(inodes, world, own_ports):
    """Ends what gloo waits for while a group is formed: a connection of a peer that died before it made it.

    There is no socket yet that could be shut down. gloo's listener tells the connections of its pairs apart by a number
    that a peer sends first (gloo/transport/tcp/listener.h), counted from 0 on. So this gives it, for each number, a
    connection that ends at once. `own_ports`: listeners that are not gloo's.
    """
    for inode, descriptor in _descriptors().items():
        address = _listener_address(descriptor) if inode in inodes else None
        if address is None or address[1] in own_ports:
            continue
        for number in range(2 * world):
            try:
                with socket.create_connection(address[:2], timeout=1) as connection:
                    connection.sendall(struct.pack("=q", number))
            except OSError:
                break


def abort_device_groups():
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_initialized() or distributed.get_backend() == "gloo":
        return
    abort = getattr(distributed.distributed_c10d, "_abort_process_group", None)
    if abort is not None:
        abort()


def _descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            found[int(target[8:-1])] = int(name)
    return found


def _listener_address(descriptor):
    try:
        with socket.socket(fileno=os.dup(descriptor)) as found:
            listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and found.family in (socket.AF_INET, socket.AF_INET6):
                return found.getsockname()
    except OSError:
        pass  # closed meanwhile
    return None


def _shut_down(inode, descriptor):
    try:
        copy = os.dup(descriptor)
    except OSError:
        return
    if os.fstat(copy).st_ino != inode:
        os.close(copy)
        return
    with socket.socket(fileno=copy) as found:
        try:
            if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not connected
