"""Walkthrough 1 trains in a real image: Debian with torch, made by debootstrap.

The image takes some ten minutes to make: the test is skipped where it was not made before, unless SWELL_TORCH_IMAGE is
set. `tests/images/debian.py torch DIR` makes it by hand.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import debian

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get("SWELL_BIN", str(ROOT / "build" / "dev" / "bin"))


class TorchImage(unittest.TestCase):
    def test_a_job_is_preempted_and_resumes_in_an_image_with_torch(self):
        if not (debian.cached("torch") / "oci-layout").exists() and not os.environ.get("SWELL_TORCH_IMAGE"):
            self.skipTest("the image was not made on this machine; SWELL_TORCH_IMAGE=1 makes it")
        with tempfile.TemporaryDirectory(prefix="swell-torch-") as folder:
            try:
                layout = debian.walkthrough_image(Path(folder) / "layout")
            except debian.CannotBeHad as why:
                self.skipTest(str(why))
            demo = ROOT / "tests" / "walkthroughs" / "1-arena" / "demo"
            played = subprocess.run([sys.executable, str(demo), "--part", "2", "--bin", BIN, "--image", str(layout)],
                                    capture_output=True, text=True, timeout=debian.LIMIT_S, check=False)
        self.assertEqual(played.returncode, 0, played.stdout[-4000:] + played.stderr[-2000:])
        self.assertIn("the job resumed from its checkpoint", played.stdout)


if __name__ == "__main__":
    unittest.main()
