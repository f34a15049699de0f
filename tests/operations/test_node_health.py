"""A node's health, by scripts, and what follows for real pods."""

import json
import shutil
import tempfile
from pathlib import Path

from support import Cluster, ClusterTest

# Bad where a file of the node's name says why.
SCRIPT = """#!/bin/sh
if [ -f "{folder}/$NODE_NAME.bad" ]; then cat "{folder}/$NODE_NAME.bad"; exit 1; fi
echo "$NODE_NAME is fine"
"""


class NodeHealth(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-node-health-"))
        checks = cls.scratch / "checks"
        checks.mkdir()
        script = checks / "cable.sh"
        script.write_text(SCRIPT.format(folder=checks))
        script.chmod(0o755)
        # It cannot run, and is always Unknown.
        odd = checks / "odd.sh"
        odd.write_text("exit 0\n")
        odd.chmod(0o755)
        (checks / "node-1.bad").write_text("the cable is out\n")
        (checks / "node-2.bad").write_text("gpu 0: too hot\n")
        cls.cluster = Cluster(cls.scratch / "cluster", "--nodes", "3", "--gpus-per-node", "2", "--runtime", "process",
                              "--health-checks", checks)
        cls.cluster.up()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def conditions(self, node):
        return {one["type"]: one for one in self.cluster.get("node", node)["status"]["conditions"]}

    def test_bad_nodes_and_gpus_get_no_new_work_and_say_why(self):
        def taints(node):
            return [one["key"] for one in self.cluster.get("node", node)["spec"].get("taints", [])]

        self.until(lambda: "swell.dev/unhealthy" in taints("node-1"))
        self.until(lambda: self.cluster.get("node", "node-2")["status"]["allocatable"]["nvidia.com/gpu"] == "1")
        self.assertEqual(taints("node-2"), [])
        self.assertEqual(self.conditions("node-1")["CableHealthy"]["message"], "the cable is out")
        self.until(lambda: "DiskHealthy" in self.conditions("node-3"))
        self.assertEqual(self.conditions("node-3")["DiskHealthy"]["status"], "True")

        # Three GPUs are left: one of node-2, the second, and both of node-3.
        for number in range(4):
            self.done(self.cluster.swell("submit", f"one-{number}", "--image", "python", "--gpus", "1", "--",
                                         "sleep", "1000"))

        def places():
            found = []
            for pod in self.cluster.get("pods")["items"]:
                if "nodeName" in pod["spec"]:
                    found.append((pod["spec"]["nodeName"], pod["metadata"]["annotations"]["swell.dev/gpu-devices"]))
            return sorted(found)

        want = [("node-2", "1"), ("node-3", "0"), ("node-3", "1")]
        self.until(lambda: places() == want, lambda: str(places()))
        said = self.done(self.cluster.swell("health", "node-2"))
        self.assertIn("GPU 0: too hot", said)
        self.assertIn("unhealthy: no new pods", said)
        self.assertIn("1 check does not work: OddHealthy", said)
        self.assertIn("gets no new pods", self.done(self.cluster.swell("health", "node/node-1")))
        overview = self.done(self.cluster.swell("health"))
        self.assertIn("the cable is out", overview)
        self.assertIn("1/2 healthy", overview)
        self.assertEqual([(one["name"], one["healthyGpus"])
                          for one in json.loads(self.done(self.cluster.swell("health", "-o", "json")))["nodes"]],
                         [("node-1", 2), ("node-2", 1)])
        self.assertIn("2 of 3 have faults", self.done(self.cluster.swell("status")))
        self.assertIn("Ready,Unhealthy", self.done(self.cluster.swell("get", "nodes")))
        why = self.done(self.cluster.swell("why", "one-3"))
        self.assertIn("node-2 is unhealthy: GPU 0: too hot; more: swell health node-2", why)
        for number in range(4):
            self.done(self.cluster.swell("delete", f"one-{number}"))
        self.until(lambda: self.cluster.get("pods")["items"] == [])

        # The test of a node runs on its good GPU, tainted or not.
        done = self.cluster.swell("node", "check", "node-2", "-o", "json")
        nodes = {one["node"]: one for one in json.loads(self.done(done))["nodes"]}
        self.assertEqual(nodes["node-2"]["verdict"], "Good", done.stdout)
        self.assertEqual(nodes["node-2"]["gpu"], "1")
        self.assertEqual(self.cluster.get("pods")["items"], [])

        # The GPU is back when the check that blamed it finds no fault, whatever others do not know.
        (self.scratch / "checks" / "node-2.bad").unlink()
        self.until(lambda: self.cluster.get("node", "node-2")["status"]["allocatable"]["nvidia.com/gpu"] == "2")
        self.assertEqual(self.conditions("node-2")["OddHealthy"]["status"], "Unknown")

        # An image that cannot be pulled is not a verdict on the node.
        done = self.cluster.swell("node", "check", "node-2", "--image", "pythn:3", "--no-gpu", "--timeout", "15s")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("Unknown", done.stdout)
        self.assertIn("Image", done.stdout)
