"""Waits for collectives that gloo has forgotten end once the group is broken."""

import unittest

import support  # noqa: F401  the paths
import torch
from swell import answers
from swell.resize import LostPeer, finish


class _Work:
    """A collective that ends when the test says so."""

    def __init__(self):
        self.future = torch.futures.Future()
        self.waits = 0

    def get_future(self):
        return self.future

    def is_completed(self):
        return self.future.done()

    def wait(self, seconds=None):
        self.waits += 1
        if not self.future.done():
            self.at_time_out()
            raise RuntimeError("Operation timed out!")
        return self.future.value()

    def at_time_out(self):
        pass


class AnswersTest(unittest.TestCase):
    def setUp(self):
        self.answers = answers.Answers()
        self.work = _Work()
        self.taken = []

    def take(self, value):
        try:
            self.taken.append(value()[0].item())
        except RuntimeError as error:
            self.taken.append(str(error))
        return torch.ones(1)

    def test_a_sum_is_taken_once_it_is_there(self):
        answer = self.answers.of(self.work, self.take)
        self.assertFalse(answer.done())
        self.work.future.set_result([torch.full((1,), 3.0)])
        self.assertEqual(answer.value(), torch.ones(1))
        self.answers.give_up()
        self.assertEqual(self.taken, [3.0])

    def test_a_failed_sum_raises_its_error(self):
        def fail(_):
            raise RuntimeError("Connection closed by peer")

        began = torch.futures.Future()
        self.work.future = began.then(fail)
        answer = self.answers.of(self.work, self.take)
        began.set_result(None)
        self.assertTrue(answer.done())
        self.assertIn("Connection closed by peer", self.taken[0])

    def test_a_sum_that_is_given_up_changes_nothing_later(self):
        answer = self.answers.of(self.work, self.take)
        self.answers.give_up()
        self.assertTrue(answer.done())
        self.assertIn("gloo has forgotten a sum", self.taken[0])
        self.work.future.set_result([torch.ones(1)])
        self.assertEqual(len(self.taken), 1)


class FinishTest(unittest.TestCase):
    def test_it_waits_until_the_collective_has_ended(self):
        work = _Work()
        reasons = iter([None, None])

        def broken():
            if work.waits == 2:
                work.future.set_result(None)
            return next(reasons)

        finish(work, torch.zeros(1), broken)
        self.assertEqual(work.waits, 3)

    def test_it_does_not_wait_in_a_broken_group(self):
        with self.assertRaisesRegex(LostPeer, "rank 1 has ended"):
            finish(_Work(), torch.zeros(1), lambda: "rank 1 has ended")

    def test_it_sees_a_collective_that_ends_as_the_time_runs_out(self):
        work = _Work()
        work.at_time_out = lambda: work.future.set_result(None)
        finish(work, torch.zeros(1), lambda: "rank 1 has ended")
        self.assertEqual(work.waits, 2)

    def test_an_error_of_the_collective_is_raised(self):
        work = _Work()
        began = torch.futures.Future()
        work.future = began.then(lambda _: [][0])
        began.set_result(None)
        with self.assertRaisesRegex(RuntimeError, "IndexError"):
            finish(work, torch.zeros(1), lambda: None)


if __name__ == "__main__":
    unittest.main()
