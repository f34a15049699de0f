"""The meeting place: who leads, who waits, and what happens when it goes away. No torch here."""

import math
import socket
import threading
import unittest

import support
from swell.meeting import Done, Meeting, Seat


class MeetingTest(unittest.TestCase):
    def setUp(self):
        # Nobody begins for want of others; a test in which that is to happen says so.
        self.meeting = self.host(port=0)
        self.port = self.meeting.port

    def host(self, port, last_call=support.WAIT_SECONDS, claim=support.WAIT_SECONDS):
        meeting = Meeting(port, "job", last_call, claim)
        self.addCleanup(meeting.close)
        return meeting

    def seat(self, ordinal, wanted=2, least=1, job="job"):
        return Seat("127.0.0.1", self.port, job, ordinal, least, wanted)

    def wait(self, seat, step=None):
        """A thread in which the seat waits; its `told` is what it was told."""
        waiter = Waiter(seat, step)
        self.addCleanup(seat.leave)
        return waiter

    def call_last(self):
        with self.meeting._lock:
            # However long ago they came.
            self.meeting._arrival = self.meeting._claim_until = -math.inf
            self.meeting._begin_if_due()

    def until(self, condition):
        self.assertTrue(support.until(condition), "it does not come true")

    def test_the_first_member_leads_when_all_are_there(self):
        late, first = self.wait(self.seat(1)), self.wait(self.seat(0))
        role, others = first.result()
        self.assertEqual((role, [card["ordinal"] for card in others]), ("lead", [1]))
        first.seat.take({others[0]["id"]: {"rank": 1}})
        self.assertEqual(late.result(), ("plan", {"rank": 1}))

    def test_who_has_trained_furthest_leads(self):
        fresh, survivor = self.wait(self.seat(0)), self.wait(self.seat(1), step=40)
        role, others = survivor.result()
        self.assertEqual((role, others[0]["step"]), ("lead", None))
        self.assertIsNone(fresh.told)

    def test_a_few_begin_after_the_last_call(self):
        self.meeting = self.host(port=0, last_call=0.2, claim=0.3)
        self.port = self.meeting.port
        alone = self.wait(self.seat(0, wanted=8))
        self.assertEqual(alone.result(), ("lead", []))

    def test_fewer_than_the_least_wait(self):
        alone = self.wait(self.seat(0, wanted=4, least=2))
        self.until(lambda: self.meeting._waiting)
        self.call_last()
        self.assertIsNone(self.meeting._head)
        self.assertIsNone(alone.told)
        self.wait(self.seat(1, wanted=4, least=2))
        self.until(lambda: len(self.meeting._waiting) == 2)
        self.call_last()
        self.assertEqual(alone.result()[0], "lead")

    def test_the_head_hears_who_waits(self):
        head = self.wait(self.seat(0, wanted=1))
        head.result()
        head.seat.lead(1)
        guest = self.wait(self.seat(1))
        self.until(lambda: head.seat.waiting)
        self.assertEqual(head.seat.waiting[0]["ordinal"], 1)
        head.seat.take({head.seat.waiting[0]["id"]: {"rank": 1}})
        self.assertEqual(guest.result(), ("plan", {"rank": 1}))

    def test_a_meeting_that_comes_back_finds_the_group_that_trains(self):
        head = self.wait(self.seat(1, wanted=1))
        head.result()
        head.seat.lead(7)
        self.meeting.close()
        self.meeting = self.host(self.port, last_call=0.2)
        back = self.wait(self.seat(0))
        self.until(lambda: head.seat.waiting)
        self.assertIsNone(back.told, "it must not begin a second group")

    def test_of_two_groups_the_later_generation_stays(self):
        older, newer = self.seat(1), self.seat(2)
        self.addCleanup(older.leave)
        self.addCleanup(newer.leave)
        older.lead(1)
        self.until(lambda: self.meeting._head is not None)
        newer.lead(2)
        self.until(lambda: older.yielded)
        self.assertFalse(newer.yielded)

    def test_whoever_waits_at_the_end_is_sent_home(self):
        head = self.wait(self.seat(0, wanted=1))
        head.result()
        head.seat.lead(1)
        guest = self.wait(self.seat(1))
        self.until(lambda: head.seat.waiting)
        self.meeting.close(done=True)
        self.assertIsInstance(guest.result(), Done)

    def test_strangers_are_turned_away(self):
        stranger = self.wait(self.seat(0, wanted=1, job="another"))
        # Its second connection comes when the first was ended.
        self.until(lambda: self.meeting._ids > 1)
        self.assertIsNone(stranger.told)

    def test_a_connection_that_ends_before_the_first_word_is_made_anew(self):
        seat = self.seat(0, wanted=1)
        gone, other_end = socket.socketpair()
        other_end.close()
        connections = [gone, seat._connect()]
        seat._connect = lambda: connections.pop(0)
        self.assertEqual(self.wait(seat).result(), ("lead", []))
        self.assertEqual(connections, [])


class Waiter:
    def __init__(self, seat, step):
        self.seat = seat
        self.told = None
        self._thread = threading.Thread(target=self._wait, args=(step,), daemon=True)
        self._thread.start()

    def _wait(self, step):
        try:
            self.told = self.seat.wait(step)
        except Done as done:
            self.told = done

    def result(self):
        self._thread.join(support.WAIT_SECONDS)
        return self.told


if __name__ == "__main__":
    unittest.main()
