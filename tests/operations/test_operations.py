"""Users, roles, the audit log, backups, export: the embedded cluster as a platform team runs it."""

import io
import json
import stat
import tarfile
import unittest
from pathlib import Path

from support import SWELL, Cluster, ClusterTest, run


class Access(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for project in ("vision", "nlp"):
            made = cls.cluster.swell("project", "create", project, "--gpu-quota", "4")
            assert made.returncode == 0, made.stderr

    def user(self, name, role, *flags):
        """A kubeconfig of a new user."""
        path = self.scratch / f"{name}.kubeconfig"
        self.done(self.cluster.swell("user", "create", name, "--role", role, "-o", str(path), *flags))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        return str(path)

    def can(self, kubeconfig, *words):
        return self.cluster.kubectl("auth", "can-i", *words, kubeconfig=kubeconfig).stdout.strip() == "yes"

    def test_roles_end_at_their_projects(self):
        researcher = self.user("alice", "researcher", "--project", "vision")
        viewer = self.user("victor", "viewer", "--project", "vision", "--certificate")
        admin = self.user("paula", "project-admin", "--project", "vision")
        for may in (("create", "pytorchjobs.kubeflow.org"), ("create", "trainingjobs.swell.dev"), ("create", "pods"),
                    ("get", "secrets"), ("create", "pods/exec")):
            self.assertTrue(self.can(researcher, *may, "-n", "vision"), may)
            self.assertFalse(self.can(researcher, *may, "-n", "nlp"), may)
            self.assertFalse(self.can(researcher, *may, "-n", "kube-system"), may)
        self.assertFalse(self.can(researcher, "create", "rolebindings", "-n", "vision"))
        self.assertFalse(self.can(researcher, "patch", "projects"))
        self.assertTrue(self.can(researcher, "list", "projects"))
        self.assertTrue(self.can(viewer, "get", "pods", "-n", "vision"))
        self.assertTrue(self.can(viewer, "get", "pods/log", "-n", "vision"))
        for not_may in (("get", "secrets"), ("create", "pods"), ("create", "pods/exec")):
            self.assertFalse(self.can(viewer, *not_may, "-n", "vision"), not_may)
        self.assertTrue(self.can(admin, "create", "rolebindings", "-n", "vision"))
        # Within the project an admin gives what they hold, and nothing else.
        self.done(self.cluster.kubectl("create", "rolebinding", "more", "--clusterrole", "researcher", "--user", "zoe",
                                       "-n", "vision", kubeconfig=admin))
        self.refused(self.cluster.kubectl("create", "rolebinding", "most", "--clusterrole", "cluster-admin", "--user",
                                          "zoe", "-n", "vision", kubeconfig=admin), "forbidden")
        self.refused(self.cluster.kubectl("create", "rolebinding", "there", "--clusterrole", "viewer", "--user", "zoe",
                                          "-n", "nlp", kubeconfig=admin), "forbidden")

    def test_who_is_deleted_is_nobody_at_once(self):
        for name, flags in (("dora", ()), ("dirk", ("--certificate",))):
            kubeconfig = self.user(name, "researcher", "--project", "nlp", *flags)
            self.done(self.cluster.kubectl("get", "pods", kubeconfig=kubeconfig))
            self.done(self.cluster.swell("user", "delete", name))
            self.refused(self.cluster.kubectl("get", "pods", kubeconfig=kubeconfig), "Unauthorized")
            # A user of the same name who comes later is somebody else.
            old = str(Path(kubeconfig).rename(self.scratch / f"old-{name}"))
            self.user(name, "viewer", "--project", "nlp")
            self.refused(self.cluster.kubectl("get", "pods", kubeconfig=old), "Unauthorized")
            self.done(self.cluster.swell("user", "delete", name))

    def test_an_admin_may_everything(self):
        admin = self.user("anna", "admin")
        self.assertTrue(self.can(admin, "*", "*", "--all-namespaces"))

    def test_any_admins_kubeconfig_will_do(self):
        admin = self.user("adam", "admin")
        theirs = str(self.scratch / "zoe.kubeconfig")
        self.done(self.cluster.swell("user", "create", "zoe", "--role", "viewer", "--project", "nlp", "--certificate",
                                     "-o", theirs, kubeconfig=admin))
        self.assertTrue(self.can(theirs, "list", "pods", "-n", "nlp"))
        self.assertFalse(self.can(theirs, "create", "pods", "-n", "nlp"))
        again = self.done(self.cluster.swell("user", "kubeconfig", "zoe", "-o", "-", kubeconfig=admin))
        self.assertIn("token:", again)
        self.refused(self.cluster.swell("user", "list", kubeconfig=theirs), "forbidden")
        self.refused(self.cluster.swell("user", "kubeconfig", "adam", kubeconfig=theirs), "forbidden")
        self.done(self.cluster.swell("user", "delete", "zoe", kubeconfig=admin))
        self.assertFalse(self.can(theirs, "list", "pods", "-n", "nlp"))
        # As before: by the machine's own directory.
        self.assertIn("adam", self.done(self.cluster.swell("user", "list", "--data-dir", self.cluster.directory)))

    def test_pods_run_as_their_users_numbers(self):
        mine = self.user("rita", "researcher", "--project", "vision", "--run-as", "1500:100,44")

        def pod(name, **context):
            return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                               "spec": {"securityContext": context, "containers": [{"name": "c", "image": "x"}]}})
        self.done(self.cluster.kubectl("create", "-f", "-", kubeconfig=mine, input=pod("mine")))
        self.assertEqual(self.cluster.get("pod", "mine", "-n", "vision")["spec"]["securityContext"],
                         {"runAsUser": 1500, "runAsGroup": 100, "supplementalGroups": [44]})
        self.refused(self.cluster.kubectl("create", "-f", "-", kubeconfig=mine, input=pod("root", runAsUser=0)),
                     'spec.securityContext.runAsUser: 0: pods of user "rita" run as user 1500, group 100')
        # The same for jobs, whose pods a controller makes.
        self.done(self.cluster.swell("submit", "train", "--gpus", "1", "--image", "x", "--", "true", kubeconfig=mine))

        def contexts():
            pods = self.cluster.get("pods", "-n", "vision", "-l", "training.kubeflow.org/job-name=train")["items"]
            return [one["spec"].get("securityContext", {}).get("runAsUser") for one in pods]
        self.until(lambda: contexts() == [1500])

    def test_list_says_who_there_is(self):
        self.user("lisa@example.com", "viewer", "--project", "vision", "--project", "nlp", "--group", "staff")
        lines = self.done(self.cluster.swell("user", "list")).splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "ROLE", "PROJECTS", "GROUPS", "RUN-AS", "AGE"])
        row = next(line for line in lines if line.startswith("lisa@example.com"))
        self.assertEqual(row.split()[1:4], ["viewer", "vision,nlp", "staff"])

    def test_mistakes_are_told(self):
        for words, said in ((("create", "system:x", "--role", "admin"), "system:"),
                            (("create", "x", "--role", "king"), "--role \"king\""),
                            (("create", "x", "--role", "viewer"), "--project"),
                            (("create", "x", "--role", "viewer", "--project", "nope"), "--project \"nope\""),
                            (("create", "x", "--role", "admin", "--group", "system:masters"), "--group"),
                            (("delete", "nobody"), "user \"nobody\" not found"),
                            (("create", "x", "--role", "viewer", "--project", "nlp", "--duration", "5y"), '"5y"'),
                            (("create", "x", "--role", "viewer", "--project", "nlp", "-o", "/no/x"), "/no/x"),
                            (("list", "-o", "yaml"), '--output "yaml": expected json'),
                            (("creat",), 'unknown command "creat"')):
            self.refused(self.cluster.swell("user", *words), said)
        self.assertNotIn("\nx ", self.done(self.cluster.swell("user", "list")))

    def test_a_researcher_is_told_why_a_job_waits(self):
        mine = self.user("wanda", "researcher", "--project", "nlp")
        self.done(self.cluster.swell("submit", "wide", "--gpus", "64", "--image", "x", "--", "true", kubeconfig=mine))
        self.until(lambda: "Insufficient nvidia.com/gpu" in
                   self.done(self.cluster.swell("why", "wide", kubeconfig=mine)))
        why = self.done(self.cluster.swell("why", "wide", kubeconfig=mine))
        self.assertIn("Only users who can read the whole cluster", why)
        top = self.cluster.swell("top", "node", kubeconfig=mine)
        self.assertIn("node-1", self.done(top))
        self.assertIn("Only pods in namespaces that you can read are counted", top.stderr)

    def test_work_is_accounted_to_who_brought_it(self):
        mine = self.user("mia", "researcher", "--project", "vision")
        manifest = {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": "claims", "annotations": {"swell.dev/user": "somebody-else"}},
                    "spec": {"containers": [{"name": "c", "image": "x"}]}}
        self.done(self.cluster.kubectl("create", "-f", "-", kubeconfig=mine, input=json.dumps(manifest)))
        self.cluster.kubectl("annotate", "--overwrite", "pod", "claims", "swell.dev/user=nobody", kubeconfig=mine)
        pod = self.cluster.get("pod", "claims", "-n", "vision")
        self.assertEqual(pod["metadata"]["annotations"]["swell.dev/user"], "mia")

    def test_the_audit_log_says_who_did_what(self):
        eve = self.user("eve", "researcher", "--project", "vision")
        self.done(self.cluster.kubectl("create", "secret", "generic", "s", "--from-literal=p=hunter2", kubeconfig=eve))
        self.refused(self.cluster.kubectl("delete", "node", "node-1", kubeconfig=eve), "forbidden")
        # What comes after is written after.
        self.done(self.cluster.kubectl("create", "configmap", "last", kubeconfig=eve))
        self.cluster.down()
        text = (self.cluster.directory / "audit.log").read_text()
        self.cluster.up()
        self.assertNotIn("hunter2", text)
        token = json.loads(self.done(self.cluster.kubectl("config", "view", "--raw", "-o", "json",
                                                          kubeconfig=eve)))["users"][0]["user"]["token"]
        self.assertNotIn(token, text)
        events = [e for e in map(json.loads, text.splitlines()) if e["user"]["username"] == "eve"]
        what = [(e["verb"], e["objectRef"]["resource"], e["objectRef"].get("name"), e["responseStatus"]["code"])
                for e in events]
        self.assertIn(("create", "secrets", "s", 201), what)
        self.assertIn(("create", "configmaps", "last", 201), what)
        self.assertTrue(any(code == 403 and resource == "nodes" for _, resource, _, code in what), what)
        for event in events:
            self.assertEqual((event["kind"], event["apiVersion"], event["level"]),
                             ("Event", "audit.k8s.io/v1", "Metadata"))
            self.assertEqual(event["sourceIPs"], ["127.0.0.1"])
            self.assertIn("kubectl", event["userAgent"])
        self.assertEqual(stat.S_IMODE((self.cluster.directory / "audit.log").stat().st_mode), 0o600)


