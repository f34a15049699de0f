"""A cluster with images of the tests: what the tests here share."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SWELL = str(Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin")) / "swell")
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402, F401


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **more)


def must(done):
    """What it printed. Raises RuntimeError if it failed."""
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(done.args)}: {done.stderr}")
    return done.stdout


class ClusterTest(unittest.TestCase):
    """One cluster for all tests of a class."""

    up_flags = ()

    @classmethod
    def layouts(cls):
        """{name: layout} of the images to import. Raises SkipTest if one cannot be had."""
        return {}

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-images-"))
        cls.data = cls.scratch / "cluster"
        try:
            layouts = cls.layouts()
            must(run(SWELL, "up", "--detach", "--data-dir", cls.data, *cls.up_flags))
            for name, layout in layouts.items():
                must(run(SWELL, "images", "import", f"oci:{layout}", "--name", name, "--data-dir", cls.data))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        run(SWELL, "down", "--data-dir", cls.data)
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def kubectl(self, *words, **more):
        return run("kubectl", "--kubeconfig", self.data / "kubeconfig", *words, **more)

    def apply(self, *objects):
        must(self.kubectl("apply", "-f", "-",
                          input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})))
