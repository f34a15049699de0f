"""swell top on a real terminal: it draws, follows keys and sizes, and leaves the terminal as it was."""

import fcntl
import os
import pty
import select
import signal
import struct
import tempfile
import termios
import time
import unittest

from support import LIMIT_S, SWELL, Cluster

KEYS = {"down": "\x1b[B", "escape": "\x1b", "enter": "\r"}


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *command, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], list(command), env)
        self.seen = ""
        self.size(80, 24)

    def size(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text):
        """Reads until the text has come since the last wait; what has come."""
        end = time.monotonic() + LIMIT_S
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            data = os.read(self.fd, 65536) if ready else b""
            if not data:
                raise AssertionError(f"{text!r} did not come; the terminal has: {self.seen[-2000:]!r}")
            self.seen += data.decode(errors="replace")
        before, self.seen = self.seen.split(text, 1)
        return before + text

    def end(self):
        """The exit status, after reading what is left."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="swell-top-")
        cls.cluster = Cluster(cls.folder.name, "--nodes", "2", "--gpus-per-node", "4")
        cls.cluster.up()
        done = cls.cluster.swell("submit", "large", "--image", "python", "--gpus", "4", "--", "sleep", "1000")
        assert done.returncode == 0, done.stderr
        done = cls.cluster.swell("submit", "huge", "--image", "python", "--gpus", "64", "--", "sleep", "1000")
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()
        cls.folder.cleanup()

    def terminal(self, *words):
        env = dict(os.environ, KUBECONFIG=self.cluster.kubeconfig, TERM="xterm-256color")
        return Terminal(SWELL, "top", "--interval", "200ms", *words, env=env)

    def test_keys_lead_to_reasons_and_back(self):
        terminal = self.terminal()
        terminal.wait("\x1b[?1049h")
        terminal.wait("4/8 held")
        terminal.type("/huge" + KEYS["enter"])
        terminal.wait("/huge")
        terminal.type("w")
        terminal.wait("huge waits for 64 GPUs")
        terminal.type(KEYS["escape"])
        terminal.wait("priority".upper())
        terminal.type("2")
        terminal.wait("■■■■")
        terminal.type("q")
        terminal.wait("\x1b[?1049l")
        self.assertEqual(terminal.end(), 0)

    def test_what_happens_in_the_cluster_is_seen_without_a_key(self):
        terminal = self.terminal()
        terminal.wait("large")
        done = self.cluster.swell("submit", "newcomer", "--image", "python", "--", "sleep", "1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        terminal.wait("newcomer")
        terminal.type("\x03")
        self.assertEqual(terminal.end(), 0)
        self.cluster.swell("delete", "newcomer")

    def test_it_follows_the_size_of_the_terminal(self):
        terminal = self.terminal()
        terminal.wait("? help")
        terminal.size(132, 10)
        terminal.wait("\x1b[2J")
        terminal.wait("\x1b[10;1H")
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)

    def test_a_job_is_suspended_after_a_yes(self):
        done = self.cluster.swell("submit", "victim", "--image", "python", "--gpus", "1", "--", "sleep", "1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        terminal = self.terminal()
        terminal.wait("victim")
        terminal.type("/victim" + KEYS["enter"] + "p")
        terminal.wait("victim? y/n")
        terminal.type("y")
        terminal.wait("Suspended")
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)
        self.cluster.swell("delete", "victim")


if __name__ == "__main__":
    unittest.main()