class Backups(ClusterTest):
    def names(self, cluster, kind):
        return sorted(item["metadata"]["name"] for item in cluster.get(kind, "-A")["items"])

    def passphrase(self):
        """The flag with which backups carry Secrets."""
        file = self.scratch / "passphrase"
        file.write_text("open sesame\n")
        return "--passphrase-file", str(file)

    def test_a_running_cluster_comes_back_whole(self):
        self.done(self.cluster.swell("project", "create", "vision", "--gpu-quota", "4"))
        alice = str(self.scratch / "alice")
        self.done(self.cluster.swell("user", "create", "alice", "--role", "researcher", "--project", "vision", "-o",
                                     alice))
        for i in range(20):
            self.done(self.cluster.kubectl("create", "configmap", f"before-{i}", "-n", "vision"))
        archive = self.scratch / "backup.tar"
        phrase = self.passphrase()
        self.refused(self.cluster.swell("backup", "--passphrase-file", "/dev/null", str(archive)), "is empty")
        said = self.done(self.cluster.swell("backup", *phrase, str(archive)))
        self.assertIn("objects of the running cluster", said)
        self.assertEqual(stat.S_IMODE(archive.stat().st_mode), 0o600)
        self.done(self.cluster.kubectl("create", "configmap", "after", "-n", "vision"))
        left = [path.name for path in self.cluster.directory.iterdir() if path.name.startswith("backup-")]
        self.assertEqual(left, [])

        self.refused(self.cluster.swell("restore", str(archive)), "a cluster runs in", "swell down")
        port = (self.cluster.directory / "port").read_text()
        self.cluster.down()
        self.refused(self.cluster.swell("restore", str(archive)), "--force")
        other = Cluster(self.scratch / "other", *self.flags)
        self.refused(other.swell("restore", str(archive)), "--passphrase-file FILE")
        self.done(other.swell("restore", *phrase, str(archive)))
        other.up()
        try:
            maps = self.names(other, "configmaps")
            self.assertTrue({f"before-{i}" for i in range(20)} <= set(maps))
            self.assertNotIn("after", maps)
            # The same place, the same keys: what people hold is good there.
            self.assertEqual((other.directory / "port").read_text(), port)
            self.done(other.kubectl("get", "pods", kubeconfig=alice))
        finally:
            other.down()
        self.done(self.cluster.swell("restore", *phrase, "--force", str(archive)))
        for part in ("swell.db", "pki", "port"):
            self.assertTrue((self.cluster.directory / f"{part}.before-restore").exists(), part)
        self.cluster.up()
        self.assertNotIn("after", self.names(self.cluster, "configmaps"))

    def test_what_a_killed_cluster_wrote_last_is_put_aside_with_it(self):
        archive = self.scratch / "early.tar"
        phrase = self.passphrase()
        self.done(self.cluster.swell("backup", *phrase, str(archive)))
        self.done(self.cluster.kubectl("create", "configmap", "last-words"))
        self.cluster.kill()
        self.done(self.cluster.swell("restore", *phrase, "--force", str(archive)))
        for suffix in ("", "-wal"):  # and back
            aside = self.cluster.directory / f"swell.db.before-restore{suffix}"
            aside.rename(self.cluster.directory / f"swell.db{suffix}")
        self.cluster.up()
        self.assertIn("last-words", self.names(self.cluster, "configmaps"))

    def test_what_is_no_backup_is_refused(self):
        other = Cluster(self.scratch / "none", *self.flags)
        bad = self.scratch / "bad.tar"
        bad.write_bytes(b"\0" * 10240)
        self.refused(other.swell("restore", str(bad)), "not a file written by swell backup")
        good = self.scratch / "cut.tar"
        self.done(self.cluster.swell("backup", str(good)))
        good.write_bytes(good.read_bytes()[:4096])
        self.refused(other.swell("restore", str(good)), "cut.tar")
        self.refused(self.cluster.swell("backup", str(good)), "cut.tar is there already", "--force")
        self.done(self.cluster.swell("backup", "--force", str(good)))
        for part, said in (("swell.db", "the backup is incomplete: swell.db is missing"),
                           ("pki/ca.key", "the backup is incomplete: pki/ca.key is missing"),
                           ("backup.json", 'unknown format "swell.dev/backup/v9"; swell ')):
            bad = self.scratch / "part.tar"
            with tarfile.open(good) as whole, tarfile.open(bad, "w") as out:
                for member in whole:
                    data = whole.extractfile(member).read() if member.isfile() else b""
                    if member.name.endswith("/backup.json"):
                        data = data.replace(b"backup/v2", b"backup/v9") if part == "backup.json" else data
                    elif member.name.endswith(part):
                        continue
                    member.size = len(data)
                    out.addfile(member, io.BytesIO(data))
            self.refused(other.swell("restore", str(bad)), "part.tar: ", said)
        for part in ("pki/ca.key", "pki/sa.key", "pki/admin.crt"):
            bad = self.scratch / "damaged.tar"
            damaged = bytearray(good.read_bytes())
            with tarfile.open(good) as whole:
                member = next(one for one in whole if one.name.endswith(part))
            damaged[member.offset_data + member.size // 2] ^= 1
            bad.write_bytes(damaged)
            self.refused(other.swell("restore", str(bad)), f"damaged.tar: {part} is missing or damaged")
        self.assertFalse((other.directory / "swell.db").exists())

    def test_objects_move_to_another_cluster(self):
        self.done(self.cluster.kubectl("create", "namespace", "moving"))
        self.done(self.cluster.kubectl("create", "configmap", "thing", "-n", "moving", "--from-literal=a=b"))
        exported = self.done(self.cluster.swell("export"))
        other = Cluster(self.scratch / "target", *self.flags)
        other.up()
        try:
            said = self.done(other.swell("import", "-f", "-", input=exported))
            self.assertIn("configmap/thing created\n", said)
            self.assertEqual(other.get("configmap", "thing", "-n", "moving")["data"], {"a": "b"})
            again = self.done(other.swell("import", "-f", "-", input=exported))
            self.assertNotIn(" created\n", again)
        finally:
            other.down()


class Restart(ClusterTest):
    flags = ("--nodes", "3")

    def nodes(self):
        return [node["metadata"]["name"] for node in self.cluster.get("nodes")["items"]]

    def test_nodes_that_are_no_longer_asked_for_are_gone(self):
        other = "apiVersion: v1\nkind: Node\nmetadata: {name: other}\n"
        self.done(self.cluster.kubectl("create", "-f", "-", input=other))
        self.assertEqual(self.nodes(), ["node-1", "node-2", "node-3", "other"])
        self.cluster.down()
        self.cluster.flags = ("--nodes", "2", "--reshape")
        self.cluster.up()
        self.until(lambda: self.nodes() == ["node-1", "node-2", "other"], self.nodes)

    def test_a_lost_file_changes_neither_shape_nor_port(self):
        port = (self.cluster.directory / "port").read_text()
        nodes = self.nodes()
        self.cluster.down()
        flags, self.cluster.flags = self.cluster.flags, ()
        (self.cluster.directory / "port").unlink()
        self.cluster.up()
        self.assertEqual((self.cluster.directory / "port").read_text(), port)
        self.until(lambda: self.nodes() == nodes, self.nodes)
        self.cluster.down()
        record = self.cluster.directory / "cluster.json"
        record.rename(record.with_suffix(".lost"))
        with self.assertRaisesRegex(RuntimeError, "cluster.json is missing, which remembers the nodes"):
            self.cluster.up()
        self.cluster.flags = (*(flag for flag in flags if flag != "--reshape"), "--reshape")
        self.cluster.up()
        self.assertEqual((self.cluster.directory / "port").read_text(), port)

    def test_nobodys_connection_has_its_port_when_it_comes_back(self):
        handed_out = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
        port = int((self.cluster.directory / "port").read_text())
        self.assertFalse(int(handed_out[0]) <= port <= int(handed_out[1]), port)


class FullDisk(ClusterTest):
    """/dev/full in the place of the audit log: every write to it fails as on a full disk."""

    def create(self, name):
        return self.cluster.kubectl("create", "configmap", name)

    def test_an_audit_log_that_cannot_be_written_is_told_or_required(self):
        log = self.cluster.directory / "audit.log"
        self.cluster.down()
        log.unlink()
        log.symlink_to("/dev/full")
        self.cluster.up()
        self.done(self.create("served"))
        self.until(lambda: "Audit log   misses what happens now: " in self.cluster.swell("status").stdout)
        self.until(lambda: [event["message"] for event in self.cluster.get("events", "-n", "default")["items"]
                            if event["reason"] == "AuditLogFailed"])
        self.cluster.down()
        flags, self.cluster.flags = self.cluster.flags, (*self.cluster.flags, "--audit-required")
        self.addCleanup(setattr, self.cluster, "flags", flags)
        self.cluster.up()
        self.create("first")  # shows that the log fails
        self.until(lambda: "--audit-required" in self.create("refused").stderr)
        self.assertIn("No space left", self.create("refused").stderr)
        log.unlink()
        self.until(lambda: self.create("again").returncode == 0)
        self.until(lambda: '"again"' in log.read_text())
        self.assertNotIn("Audit log", self.cluster.swell("status").stdout)


class Start(unittest.TestCase):
    def test_nodes_that_cannot_be_are_refused(self):
        for flags, said in ((("--nodes", "0"), "--nodes: 0 is not between 1 and"),
                            (("--nodes", "-1"), "--nodes: -1 is not between 1 and"),
                            (("--gpus-per-node", "4"), "--gpus-per-node needs --nodes"),
                            (("--nodes", "1", "--gpus-per-node", "-4"), "--gpus-per-node: -4")):
            done = run(SWELL, "up", "--data-dir", "/nonexistent", *flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(said, done.stderr)


class Report(ClusterTest):
    def test_an_empty_account_is_no_error(self):
        done = self.cluster.swell("report", "-o", "json")
        self.assertEqual(json.loads(self.done(done))["rows"], [])
        self.refused(self.cluster.swell("report", "--by", "colour"), "--by")

    def test_what_happened_last_before_a_restart_is_counted(self):
        def started():
            return json.loads(self.done(self.cluster.swell("report", "-o", "json")))["total"]["started"]
        before = started()
        self.done(self.cluster.swell("submit", "short", "--gpus", "1", "--image", "x", "-a",
                                     "swell.dev/run-seconds=0.1", "--wait", "--", "true"))
        self.cluster.down()
        self.cluster.up()
        self.assertEqual(started(), before + 1)


if __name__ == "__main__":
    unittest.main()
