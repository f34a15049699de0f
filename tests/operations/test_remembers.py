"""A cluster remembers itself: its shape, its keys, and what people put into its kubeconfig."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from support import SWELL, ClusterTest, run


class Remembers(ClusterTest):
    flags = ("--nodes", "2", "--gpus-per-node", "4")

    def up(self, *flags):
        return run(SWELL, "up", "--detach", "--data-dir", self.cluster.directory, *flags)

    def nodes(self):
        return len(self.cluster.get("nodes")["items"])

    def restarted(self, *flags):
        self.cluster.down()
        self.done(self.up(*flags))

    def test_a_start_without_flags_has_the_shape_of_the_last(self):
        self.restarted()
        self.assertEqual(self.nodes(), 2)
        self.cluster.down()
        self.refused(self.up("--nodes", "3"), "--nodes 3 (it was started with 2)", "--reshape")
        self.refused(self.up("--runtime", "process"), "--runtime process")
        self.done(self.up("--nodes", "3", "--runtime", "simulated", "--reshape"))
        self.assertEqual(self.nodes(), 3)
        self.restarted("--nodes", "2", "--gpus-per-node", "4", "--runtime", "simulated", "--reshape")
        self.until(lambda: self.nodes() == 2, lambda: f"expected 2 nodes, found {self.nodes()}")

    def test_the_kubeconfig_keeps_what_people_put_into_it(self):
        self.done(self.cluster.kubectl("config", "set-context", "swell", "--namespace", "mine"))
        self.done(self.cluster.kubectl("config", "set-context", "other", "--cluster", "swell", "--user", "swell-admin"))
        self.restarted()
        config = json.loads(self.done(self.cluster.kubectl("config", "view", "-o", "json")))
        contexts = {one["name"]: one["context"] for one in config["contexts"]}
        self.assertEqual(contexts["swell"]["namespace"], "mine")
        self.assertIn("other", contexts)
        self.assertEqual(self.nodes(), 2)

    def test_what_is_gone_is_not_made_anew(self):
        self.done(self.cluster.kubectl("create", "secret", "generic", "one", "-n", "default", "--from-literal", "a=b"))
        self.cluster.down()
        directory = self.cluster.directory
        for name, words in (("swell.db", "swell.db is missing"), ("pki/ca.key", "ca.key is missing"),
                            ("pki/sa.key", "sa.key is missing"), ("pki/secrets.key", "secrets.key is missing")):
            with self.subTest(name):
                aside = directory / "aside"
                (directory / name).rename(aside)
                self.refused(self.up(), words)
                self.assertFalse((directory / name).exists())
                if name == "swell.db":
                    (directory / name).touch()
                    self.refused(self.up(), "swell.db is empty")
                aside.rename(directory / name)
        key = directory / "pki" / "sa.key"
        key.chmod(0o644)
        self.refused(self.up(), "chmod 600")
        key.chmod(0o600)
        self.done(self.up())

    def test_files_that_are_no_clusters_are_refused(self):
        self.cluster.down()
        directory = self.cluster.directory
        for name, content, words in (
                ("swell.db", b"notes", "no SQLite header"),
                ("swell.db", (directory / "swell.db").read_bytes()[:8192], "the database is damaged"),
                ("pki/ca.key", b"no key", "ca.key and ca.crt cannot be used")):
            with self.subTest(words):
                before = (directory / name).read_bytes()
                (directory / name).write_bytes(content)
                self.refused(self.up(), words, f"swell restore --force --data-dir {directory} FILE")
                self.assertEqual((directory / name).read_bytes(), content)
                (directory / name).write_bytes(before)
        with tempfile.TemporaryDirectory() as other:
            (Path(other) / "thesis.tex").touch()
            self.refused(run(SWELL, "up", "--detach", "--data-dir", other), "thesis.tex", "a directory that is empty")
            self.assertEqual(os.listdir(other), ["thesis.tex"])
        self.done(self.up())

    def test_status_follows_the_kubeconfig(self):
        env = dict(os.environ, KUBECONFIG=self.cluster.kubeconfig, SWELL_DATA_DIR="")
        status = json.loads(run(SWELL, "status", "-o", "json", env=env).stdout)
        self.assertEqual(status["dataDir"], str(self.cluster.directory))
        self.assertTrue(status["running"])


if __name__ == "__main__":
    unittest.main()
