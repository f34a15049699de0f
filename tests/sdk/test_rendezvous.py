"""The rendezvous: which member leads, which members wait, and what happens when the server restarts. Needs no torch."""

import math
import socket
import threading
import unittest

import support
from swell.rendezvous import JobEnded, RendezvousClient, RendezvousServer


class RendezvousTest(unittest.TestCase):
    def setUp(self):
        # Timeouts that never end: a test in which one does end says so.
        self.server = self.start_server(port=0)
        self.port = self.server.port

    def start_server(self, port, last_call=support.WAIT_SECONDS, leader_reconnect=support.WAIT_SECONDS):
        server = RendezvousServer(port, "job", last_call, leader_reconnect)
        self.addCleanup(server.close)
        return server

    def client(self, ordinal, expected=2, minimum=1, job="job"):
        return RendezvousClient("127.0.0.1", self.port, job, ordinal, minimum, expected)

    def join(self, client, step=None):
        """A thread in which the client joins."""
        joining = Joining(client, step)
        self.addCleanup(client.close)
        return joining

    def end_last_call(self):
        with self.server._lock:
            self.server._last_arrival = self.server._leader_deadline = -math.inf
            self.server._form_group_if_due()

    def until(self, condition):
        self.assertTrue(support.until(condition), "the condition did not become true")

    def test_the_first_member_leads_when_all_are_there(self):
        late, first = self.join(self.client(1)), self.join(self.client(0))
        role, others = first.result()
        self.assertEqual((role, [member["ordinal"] for member in others]), ("leader", [1]))
        first.client.admit({others[0]["id"]: {"rank": 1}})
        self.assertEqual(late.result(), ("member", {"rank": 1}))

    def test_the_member_that_trained_furthest_leads(self):
        fresh, survivor = self.join(self.client(0)), self.join(self.client(1), step=40)
        role, others = survivor.result()
        self.assertEqual((role, others[0]["step"]), ("leader", None))
        self.assertIsNone(fresh.answer)

    def test_fewer_members_than_expected_start_after_the_last_call(self):
        self.server = self.start_server(port=0, last_call=0.2, leader_reconnect=0.3)
        self.port = self.server.port
        alone = self.join(self.client(0, expected=8))
        self.assertEqual(alone.result(), ("leader", []))

    def test_fewer_members_than_the_minimum_wait(self):
        alone = self.join(self.client(0, expected=4, minimum=2))
        self.until(lambda: self.server._waiting)
        self.end_last_call()
        self.assertIsNone(self.server._leader)
        self.assertIsNone(alone.answer)
        self.join(self.client(1, expected=4, minimum=2))
        self.until(lambda: len(self.server._waiting) == 2)
        self.end_last_call()
        self.assertEqual(alone.result()[0], "leader")

    def test_the_leader_knows_which_members_wait(self):
        leader = self.join(self.client(0, expected=1))
        leader.result()
        leader.client.lead(1)
        late = self.join(self.client(1))
        self.until(lambda: leader.client.waiting)
        self.assertEqual(leader.client.waiting[0]["ordinal"], 1)
        leader.client.admit({leader.client.waiting[0]["id"]: {"rank": 1}})
        self.assertEqual(late.result(), ("member", {"rank": 1}))

    def test_a_server_that_restarts_finds_the_group_that_trains(self):
        leader = self.join(self.client(1, expected=1))
        leader.result()
        leader.client.lead(7)
        self.server.close()
        self.server = self.start_server(self.port, last_call=0.2)
        restarted = self.join(self.client(0))
        self.until(lambda: leader.client.waiting)
        self.assertIsNone(restarted.answer, "it must not form a second group")

    def test_of_two_groups_the_later_generation_stays(self):
        older, newer = self.client(1), self.client(2)
        self.addCleanup(older.close)
        self.addCleanup(newer.close)
        older.lead(1)
        self.until(lambda: self.server._leader is not None)
        newer.lead(2)
        self.until(lambda: older.superseded)
        self.assertFalse(newer.superseded)

    def test_members_that_wait_are_told_when_the_job_ends(self):
        leader = self.join(self.client(0, expected=1))
        leader.result()
        leader.client.lead(1)
        late = self.join(self.client(1))
        self.until(lambda: leader.client.waiting)
        self.server.close(done=True)
        self.assertIsInstance(late.result(), JobEnded)

    def test_members_of_another_job_are_refused(self):
        stranger = self.join(self.client(0, expected=1, job="another"))
        # It connects a second time after the server closed its first connection.
        self.until(lambda: self.server._connection_count > 1)
        self.assertIsNone(stranger.answer)

    def test_a_client_reconnects_when_the_connection_ends_before_the_first_message(self):
        client = self.client(0, expected=1)
        gone, other_end = socket.socketpair()
        other_end.close()
        connections = [gone, client._connect()]
        client._connect = lambda: connections.pop(0)
        self.assertEqual(self.join(client).result(), ("leader", []))
        self.assertEqual(connections, [])

    def test_a_leader_trains_on_while_the_first_member_is_looked_for(self):
        client = self.client(1)
        looks, found = threading.Event(), threading.Event()
        self.addCleanup(found.set)
        client._connect = lambda: looks.set() or found.wait() and None
        client.lead(1)
        self.assertTrue(looks.wait(support.WAIT_SECONDS))
        calls = (lambda: client.lead(2), lambda: client.admit({"1": {}}), client.close)
        training = threading.Thread(target=lambda: [call() for call in calls], daemon=True)
        training.start()
        training.join(support.WAIT_SECONDS)
        self.assertFalse(training.is_alive(), "the training waits for the first member")


class Joining:
    """Calls `client.join(step)` in a thread; `answer` is what it returned or raised."""

    def __init__(self, client, step):
        self.client = client
        self.answer = None
        self._thread = threading.Thread(target=self._join, args=(step,), daemon=True)
        self._thread.start()

    def _join(self, step):
        try:
            self.answer = self.client.join(step)
        except JobEnded as ended:
            self.answer = ended

    def result(self):
        self._thread.join(support.WAIT_SECONDS)
        return self.answer


if __name__ == "__main__":
    unittest.main()
