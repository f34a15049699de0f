"""Paths and processes, for all tests of the SDK. What always holds: no process outlives its test, no wait is unbounded.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SDK = os.path.join(ROOT, "sdk", "python")
MNIST = os.path.join(ROOT, "examples", "mnist-pytorch", "mnist.py")
HERE = os.path.dirname(os.path.abspath(__file__))

sys.path[:0] = [SDK, os.path.dirname(HERE)]

from ports import free_port  # noqa: E402,F401
from waiting import LIMIT_S as WAIT_SECONDS, until  # noqa: E402,F401


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        os.environ["SWELL_MEMORY_DIR"] = self.folder  # tests leave nothing in /dev/shm
        # A test that catches SystemExit does not end this process with that code.
        patch = mock.patch("swell.exits._code", None)
        patch.start()
        self.addCleanup(patch.stop)

    def path(self, *names):
        return os.path.join(self.folder, *names)


def torch_since(*version):
    """A mark for tests that need this torch, or a newer one: torch_since(2, 6)."""
    import torch  # other tests do without

    return unittest.skipUnless(
        tuple(map(int, torch.__version__.split(".")[:2])) >= version, f"needs torch {'.'.join(map(str, version))}")


def clean_environment(**extra):
    """The caller's environment without the variables of a job."""
    dropped = ("SWELL_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "PET_", "PYTHONPATH")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    if "SWELL_MEMORY_DIR" in os.environ:
        environ["SWELL_MEMORY_DIR"] = os.environ["SWELL_MEMORY_DIR"]
    environ["PYTHONPATH"] = SDK
    environ["PYTHONUNBUFFERED"] = "1"
    environ.update({k: str(v) for k, v in extra.items()})
    return environ


def start(test, arguments, **extra):
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=clean_environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def end():
        process.kill()
        process.wait(WAIT_SECONDS)
        process.stdout.close()

    test.addCleanup(end)
    return process


def finish(process):
    """(exit code, output). Waits until the process has ended by itself."""
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, output
