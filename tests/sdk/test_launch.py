"""The launcher does what torchrun does, and handles preemption. Workers here do not load torch, so they start fast."""

import os
import re
import signal
import socket
import time
import unittest

import support
from swell.launch import MissingPeers, QuickFailures

_HELLO = """
import os
import sys
# In one write, so that the lines of two workers do not mix.
sys.stdout.write("hello {RANK} {WORLD_SIZE}\\n".format(**os.environ))
sys.stdout.flush()
raise SystemExit(int(os.environ.get("CODE", "0")))
"""

# The wake-up descriptor also ends a wait that begins after the signal. A handler alone would not.
_WAITING = """
import os, signal, swell
notice = swell.Notice()
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
print("ready", flush=True)
os.read(reader, 1)
assert notice.requested
print("saved", flush=True)
raise SystemExit(swell.EXIT_NOTICED)
"""

_PREEMPTED_ONCE = """
import os, sys
marker = sys.argv[1]
if os.path.exists(marker):
    print("back again", flush=True)
else:
    open(marker, "w").close()
    raise SystemExit(143)
"""

# As with Job.should_stop: when one of two gets a notice, both stop, and the other one continues alone.
_PEERS = """
import os, sys, time, swell
notice = swell.Notice()
leave = sys.argv[1]
if os.environ["WORLD_SIZE"] == "2":
    print("together", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and not notice.requested and not os.path.exists(leave):
        time.sleep(0.02)
    if notice.requested:
        open(leave, "w").close()
    raise SystemExit(143)
if not os.path.exists(leave):
    print("waiting for the other", flush=True)
    while not notice.requested:
        time.sleep(0.02)
    raise SystemExit(143)
print("alone", flush=True)
"""


# As in init_process_group: it waits for ranks that may have gone, and nobody tells it.
_WAITS_FOR_PEERS = """
import os, sys, time
if os.environ["WORLD_SIZE"] == "2":
    print("waits for its peers", flush=True)
    time.sleep(600)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("alone", flush=True)
"""


