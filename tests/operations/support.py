"""A cluster of simulated pods in a directory of its own, and commands against it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
SWELL = str(BIN / "swell")
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402


def run(*command, env=None, input=None):
    """The finished process; output as text."""
    return subprocess.run([str(word) for word in command], env=env, input=input, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)


class Cluster:
    def __init__(self, directory, *flags):
        self.directory = Path(directory)
        self.flags = flags

    def up(self):
        done = run(SWELL, "up", "--detach", "--data-dir", self.directory, "--runtime", "simulated", *self.flags)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def down(self):
        done = run(SWELL, "down", "--data-dir", self.directory)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def kill(self):
        """As a power cut would."""
        os.kill(int((self.directory / "swell.pid").read_text()), signal.SIGKILL)
        until(lambda: self.swell("status").returncode != 0)

    @property
    def kubeconfig(self):
        return str(self.directory / "kubeconfig")

    def swell(self, *words, kubeconfig=None, **more):
        """The machine's own commands get --data-dir, the others the kubeconfig."""
        own = words[0] in ("backup", "restore", "status", "encryption")
        env = dict(os.environ, KUBECONFIG=kubeconfig or self.kubeconfig)
        return run(SWELL, *words, *(["--data-dir", self.directory] if own else []), env=env, **more)

    def kubectl(self, *words, kubeconfig=None, **more):
        return run("kubectl", "--kubeconfig", kubeconfig or self.kubeconfig, *words, **more)

    def get(self, *words, kubeconfig=None):
        done = self.kubectl("get", *words, "-o", "json", kubeconfig=kubeconfig)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)


class ClusterTest(unittest.TestCase):
    """Tests that share a cluster."""

    flags = ("--nodes", "1", "--gpus-per-node", "8")

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-operations-"))
        cls.cluster = Cluster(cls.scratch / "cluster", *cls.flags)
        cls.cluster.up()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def done(self, process):
        """Its output; the test fails when it did."""
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout

    def refused(self, process, *words):
        self.assertNotEqual(process.returncode, 0, process.stdout)
        for word in words:
            self.assertIn(word, process.stderr)

    def until(self, holds, what=lambda: "it has not come true"):
        self.assertTrue(until(holds, pause=0.1), what())
