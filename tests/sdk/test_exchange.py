"""How long steps wait for gradients, and what is reported of it."""

import json
import os
import tempfile
import unittest

import support  # noqa: F401  (finds the SDK)
from swell.exchange import Exchange
from swell.report import Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class ExchangeTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.exchange = Exchange(self.clock)

    def pass_time(self, seconds):
        self.clock.now += seconds

    def test_the_wait_begins_with_the_last_bucket(self):
        self.exchange.sent()
        self.pass_time(5)
        self.exchange.came()
        self.pass_time(1)
        self.exchange.sent()
        self.pass_time(0.25)
        self.exchange.came()
        self.pass_time(7)
        self.assertEqual(self.exchange.take(), 0.25)

    def test_a_step_without_exchange_has_no_wait(self):
        self.assertIsNone(self.exchange.take())
        self.exchange.sent()
        self.assertIsNone(self.exchange.take(), "the sum never came")
        self.exchange.sent()
        self.exchange.came()
        self.assertEqual(self.exchange.take(), 0.0)
        self.assertIsNone(self.exchange.take(), "each step is told once")


class ReportTest(unittest.TestCase):
    def test_the_mean_wait_of_the_interval_is_reported(self):
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report")
            progress = Progress({"SWELL_REPORT_FILE": path}, clock)
            progress.step(0, 2)
            for step, waited in ((1, 0.1), (2, 0.3), (3, None)):
                clock.now += 1
                metrics = progress.step(step, 2, records=8, waited=waited)
                if metrics:
                    break
            self.assertEqual(metrics["sync_seconds"], 0.2)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["metrics"]["sync_seconds"], 0.2)

    def test_without_a_wait_nothing_is_said_of_it(self):
        clock = Clock()
        progress = Progress({}, clock)
        progress.step(0, 1)
        clock.now += 3
        self.assertNotIn("sync_seconds", progress.step(1, 1))


if __name__ == "__main__":
    unittest.main()