class QuickFailuresTest(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.failures = QuickFailures(lambda: self.now)

    def fails(self, seconds=10, code=1, nodes=2):
        self.failures.begin(nodes)
        self.now += seconds
        return self.failures.end({code})

    def test_only_failures_in_a_row_count(self):
        self.assertEqual([self.fails() for _ in range(5)], [False] * 4 + [True])
        for other in ({"seconds": 61}, {"code": -9}):
            with self.subTest(other):
                self.setUp()
                self.assertEqual([self.fails() for _ in range(4)] + [self.fails(**other)], [False] * 5)
                self.assertEqual([self.fails() for _ in range(5)], [False] * 4 + [True])

    def test_a_change_of_nodes_begins_anew(self):
        self.assertEqual([self.fails() for _ in range(4)], [False] * 4)
        self.assertEqual([self.fails(nodes=3) for _ in range(5)], [False] * 4 + [True])


class MissingPeersTest(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.peers = MissingPeers(lambda: self.now)

    def looks(self, *present):
        """One look each 6 seconds."""
        said = []
        for number in present:
            said.append(self.peers.look(5, number))
            self.now += 6
        return said

    def test_nodes_that_stay_away_are_missed_after_a_while(self):
        self.assertEqual(self.looks(5, 1, 1, 1), [False, False, False, True])

    def test_nodes_that_are_back_or_unknown_are_not(self):
        self.assertEqual(self.looks(1, 1, 5, 1, 1, None, 1, 1), [False] * 8)

    def test_an_outage_of_the_rendezvous_tells_nothing_of_this_group(self):
        self.peers.ignore()
        self.assertEqual(self.looks(1, 1, 1), [False] * 3)
        self.peers.begin()
        self.assertEqual(self.looks(1, 1, 1), [False, False, True])


class LaunchTest(support.FolderTest):
    def launch(self, script, *arguments, options=("--standalone",), **extra):
        path = self.path("worker.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        command = ["-m", "swell.launch", *options, path, *arguments]
        return support.start(self, command, OMP_NUM_THREADS=1, PET_MONITOR_INTERVAL=0.2, **extra)

    def test_workers_get_their_ranks(self):
        options = ("--standalone", "--nproc-per-node=2")  # torch 1.13 itself knows the name with _ alone
        code, output = support.finish(self.launch(_HELLO, options=options))
        self.assertEqual(code, 0, output)
        # Whole lines: by default torch must not redirect and prefix them.
        self.assertLessEqual({"hello 0 2", "hello 1 2"}, set(output.splitlines()))

    def test_a_failing_worker_is_a_failure(self):
        code, output = support.finish(self.launch(_HELLO, CODE=3))
        self.assertEqual(code, 1, output)

    def test_a_script_that_fails_at_once_again_and_again_is_not_started_a_hundred_times(self):
        options = ("--standalone", "--max_restarts", "100")
        code, output = support.finish(self.launch(_HELLO, options=options, CODE=3))
        self.assertEqual((code, output.count("hello 0 1")), (1, 5), output)
        self.assertIn("the script failed 5 times in a row within 60 s of its start", output)

    def test_signals_reach_the_worker_and_the_launcher_waits_for_its_save(self):
        process = self.launch(_WAITING)
        self.assertTrue(_read_until(process, "ready"))
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        code, output = support.finish(process)
        self.assertEqual(code, 143, output)
        self.assertIn("saved", output)

    def test_a_preempted_peer_costs_no_retry(self):
        options = ("--standalone", "--max_restarts", "0")
        process = self.launch(_PREEMPTED_ONCE, self.path("marker"), options=options)
        code, output = support.finish(process)
        self.assertEqual(code, 0, output)
        self.assertIn("back again", output)

    def test_the_peer_that_stays_continues(self):
        port = support.free_port()
        options = ("--nnodes", "1:2", "--rdzv_backend", "c10d", "--rdzv_id", "test")
        options += ("--rdzv_endpoint", f"localhost:{port}", "--rdzv_conf", "last_call_timeout=1")
        host = self.launch(_PEERS, self.path("leave"), options=options)
        # The first launcher hosts the rendezvous, so it must be the one that stays.
        _wait_for_listener(port)
        guest = self.launch(_PEERS, self.path("leave"), options=options)
        self.assertTrue(_read_until(guest, "together"))
        self.assertTrue(_read_until(host, "together"))
        guest.send_signal(signal.SIGTERM)
        code, output = support.finish(guest)
        self.assertEqual(code, 143, output)
        # It left the rendezvous, so the host need not miss its heartbeats. (A measured time would depend on the load.)
        self.assertNotIn("could not leave the rendezvous", output)
        code, output = support.finish(host)
        self.assertEqual(code, 0, output)
        self.assertIn("alone", output)


    def test_a_worker_that_waits_for_a_node_that_left_starts_again(self):
        port = support.free_port()
        options = ("--nnodes", "1:2", "--rdzv_backend", "c10d", "--rdzv_id", "test", "--max_restarts", "0")
        options += ("--rdzv_endpoint", f"localhost:{port}", "--rdzv_conf", "last_call_timeout=1")
        host = self.launch(_WAITS_FOR_PEERS, self.path("left"), options=options)
        _wait_for_listener(port)
        guest = self.launch(_WAITS_FOR_PEERS, self.path("left"), options=options)
        self.assertTrue(_read_until(guest, "waits for its peers"))
        self.assertTrue(_read_until(host, "waits for its peers"))
        with open(self.path("left"), "w", encoding="utf-8"):
            guest.send_signal(signal.SIGTERM)
        support.finish(guest)
        code, output = support.finish(host)
        self.assertEqual(code, 0, output)
        self.assertIn("1 of 2 nodes are gone; the workers start again", output)
        self.assertIn("alone", output)


class TorchrunTest(support.FolderTest):
    def test_it_starts_in_the_environment_of_pods(self):
        catalogue = os.path.join(support.ROOT, "src", "kube", "process", "files", "image_catalogue.cc")
        with open(catalogue, encoding="utf-8") as file:
            environment = dict(re.findall(r'\{"(PET_\w+)", "([^"]+)"\}', file.read()))
        self.assertEqual(environment.keys(), {"PET_REDIRECTS", "PET_TEE"})
        with open(self.path("worker.py"), "w", encoding="utf-8") as file:
            file.write(_HELLO)
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", self.path("worker.py")]
        code, output = support.finish(support.start(self, command, OMP_NUM_THREADS=1, **environment))
        self.assertEqual(code, 0, output)
        self.assertLessEqual({"hello 0 2", "hello 1 2"}, set(output.splitlines()))


class StreamsTest(unittest.TestCase):
    def test_choices(self):
        from swell.launch import parse_streams
        from torch.distributed.elastic.multiprocessing import Std

        self.assertEqual(parse_streams("0"), Std.NONE)
        self.assertEqual(parse_streams("3"), Std.ALL)
        self.assertEqual(parse_streams("0:1,1:2"), {0: Std.OUT, 1: Std.ERR})
        self.assertRaises(SystemExit, parse_streams, "both")


def _read_until(process, wanted):
    return any(wanted in line for line in process.stdout)


def _wait_for_listener(port):
    end = time.monotonic() + support.WAIT_SECONDS
    while True:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
