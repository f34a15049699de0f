"""A TCP port for a server that a test starts later. From below those that the kernel hands out by itself, so that no
connection and no other server takes it in between.
"""

import random
import socket


def free_port():
    for port in random.SystemRandom().sample(range(12000, 30000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port of a hundred between 12000 and 30000 is free")
