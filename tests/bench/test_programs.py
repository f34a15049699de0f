"""The benchmarks' own programs run at small sizes: they measure something, and they say so as JSON."""

import http.client
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "operations"))

from support import BIN, ClusterTest, run, until  # noqa: E402

SECONDS = 1


class Load(ClusterTest):
    flags = ("--nodes", "1")

    def load(self, *words):
        return json.loads(self.done(run(BIN / "swell_load", self.cluster.kubeconfig, *words)))

    def test_every_load_is_answered(self):
        for name in ("bench", "bench-watch"):
            self.done(self.cluster.kubectl("create", "namespace", name))
        self.assertGreater(self.load("create", 50, 4)["per_second"], 0)
        self.load("fill", 50, 4)
        path = "/api/v1/namespaces/bench/configmaps/bench-7"
        self.assertGreater(self.load("get", SECONDS, 2)["per_second"], 0)
        self.assertGreater(self.load("get", SECONDS, 1, path)["per_second"], 0)
        self.assertGreater(self.load("list", SECONDS, 2)["mb_per_second"], 0)
        self.assertGreater(self.load("connect", SECONDS, 2, path)["per_second"], 0)
        self.assertGreater(self.load("watch", 5, 2)["p50_ms"], 0)

    def test_an_unknown_load_is_refused(self):
        self.refused(run(BIN / "swell_load", self.cluster.kubeconfig, "dance", 1, 1), "dance")


class Programs(unittest.TestCase):
    def test_a_job_master_hands_out_ranges(self):
        with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
            port = Path(folder) / "port"
            with subprocess.Popen([BIN / "swell", "job-master", "--listen", "127.0.0.1:0", "--port-file", port,
                                   "--journal", Path(folder) / "journal"], stdout=subprocess.DEVNULL) as master:
                try:
                    self.assertTrue(until(lambda: port.exists() and port.read_text().strip()))
                    connection = http.client.HTTPConnection("127.0.0.1", int(port.read_text()))
                    connection.request("POST", "/v1/job", json.dumps({"records": 10**9, "recordsPerTask": 100}))
                    self.assertEqual(connection.getresponse().status, 200)
                    done = run(BIN / "swell_master_load", f"http://127.0.0.1:{port.read_text().strip()}", 4, SECONDS,
                               2, 0)
                finally:
                    master.kill()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["per_second"], 0)

    def test_decisions_become_durable(self):
        with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
            done = run(BIN / "swell_decisions", folder, 200, 25)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["per_second"], 0)


if __name__ == "__main__":
    unittest.main()
