"""Ways out of a pod that worked once. Each is tried again, in real pods on a real `swell up`; none may work."""

import os
import shlex
import shutil
import socketserver
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
SWELL = str(BIN / "swell")
sys.path.insert(0, str(ROOT / "tests"))

import json  # noqa: E402

from waiting import LIMIT_S, until  # noqa: E402


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **more)


@unittest.skipUnless(os.geteuid() == 0, "pods have all their walls only where root starts Swell")
class Confinement(unittest.TestCase):
    """Scripts run in pods of an administrator, whom no admission stands in the way of: the walls are the runtime's."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-walls-"))
        cls.scratch.chmod(0o755)
        cls.data = cls.scratch / "data"
        up = run(SWELL, "up", "--detach", "--data-dir", cls.data, "--nodes", "1", "--gpus-per-node", "2")
        if up.returncode != 0:
            raise RuntimeError(up.stderr)
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        run(SWELL, "down", "--data-dir", cls.data)
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def kubectl(self, *words, input=None):
        return run("kubectl", "--kubeconfig", self.data / "kubeconfig", *words, input=input)

    def submit(self, script, container=None, **spec):
        type(self).count += 1
        name = f"pod-{self.count}"
        main = {"name": "main", "image": "python", "command": ["/bin/sh", "-c", script], **(container or {})}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **spec}}
        made = self.kubectl("create", "-f", "-", input=json.dumps(pod))
        self.assertEqual(made.returncode, 0, made.stderr)
        return name

    def pod(self, name):
        return json.loads(self.kubectl("get", "pod", name, "-o", "json").stdout)

    def ended(self, name):
        def over():
            return self.pod(name)["status"].get("phase") in ("Succeeded", "Failed")
        self.assertTrue(until(over, pause=0.1), self.kubectl("describe", "pod", name).stdout)

    def say(self, script, container=None, **spec):
        """What the script prints in a pod of its own."""
        name = self.submit(script, container, **spec)
        self.ended(name)
        return self.kubectl("logs", name).stdout

    def host_path(self, path, script, **spec):
        """In a pod that has the path at /v."""
        return self.say(script, {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                        volumes=[{"name": "v", "hostPath": {"path": str(path)}}], **spec)

    def test_work_of_an_administrator_keeps_owners_where_it_names_a_directory(self):
        """An administrator may name any path, so root in the pods of their jobs is root there: each attempt can read
        what the one before wrote."""
        folder = self.scratch / "kept"
        folder.mkdir(mode=0o755)
        script = "umask 077; cat /v/f 2>/dev/null; echo line >> /v/f"
        main = {"name": "main", "image": "python", "command": ["/bin/sh", "-c", script],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        pod = {"restartPolicy": "Never", "containers": [main],
               "volumes": [{"name": "v", "hostPath": {"path": str(folder)}}]}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "keeps"},
               "spec": {"completions": 2, "template": {"spec": pod}}}
        made = self.kubectl("create", "-f", "-", input=json.dumps(job))
        self.assertEqual(made.returncode, 0, made.stderr)
        done = self.kubectl("wait", "--for=condition=complete", "job/keeps", "--timeout=60s")
        self.assertEqual(done.returncode, 0, self.kubectl("describe", "job", "keeps").stdout)
        self.assertEqual((folder / "f").read_text(), "line\nline\n")
        self.assertEqual((folder / "f").stat().st_uid, 0)

    def test_no_mount_path_shows_the_machine(self):
        """Where nothing can be made, a place for a mount was made out of what the machine has there."""
        marks = "ls /proc | grep -c '^[0-9]'; ls -d /home/*/.bashrc 2>/dev/null; echo end"
        volumes = [{"name": "d", "emptyDir": {}}, {"name": "r", "projected": {"sources": []}}]
        for places in (["/proc/x"], ["/proc/self/x"], ["/sys/x"], ["/home", "/home/x"], ["/run", "/run/x"]):
            mounts = [{"name": "r" if len(places) > 1 and at == places[0] else "d", "mountPath": at}
                      for at in places]
            said = self.say(marks, {"volumeMounts": mounts}, volumes=volumes)
            if places[0].startswith("/proc"):
                self.assertEqual(said, "", places)
            else:
                count, *rest = said.splitlines()
                self.assertLess(int(count), 20, places)
                self.assertEqual(rest, ["end"], places)

    def test_no_working_directory_is_made_on_the_machine(self):
        link = {"name": "link", "image": "python", "volumeMounts": [{"name": "d", "mountPath": "/d"}],
                "command": ["ln", "-s", f"/.swell-old{self.scratch}", "/d/out"]}
        main = {"workingDir": "/d/out/made", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}
        self.say("true", main, initContainers=[link], volumes=[{"name": "d", "emptyDir": {}}])
        self.assertFalse((self.scratch / "made").exists())

    def test_no_path_goes_up_to_the_machine(self):
        """The machine's root is there while the container's is built, and what is in the way of a mount is removed."""
        folder = self.scratch / "up"
        folder.mkdir()
        (folder / "file").write_text("kept")
        for name in ("file", "made"):
            path = f"/x/../.swell-old{folder}/{name}"
            self.say("true", {"volumeMounts": [{"name": "d", "mountPath": path}]},
                     volumes=[{"name": "d", "emptyDir": {}}])
            self.say("true", {"terminationMessagePath": path})
        self.assertEqual([(one.name, one.read_text()) for one in folder.iterdir()], [("file", "kept")])

    def test_a_host_path_that_is_missing_is_made_with_nobodys_rights(self):
        folder = self.scratch / "closed"
        folder.mkdir(mode=0o755)
        for kind in ("", "DirectoryOrCreate", "FileOrCreate"):
            path = {"path": str(folder / "made"), "type": kind}
            name = self.submit("true", volumes=[{"name": "v", "hostPath": path}])
            self.assertTrue(until(lambda name=name: "a pod makes one only where everybody may" in
                                  self.kubectl("describe", "pod", name).stdout, pause=0.1))
        self.assertEqual(list(folder.iterdir()), [])

    def test_no_mount_path_replaces_a_file_of_the_machine(self):
        folder = self.scratch / "files"
        folder.mkdir()
        folder.chmod(0o1777)
        (folder / "file").write_text("kept")
        mounts = [{"name": "v", "mountPath": "/v"}, {"name": "d", "mountPath": "/v/file"}]
        self.say("true", {"volumeMounts": mounts},
                 volumes=[{"name": "v", "hostPath": {"path": str(folder)}}, {"name": "d", "emptyDir": {}}])
        self.assertEqual((folder / "file").read_text(), "kept")

    # --- 1: a plain pod of root ------------------------------------------------------------------

    def test_root_in_a_pod_is_nobody_outside(self):
        name = self.submit("echo up; exec sleep 98761")
        self.assertTrue(until(lambda: "up" in self.kubectl("logs", name).stdout, pause=0.1))
        found = [line.split() for line in run("ps", "-eo", "uid,args").stdout.splitlines()
                 if line.endswith("sleep 98761")]
        self.assertTrue(found)
        self.assertTrue(all(int(uid) > 65535 for uid, *_ in found), found)
        inside = self.kubectl("exec", name, "--", "id", "-u")
        self.assertEqual(inside.stdout, "0\n", inside.stderr)
        self.kubectl("delete", "pod", name)

    def test_capabilities_and_filter_are_on(self):
        said = self.say("grep -E 'CapEff|CapBnd|Seccomp:' /proc/self/status")
        self.assertEqual(said, "CapEff:\t00000000a00425fb\nCapBnd:\t00000000a00425fb\nSeccomp:\t2\n")

    def test_settings_of_the_kernel_stay(self):
        before = Path("/proc/sys/kernel/core_pattern").read_text()
        said = self.say("(echo '|/tmp/x' > /proc/sys/kernel/core_pattern) 2>&1; "
                        "(echo h > /proc/sysrq-trigger) 2>&1; echo end")
        self.assertIn("end", said)
        self.assertEqual(Path("/proc/sys/kernel/core_pattern").read_text(), before)

    def test_control_groups_are_out_of_reach(self):
        said = self.say("find /sys/fs/cgroup -type d -name 'swell*'; "
                        "mkdir /sys/fs/cgroup/x 2>/dev/null && echo made; "
                        "mount -t cgroup -o pids x /mnt 2>/dev/null && echo mounted; "
                        "for f in $(find /sys/fs/cgroup -name cgroup.procs); do echo 1 2>/dev/null > $f && echo moved; "
                        "done; echo end")
        self.assertEqual(said, "end\n")

    def test_nothing_is_unmounted_to_look_below(self):
        key = self.data / "pki" / "ca.key"
        self.assertTrue(key.exists())
        said = self.say("umount /tmp 2>/dev/null && echo unmounted; "
                        f"umount -l {self.data} 2>/dev/null && echo unmounted; "
                        f"cat {key} 2>/dev/null; ls -A {self.data} 2>/dev/null; echo end", {"image": "busybox"})
        self.assertEqual(said, "end\n")

    def test_files_of_the_host_stay_as_they_are(self):
        secret = self.scratch / "secret"
        secret.write_text("secret")
        secret.chmod(0o600)
        folder = self.scratch / "folder"
        folder.mkdir(exist_ok=True)
        said = self.host_path("/", f"cat /v{secret} 2>/dev/null; touch /v{folder}/planted 2>/dev/null; "
                                   "touch /v/etc/swell-planted 2>/dev/null; chmod u+s /v/bin/sh 2>/dev/null; "
                                   f"ls -A /v{self.data} 2>/dev/null; "
                                   "cat /v/etc/shadow 2>/dev/null; cat /etc/shadow 2>/dev/null; "
                                   "ls -A /root /home; echo end")
        self.assertEqual(said, "/home:\n\n/root:\nend\n")
        self.assertFalse((folder / "planted").exists())
        self.assertFalse(Path("/etc/swell-planted").exists())

    def test_namespaces_and_keys_are_not_made(self):
        said = self.say("unshare -U true 2>/dev/null && echo users; unshare -m true 2>/dev/null && echo mounts; "
                        "nsenter -t 1 -m true 2>/dev/null && echo entered; "
                        "python3 -c 'import ctypes; c = ctypes.CDLL(None); "
                        "print(c.syscall(250, 0, -3), c.syscall(321, 0, 0, 0), c.syscall(298, 0, 0, 0, 0, 0))'")
        self.assertEqual(said, "-1 -1 -1\n")

    def test_processes_of_the_host_are_not_traced(self):
        said = self.say("ls /proc | grep -c '^[0-9]'; cat /proc/1/environ 2>/dev/null | wc -c; "
                        "ls /proc/1/root/ 2>/dev/null | wc -l; "
                        "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'")
        count, *rest = said.split("\n")
        self.assertLess(int(count), 10)
        self.assertEqual(rest, ["0", "0", "-1", ""])

    def test_devices_of_the_host_are_not_there(self):
        said = self.say("ls /dev | tr '\\n' ' '; mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem; echo")
        self.assertEqual(said.split(), "fd full mqueue null ptmx pts random shm stderr stdin stdout termination-log "
                                       "tty urandom zero".split())

    # --- 3: paths of the host, for users with numbers ----------------------------------------------

    def test_numbers_reach_their_own_files_alone(self):
        eve, dan = self.scratch / "eve", self.scratch / "dan"
        for folder, number in ((eve, 1500), (dan, 1700)):
            folder.mkdir()
            os.chown(folder, number, number)
            folder.chmod(0o700)
        user = {"securityContext": {"runAsUser": 1500, "runAsGroup": 1500}}
        self.assertEqual(self.host_path(eve, "echo mine > /v/f; cat /v/f", **user), "mine\n")
        self.assertEqual((eve / "f").stat().st_uid, 1500)
        self.assertEqual(self.host_path(dan, "ls /v 2>/dev/null; echo x 2>/dev/null > /v/f; echo end", **user), "end\n")

    def test_the_clusters_files_are_no_volume(self):
        for path in (self.data, self.data / "pods", f"{self.data}/../data/volumes"):
            name = self.submit("ls -A /v", {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                               volumes=[{"name": "v", "hostPath": {"path": os.path.normpath(path)}}])
            self.ended(name)
            status = self.pod(name)["status"]["containerStatuses"][0]["state"]["terminated"]
            self.assertIn("where the cluster keeps its own files", status["message"])

    # --- 4, 5: groups and what was ignored --------------------------------------------------------

    def test_groups_are_those_asked_for(self):
        said = self.say("id -G; cat /etc/shadow 2>/dev/null; true",
                        securityContext={"runAsUser": 1500, "runAsGroup": 1500})
        self.assertEqual(said, "1500\n")

    def test_fields_are_followed(self):
        said = self.say("grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status",
                        {"securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False,
                                             "seccompProfile": {"type": "RuntimeDefault"}}})
        self.assertEqual(said, "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n")

    def test_what_cannot_be_had_is_refused(self):
        for container, spec, words in (
                ({"securityContext": {"capabilities": {"add": ["FLY"]}}}, {}, "\"FLY\" is not a capability of Linux"),
                ({}, {"securityContext": {"sysctls": [{"name": "kernel.core_pattern", "value": "x"}]}},
                 "kernel.core_pattern"),
                ({}, {"hostUsers": False, "securityContext": {"runAsUser": 70000}}, "names the id 70000")):
            name = self.submit("true", container, **spec)
            self.ended(name)
            status = self.pod(name)["status"]
            self.assertEqual(status["reason"], "SecurityForbidden")
            self.assertIn(words, status["message"])

    # --- 6, 8, 9, 16 ------------------------------------------------------------------------------

    def test_a_command_under_git_syncs_name_is_in_the_pods_network(self):
        said = self.say("readlink /proc/self/ns/net", {"image": "registry.example.com/git-sync:v3"})
        self.assertNotEqual(said.strip(), os.readlink("/proc/self/ns/net"))
        self.assertTrue(said.startswith("net:["), said)

    def test_git_sync_reaches_no_service_of_the_machine_and_no_pod(self):
        told = run(SWELL, "status", "--data-dir", self.data).stdout
        if "git-sync containers reach" in told:
            self.skipTest("this machine cannot keep it: " + told)
        server = self.submit("python3 -m http.server 8080")
        self.assertTrue(until(lambda: self.pod(server)["status"].get("podIP"), pause=0.1))
        with socketserver.TCPServer(("0.0.0.0", 0), socketserver.BaseRequestHandler) as taken:
            port = taken.server_address[1]
            addresses = [("127.0.0.1", port), ("::1", port), (self.pod(server)["status"]["podIP"], 8080)]
            # git runs this program in place of ssh: whatever the pod's author likes.
            script = f"""
