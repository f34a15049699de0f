"""What ./dev package makes is installed as a user would, in an environment of its own, and used there."""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402


def run(*command, env=None):
    return subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)


def make(out):
    done = run(sys.executable, ROOT / "tools/package.py", BIN / "swell", out)
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


def files_below(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*")
            if file.is_file() and "__pycache__" not in file.parts}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="swell-packages-")
        cls.work = Path(cls.folder.name)
        cls.wheel, cls.tarball, cls.sums = make(cls.work / "out")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    # No variable of this machine tells the program where its libraries or the SDK are.
    ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent"}

    def environment(self, name):
        """A virtual environment with the wheel in it, installed without any index."""
        venv = self.work / name
        done = run("/usr/bin/python3", "-m", "venv", venv)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        before = files_below(venv)
        done = run(venv / "bin/pip", "install", "--no-index", "--disable-pip-version-check", self.wheel)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return venv, before

    def test_the_same_program_makes_the_same_bytes(self):
        again = make(self.work / "again")
        for one, other in zip((self.wheel, self.tarball, self.sums), again):
            self.assertEqual(one.name, other.name)
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def test_the_sums_are_those_of_the_files(self):
        for line in self.sums.read_text().splitlines():
            digest, name = line.split("  ")
            self.assertEqual(digest, hashlib.sha256((self.wheel.parent / name).read_bytes()).hexdigest())

    def test_every_library_has_its_licence(self):
        with tarfile.open(self.tarball) as tar:
            names = tar.getnames()
        licences = [name for name in names if "/licences/" in name]
        self.assertTrue(any("sqlite" in name for name in licences), licences)
        self.assertTrue(any("libcurl" in name for name in licences), licences)
        self.assertFalse(any("/libc.so" in name for name in names))

    def test_a_wheel_brings_the_program_the_front_ends_and_the_sdk(self):
        venv, before = self.environment("venv")
        for program in ("swell", "arena", "runai", "elasticdl"):
            done = run(venv / "bin" / program, "version", env=self.ENV)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("0.1.0", done.stdout, program)
        done = run(venv / "bin/python", "-c", "import swell; print(swell.__file__)", env=self.ENV)
        self.assertIn(str(venv), done.stdout, done.stderr)
        done = run(venv / "bin/pip", "uninstall", "--yes", "swell")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(files_below(venv) - before, set())

    def test_a_cluster_of_the_wheel_runs_a_pod_that_imports_the_sdk_and_the_environments_torch(self):
        venv, _ = self.environment("cluster")
        (next(venv.glob("lib/python3*/site-packages")) / "torch.py").write_text("")
        swell, data = venv / "bin/swell", self.work / "data"
        env = self.ENV | {"KUBECONFIG": str(data / "kubeconfig"), "HOME": str(self.work)}
        done = run(swell, "up", "--detach", "--data-dir", data, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("no Python SDK", done.stderr + (data / "swell.log").read_text())
        try:
            done = run(swell, "submit", "sees-sdk", "--image", "python", "--", "python3", "-c",
                       "import swell, torch; print('SDK at', swell.__file__, 'torch at', torch.__file__)", env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            log = until(lambda: (out := run(swell, "logs", "sees-sdk", env=env).stdout) and "SDK at" in out and out)
            self.assertIn("SDK at", str(log), run(swell, "why", "sees-sdk", env=env).stdout)
            self.assertIn(f"torch at {venv}/lib/", str(log))
        finally:
            run(swell, "down", "--data-dir", data, env=env)

    def test_a_tarball_runs_from_where_it_is_unpacked(self):
        with tarfile.open(self.tarball) as tar:
            tar.extractall(self.work / "unpacked")
        program = next((self.work / "unpacked").glob("swell-*/bin/swell"))
        done = run(program, "version", env=self.ENV)
        self.assertEqual(done.returncode, 0, done.stderr)
        maps = run("/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1", program, env=self.ENV).stdout
        self.assertIn(str(program.parents[1] / "lib/swell") + "/libsqlite3", maps.replace("bin/../", ""))


if __name__ == "__main__":
    unittest.main()
