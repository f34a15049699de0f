"""The preemption notice: real signals to real processes, and the notice file."""

import json
import os
import signal
import threading
import time
import unittest

import support
from swell.notice import Notice

_SAVING = """
import os, signal, swell
notice = swell.Notice()
assert not notice.requested and notice.info == {}
for _ in range(3):
    os.kill(os.getpid(), signal.SIGTERM)
assert notice.requested
print("saved", notice.info.get("by"), flush=True)
raise SystemExit(swell.EXIT_NOTICED)
"""

# Locking a mutex twice stands for native code that never returns: no signal ends the wait. PyDLL keeps the GIL
# meanwhile, as torch does while it waits for peers.
_BLOCKED = """
import ctypes, swell
notice = swell.Notice(hold=False)
print("ready", flush=True)
mutex = ctypes.create_string_buffer(64)
libc = ctypes.PyDLL(None)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(mutex)
"""

_HELD = """
import os, signal, swell
notice = swell.Notice(hold=False)
notice.hold()
os.kill(os.getpid(), signal.SIGTERM)
print("still here", notice.requested, flush=True)
"""


_REPLACED = """
import os, signal, swell
def leave(*_):
    raise SystemExit(0)
{before}
notice = swell.Notice(hold=False)
{between}
notice.hold()
notice.hold()
os.kill(os.getpid(), signal.SIGTERM)
print("still here", notice.requested, flush=True)
"""

_FORKS = """
import multiprocessing, os, signal, swell
swell.Notice(hold=False).hold()
for _ in range(5):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, signal.SIGTERM)
print("ended by", os.waitpid(child, 0)[1], flush=True)
"""

_SPAWNS = """
import multiprocessing, signal, swell

def train():
    swell.Notice(hold=False).hold()

if __name__ == "__main__":
    if {handled}:
        signal.signal(signal.SIGTERM, lambda *_: None)
    child = multiprocessing.get_context("spawn").Process(target=train)
    child.start()
    child.join()
"""


class NoticeProcessTest(support.FolderTest):
    def test_repeated_signals_do_not_end_the_save(self):
        code, output = support.finish(support.start(self, ["-c", _SAVING]))
        self.assertEqual((code, output), (143, "saved None\n"))

    def test_before_hold_a_signal_ends_a_process_blocked_in_native_code(self):
        process = support.start(self, ["-c", _BLOCKED])
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        code, output = support.finish(process)
        self.assertEqual(code, -signal.SIGTERM, output)

    def test_after_hold_a_signal_is_remembered(self):
        code, output = support.finish(support.start(self, ["-c", _HELD]))
        self.assertEqual((code, output), (0, "still here True\n"))

    def test_a_handler_of_the_scripts_own_is_replaced_and_told_once(self):
        own = "signal.signal(signal.SIGTERM, leave)"
        for before, between, rank, told in (
            (own, "", 0, 1), ("", own, 0, 1), ("", "", 0, 0), (own, "", 1, 0),
            ("leave.__module__ = 'lightning.pytorch.trainer'", own, 0, 0),
            ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "", 0, 0),
        ):
            with self.subTest(before=before, between=between, rank=rank):
                script = _REPLACED.format(before=before, between=between)
                code, output = support.finish(support.start(self, ["-c", script], RANK=rank, WORLD_SIZE=2))
                self.assertEqual((code, output.splitlines()[-1]), (0, "still here True"))
                said = "swell: the script's own handler of SIGTERM, leave, is not called any more"
                self.assertEqual(output.count(said), told, output)

    def test_processes_that_it_forks_end_on_the_signal(self):
        code, output = support.finish(support.start(self, ["-c", _FORKS]))
        self.assertEqual((code, output), (0, "ended by 15\n"))

    def test_a_process_whose_parent_would_not_wait_for_its_save_says_so(self):
        for handled, told in ((False, 1), (True, 0)):
            script = os.path.join(self.folder, "spawns.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(_SPAWNS.format(handled=handled))
            code, output = support.finish(support.start(self, [script]))
            self.assertEqual(code, 0, output)
            self.assertEqual(output.count("python -m swell.launch --nproc-per-node=N"), told, output)


class LoaderTest(unittest.TestCase):
    def setUp(self):
        for number in (signal.SIGCHLD, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.notice = Notice(environ={})

    def end_of_worker(self, how):
        def handler(signum, frame):
            raise RuntimeError(f"DataLoader worker (pid 5) is killed by signal: {how}. ")

        class Loader:
            def __iter__(self):
                signal.signal(signal.SIGCHLD, handler)  # as torch does when it starts its processes
                yield from (1, 2)

        handler.__module__ = "torch.utils.data._utils.signal_handling"
        batches = self.notice.batches_of(Loader())
        next(batches)
        os.kill(os.getpid(), signal.SIGCHLD)
        return list(batches)

    def test_a_worker_that_hears_of_the_notice_first_ends_no_step(self):
        self.assertEqual(self.end_of_worker("Terminated"), [2])

    def test_a_worker_that_was_killed_is_an_error_unless_the_process_must_end(self):
        with self.assertRaisesRegex(RuntimeError, "Killed"):
            self.end_of_worker("Killed")
        self.notice.note()
        self.assertEqual(self.end_of_worker("Killed"), [2])


class NoticeFileTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        previous = signal.getsignal(signal.SIGTERM)
        self.addCleanup(signal.signal, signal.SIGTERM, previous)

    def write(self, deadline):
        content = {"reason": "Preempted", "by": "default/critical", "rule": "preempt", "deadline": deadline}
        with open(self.path("notice"), "w", encoding="utf-8") as file:
            json.dump(content, file)

    def make(self):
        return Notice(environ={"SWELL_NOTICE_FILE": self.path("notice"), "SWELL_GRACE_SECONDS": "20"})

    def test_the_file_alone_is_a_notice(self):
        notice = self.make()
        self.assertFalse(notice.requested)
        self.write(_rfc3339(time.time() + 30))
        self.assertTrue(notice.requested)
        self.assertEqual(notice.info["by"], "default/critical")
        self.assertTrue(20 < notice.seconds_left <= 30)
        os.remove(self.path("notice"))
        self.assertTrue(notice.requested, "a notice is never taken back")

    def test_a_file_that_is_older_than_the_process_counts_before_its_deadline(self):
        self.write(_rfc3339(time.time() + 30))
        self.assertTrue(self.make().requested)

    def test_a_file_whose_deadline_passed_before_the_process_started_does_not_count(self):
        self.write(_rfc3339(time.time() - 30))
        self.assertFalse(self.make().requested)

    def test_unreadable_content_is_still_a_notice(self):
        notice = self.make()
        with open(self.path("notice"), "w", encoding="utf-8") as file:
            file.write("[1, 2")
        self.assertTrue(notice.requested)
        self.assertEqual(notice.info, {})
        self.assertEqual(notice.seconds_left, 20)

    def test_another_thread_cannot_make_one(self):
        made = []

        def make():
            with self.assertRaisesRegex(RuntimeError, "create them in the main thread"):
                self.make()
            made.append(True)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join(support.WAIT_SECONDS)
        self.assertEqual(made, [True])

    def test_without_swell_there_is_no_notice(self):
        notice = Notice(environ={})
        self.assertFalse(notice.requested)
        self.assertEqual(notice.info, {})


def _rfc3339(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


if __name__ == "__main__":
    unittest.main()
