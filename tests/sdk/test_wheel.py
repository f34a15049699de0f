"""The wheel: one version, types, no dependency."""

import os
import re
import subprocess
import sys
import unittest
import zipfile

import support
import swell


class WheelTest(support.FolderTest):
    def test_pip_builds_it(self):
        # A copy, because a build writes beside its sources.
        subprocess.run(["cp", "-r", support.SDK, self.path("sdk")], check=True)
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
        command += ["-w", self.folder, self.path("sdk")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "No module named pip" in done.stderr or "setuptools" in done.stderr:
            self.skipTest("no pip or setuptools here")
        self.assertEqual(done.returncode, 0, done.stderr)
        (wheel,) = [name for name in os.listdir(self.folder) if name.endswith(".whl")]
        self.assertEqual(wheel, f"swell_sdk-{swell.__version__}-py3-none-any.whl")
        with zipfile.ZipFile(self.path(wheel)) as archive:
            names = archive.namelist()
            metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        self.assertIn("swell/py.typed", names)
        sources = {f"swell/{name}" for name in os.listdir(os.path.join(support.SDK, "swell")) if name.endswith(".py")}
        self.assertEqual(sources - set(names), set())
        self.assertNotIn("Requires-Dist", metadata)

    def test_its_import_brings_the_standard_library_only(self):
        script = "import sys; known = set(sys.modules); import swell; print(*set(sys.modules) - known)"
        code, output = support.finish(support.start(self, ["-c", script]))
        self.assertEqual(code, 0, output)
        brought = {name.split(".")[0] for name in output.split()}
        self.assertEqual(brought - sys.stdlib_module_names, {"swell"})

    def test_the_version_is_that_of_the_program(self):
        with open(os.path.join(support.ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            self.assertEqual(re.search(r"project\(swell VERSION (\S+)", file.read())[1], swell.__version__)


if __name__ == "__main__":
    unittest.main()
