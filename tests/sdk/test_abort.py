"""A group that is being formed is given up when a member of it dies, whatever torch waits for then."""

import datetime
import multiprocessing
import os
import threading
import time
import unittest

import support  # noqa: F401
import torch
import torch.distributed as dist
from swell import abort, resize

LONG = datetime.timedelta(seconds=60)
ADDRESS_BYTES = 20  # gloo's address of a rank is longer than what else it keeps in the store


class DyingStore(dist.Store):
    """A store whose user dies right after it has told the others where it listens."""

    def __init__(self, port):
        super().__init__()
        self._store = dist.TCPStore("127.0.0.1", port, None, False, LONG, wait_for_workers=False)

    def set(self, key, value):
        self._store.set(key, value)
        if len(value) > ADDRESS_BYTES:
            os._exit(3)

    def get(self, key):
        return self._store.get(key)

    def wait(self, *keys):
        return self._store.wait(*keys)

    def add(self, key, amount):
        return self._store.add(key, amount)

    def set_timeout(self, timeout):
        pass


def die_while_it_forms(port):
    dist.init_process_group("gloo", store=DyingStore(port), rank=1, world_size=2, timeout=LONG)


def form(port):
    store = dist.TCPStore("127.0.0.1", port, None, False, LONG, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=1, world_size=2, timeout=LONG)


class FormingTest(unittest.TestCase):
    # Which side connects depends on the ports. Only one of the two has no socket yet.
    TRIES = 4

    def test_a_peer_that_dies_before_it_connects_ends_the_wait(self):
        for _ in range(self.TRIES):
            before = abort.sockets()
            store = dist.TCPStore("127.0.0.1", 0, None, True, LONG, wait_for_workers=False)
            peer = multiprocessing.get_context("spawn").Process(target=die_while_it_forms, args=(store.port,))
            peer.start()
            over = threading.Event()

            def end(peer=peer, before=before, port=store.port, over=over):
                peer.join()
                while not over.wait(0.2):
                    sockets = abort.sockets() - before
                    abort.end_waits(sockets, 2, {port})
                    abort.shut_down(sockets)

            breaker = threading.Thread(target=end)
            breaker.start()
            begin = time.monotonic()
            try:
                with self.assertRaises(RuntimeError):
                    dist.init_process_group("gloo", store=store, rank=0, world_size=2, timeout=LONG)
                    dist.all_reduce(torch.ones(1))  # newer versions connect when they need to
            finally:
                over.set()
                breaker.join()
                resize.destroy_group([])
            self.assertEqual(peer.exitcode, 3)
            self.assertLess(time.monotonic() - begin, LONG.seconds / 2)

        # A group of this process and a new one forms all the same.
        store = dist.TCPStore("127.0.0.1", 0, None, True, LONG, wait_for_workers=False)
        peer = multiprocessing.get_context("spawn").Process(target=form, args=(store.port,))
        peer.start()
        dist.init_process_group("gloo", store=store, rank=0, world_size=2, timeout=LONG)
        dist.destroy_process_group()
        peer.join()


if __name__ == "__main__":
    unittest.main()
