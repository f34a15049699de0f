"""What `Peers` does with strangers, with what is not a message, and with members of another group."""

import json
import socket
import threading
import unittest

import support
from swell.peers import Peers


class PeersTest(unittest.TestCase):
    def setUp(self):
        self.lost = []
        self.host = self.peers(self.lost.append)

    def peers(self, on_loss, silent=30.0):
        peers = Peers("job", on_loss, silent)
        self.addCleanup(peers.leave)
        return peers

    def connect(self, *messages):
        connection = socket.create_connection(("127.0.0.1", self.host.port))
        self.addCleanup(connection.close)
        connection.settimeout(support.WAIT_SECONDS)
        for message in messages:
            connection.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        return connection

    def roster(self, *others):
        return [("127.0.0.1", peers.port) for peers in (self.host, *others)]

    def assert_closed(self, connection):
        with connection.makefile("rb") as lines:
            for _ in lines:
                pass

    def test_what_is_no_message_ends_the_connection(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b"7\n", b'{"member": 5}\n', b'{"member": {"job": "other"}}\n',
                     b"\xff\xfe\n"):
            with self.subTest(data=data):
                self.assert_closed(self.connect(data))
        with self.subTest("too long"), self.assertRaises(OSError):
            connection = self.connect()
            while True:
                connection.sendall(b"x" * (1 << 20))

    def test_a_member_of_an_earlier_group_is_out(self):
        self.host.begin(5, 0, self.roster(), 1)
        connection = self.connect({"member": {"job": "job", "generation": 4, "rank": 1}})
        with connection.makefile("rb") as lines:
            self.assertEqual(json.loads(lines.readline()), {"out": True})
        self.assertEqual(self.lost, [])

    def test_a_rank_of_a_wrong_kind_breaks_nothing(self):
        other = self.peers(lambda text: None)
        self.host.begin(5, 0, self.roster(other), 1)
        for rank in ("1", None, -1, 7, [1], {"a": 1}):
            self.connect({"member": {"job": "job", "generation": 5, "rank": rank}})
        other.begin(5, 1, self.roster(other), 1)
        self.meet(other)

    def meet(self, other):
        met = {}
        threads = [threading.Thread(target=lambda: met.update(host=self.host.reunite(3))),
                   threading.Thread(target=lambda: met.update(other=other.reunite(4)))]
        threads[0].start()
        threads[1].start()
        threads[0].join(support.WAIT_SECONDS)
        self.assertEqual(met, {"host": ("host", {0: 3, 1: 4})})
        self.host.send_plan({"world": 2})
        threads[1].join(support.WAIT_SECONDS)
        self.assertEqual(met["other"], ("member", {"world": 2}))

    def test_members_meet_without_a_loss(self):
        other = self.peers(lambda text: None)
        self.host.begin(1, 0, self.roster(other), 1)
        other.begin(1, 1, self.roster(other), 1)
        self.meet(other)

    def test_a_member_that_leaves_on_purpose_is_no_loss(self):
        other = self.peers(lambda text: None)
        self.host.begin(1, 0, self.roster(other), 1)
        other.begin(1, 1, self.roster(other), 1)
        self.assertTrue(support.until(lambda: self.host._members))
        other.leave()
        self.assertTrue(support.until(lambda: not self.host._members))
        self.assertEqual(self.lost, [])

    def test_whoever_comes_when_the_host_has_left_is_told(self):
        self.host.begin(2, 0, self.roster(), 1)
        self.host.leave()
        connection = self.connect({"member": {"job": "job", "generation": 2, "rank": 1}})
        with connection.makefile("rb") as lines:
            self.assertEqual(json.loads(lines.readline()), {"left": True})

    def test_a_host_that_was_not_heard_yet_may_be_at_its_end(self):
        # The job is done at the host, whose process ends before its thread has seen this member.
        host = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(host.close)
        host.settimeout(support.WAIT_SECONDS)
        roster = [host.getsockname(), ("127.0.0.1", self.host.port)]
        self.host.begin(1, 1, roster, 1)
        for _ in range(2):
            host.accept()[0].close()
        connection = host.accept()[0]
        self.addCleanup(connection.close)
        connection.sendall(b'{"left": true}\n')
        self.assertTrue(support.until(lambda: self.host._lost == {0: "left"}))
        self.assertEqual(self.lost, [])

    def test_a_host_that_is_never_heard_is_lost(self):
        member = self.peers(self.lost.append, silent=0.5)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = closed.getsockname()
        member.begin(1, 1, [address, ("127.0.0.1", member.port)], 1)
        self.assertTrue(support.until(lambda: self.lost))
        self.assertEqual(self.lost[0], "rank 0 has ended")

    def test_fewer_than_the_job_needs_go_to_the_rendezvous(self):
        gone = self.peers(lambda text: None, silent=0.5)
        self.host = self.peers(self.lost.append, silent=0.5)
        self.host.begin(1, 0, self.roster(gone), 2)
        self.assertIsNone(self.host.reunite(3))
        self.assertTrue(support.until(lambda: self.lost))

    def end(self, *members, seconds=support.WAIT_SECONDS):
        """Threads in which these members have done their work, wait for the others, and leave."""
        def run(peers):
            peers.wait_for_all(seconds)
            peers.leave()

        threads = [threading.Thread(target=run, args=(peers,)) for peers in members]
        for thread in threads:
            thread.start()
        return threads

    def test_no_member_ends_before_all_have_done_their_work(self):
        others = [self.peers(self.lost.append), self.peers(self.lost.append)]
        for rank, peers in enumerate((self.host, *others)):
            peers.begin(1, rank, self.roster(*others), 1)
        threads = self.end(self.host, others[0])
        self.assertTrue(support.until(lambda: self.host._done == {0, 1} and set(self.host._members) == {1, 2}))
        self.assertTrue(all(thread.is_alive() for thread in threads))
        threads += self.end(others[1])
        for thread in threads:
            thread.join(support.WAIT_SECONDS)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(self.lost, [])

    def test_a_member_that_works_on_is_not_waited_for_longer_than_that(self):
        other = self.peers(self.lost.append)
        self.host.begin(1, 0, self.roster(other), 1)
        other.begin(1, 1, self.roster(other), 1)
        self.host.wait_for_all(0.01)
        self.host.leave()
        self.assertTrue(support.until(lambda: other._lost == {0: "left"}))
        other.wait_for_all(support.WAIT_SECONDS)  # at once: the host has waited
        self.assertEqual(self.lost, [])

    def test_a_member_that_dies_is_not_waited_for(self):
        connection = self.connect({"member": {"job": "job", "generation": 1, "rank": 1}})
        self.host.begin(1, 0, [*self.roster(), ("127.0.0.1", 1)], 1)
        self.assertTrue(support.until(lambda: self.host._members))
        threads = self.end(self.host)
        connection.close()
        threads[0].join(support.WAIT_SECONDS)
        self.assertFalse(threads[0].is_alive())


if __name__ == "__main__":
    unittest.main()
