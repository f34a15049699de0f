"""The Python of the user's environment in pods of the catalogue's images, with real processes.

A module of the name torch stands in for torch: what counts is that a pod imports it from where the user has it.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import SWELL, LIMIT_S, run, until

ASKS = "import sys, swell, torch; print(sys.prefix, torch.origin)"


class PythonTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="swell-python-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.data = self.scratch / "cluster"
        with_torch = self.environment("with-torch")
        (next(with_torch.glob("lib/python3*/site-packages")) / "torch.py").write_text("origin = 'environment'\n")
        self.with_torch, self.without = with_torch, self.environment("without")

    def environment(self, name):
        venv = self.scratch / name
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True, timeout=LIMIT_S)
        return venv

    def swell(self, *words, active=None):
        """With this environment activated, as a shell does it."""
        env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        env["KUBECONFIG"] = str(self.data / "kubeconfig")
        if active:
            env |= {"VIRTUAL_ENV": str(active), "PATH": f"{active}/bin:{env['PATH']}"}
        done = run(SWELL, *words, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start(self, *flags, active=None):
        """What `swell up` says of the Python; the cluster ends with the test, or before the next start."""
        self.swell("down", "--data-dir", self.data)
        told = self.swell("up", "--detach", "--data-dir", self.data, *flags, active=active)
        self.addCleanup(run, SWELL, "down", "--data-dir", self.data)
        return [line for line in told.splitlines() if line.startswith("Python: ")]

    def log_of(self, name, *command):
        self.swell("submit", name, "--image", "pytorch/pytorch", "--", *command)
        env = dict(os.environ, KUBECONFIG=str(self.data / "kubeconfig"))
        log = until(lambda: run(SWELL, "logs", name, env=env).stdout, pause=0.1)
        self.assertTrue(log, run(SWELL, "why", name, env=env).stdout)
        return log.splitlines()

    def test_pods_run_the_environment_that_has_torch(self):
        python = self.with_torch / "bin/python3"
        self.assertEqual(self.start(active=self.with_torch), [f"Python: {python} (for the catalogue's images)"])
        self.assertIn(f"\nPython      {python} (for the catalogue's images)\n",
                      self.swell("status", "--data-dir", self.data))
        self.assertIn(f"Their Python is {python}.\n",
                      self.swell("images", "explain", "pytorch/pytorch", "--data-dir", self.data))
        self.assertNotIn("Python", self.swell("images", "explain", "busybox", "--data-dir", self.data))
        self.assertEqual(self.log_of("imports", "python3", "-c", ASKS), [f"{self.with_torch} environment"])
        self.assertEqual(self.log_of("which", "which", "python3"), [str(python)])

    def test_one_without_torch_is_taken_only_by_name_and_then_remembered(self):
        self.assertEqual(self.start(active=self.without), [])
        named = [f"Python: {self.without}/bin/python3 (for the catalogue's images)"]
        self.assertEqual(self.start("--python", self.without / "bin/python3"), named)
        self.assertEqual(self.start(active=self.with_torch), named)
        self.assertEqual(self.log_of("prefix", "python", "-c", "import sys; print(sys.prefix)"), [str(self.without)])


if __name__ == "__main__":
    unittest.main()