import socket, sys
for address in {addresses}:
    try:
        socket.create_connection(address, timeout=5)
        print("reached", address, file=sys.stderr)
    except OSError as error:
        print("refused", error, file=sys.stderr)
print("tried", file=sys.stderr)
"""
            type(self).count += 1
            name = f"pod-{self.count}"
            main = {"name": "main", "image": "example.com/git-sync:v3", "env": [
                {"name": "GIT_SYNC_REPO", "value": "ssh://host/code.git"},
                {"name": "GIT_SSH_COMMAND", "value": f"python3 -c {shlex.quote(script)}"}]}
            made = self.kubectl("create", "-f", "-", input=json.dumps({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"restartPolicy": "Never", "containers": [main]}}))
            self.assertEqual(made.returncode, 0, made.stderr)
            self.ended(name)
        said = self.kubectl("logs", name).stdout
        self.assertIn("tried", said)
        self.assertNotIn("reached", said)
        self.kubectl("delete", "pod", server, "--wait=false")

    def test_a_fork_bomb_is_bounded(self):
        said = self.say("cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null")
        self.assertLessEqual(int(said), 16384)
        self.assertLess(int(said), int(Path("/proc/sys/kernel/pid_max").read_text()))

    def test_a_device_that_a_pod_makes_opens_nothing(self):
        told = run(SWELL, "status", "--data-dir", self.data).stdout
        if "open any device" in told:
            self.skipTest("this machine cannot keep it: " + told)
        disk = os.stat(self.data).st_dev
        said = self.say(f"mknod /dev/disk b {os.major(disk)} {os.minor(disk)} && echo made; "
                        "head -c 1 /dev/disk 2>/dev/null | wc -c; head -c 1 /dev/zero | wc -c",
                        {"securityContext": {"capabilities": {"add": ["MKNOD"]}}}, hostUsers=True)
        self.assertEqual(said, "made\n0\n1\n")
        self.assertEqual(self.host_path("/dev", "head -c 1 /v/kmsg 2>/dev/null | wc -c; "
                                        "head -c 1 /v/urandom | wc -c",
                                        hostUsers=True), "0\n1\n")

    def test_gpus_of_others_have_no_nodes(self):
        said = self.say("ls /dev | grep -c nvidia; true", {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]})
        self.assertEqual(said, "0\n")

    def test_a_number_reads_its_own_token(self):
        said = self.say("wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token",
                        securityContext={"runAsUser": 1500, "runAsGroup": 1500})
        self.assertGreater(int(said or 0), 100)

    # --- what must still work -----------------------------------------------------------------------

    def test_a_pod_works_as_its_root(self):
        said = self.say("set -e; echo x > /root/f; echo y > /usr/local/bin/t; mkdir /var/lib/mine; echo z > /etc/mine; "
                        "chown 5:6 /root/f; stat -c '%u %g' /root/f; echo d > /dev/shm/s; python3 -c 'print(1 + 1)'; "
                        "df -k /dev/shm | tail -1 | awk '{print $2}'",
                        {"resources": {"limits": {"memory": "64Mi"}}})
        self.assertEqual(said, "5 6\n2\n65536\n")

    def test_the_nodes_root_is_for_those_who_say_so(self):
        folder = self.scratch / "given"
        folder.mkdir()
        self.host_path(folder, "echo x > /v/f", hostUsers=True)
        self.assertEqual((folder / "f").stat().st_uid, 0)
        self.assertIn("CapEff:\t", self.say("grep CapEff /proc/self/status; mount -t tmpfs x /mnt && echo mounted",
                                            {"securityContext": {"privileged": True}}))


if __name__ == "__main__":
    unittest.main()
