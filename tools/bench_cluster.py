"""The clusters that are measured, each of its own processes on this machine, and what loads them; for tools/bench."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("SWELL_BIN_DIR") or ROOT / "build" / "bin")
LOAD = next((at for at in (BIN / "swell_load", ROOT / "build" / "release" / "bin" / "swell_load") if at.exists()),
            BIN / "swell_load")
MASTER_LOAD = LOAD.with_name("swell_master_load")
_IDLE_SECONDS = 60


def run_load(kubeconfig, *words):
    done = subprocess.run([LOAD, kubeconfig, *map(str, words)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"swell_load {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


class Cluster:
    """An embedded cluster of its own in a temporary directory."""

    def __init__(self, *flags, data=None):
        self.data = data or tempfile.mkdtemp(prefix="swell-bench-")
        self.folders = []
        begin = time.monotonic()
        # The log goes to the data directory; the pipe only says when the cluster is ready.
        self.process = subprocess.Popen([BIN / "swell", "up", "--data-dir", self.data, *flags],
                                        stdout=subprocess.PIPE, text=True)
        self.ready_line = self.process.stdout.readline()
        if not self.ready_line:
            raise SystemExit(f"swell up failed; see {self.data}/swell.log")
        self.kubeconfig = f"{self.data}/kubeconfig"
        self.url = self.ready_line.split()[-1]
        self.context = ssl.create_default_context(cafile=f"{self.data}/pki/ca.crt")
        self.context.load_cert_chain(f"{self.data}/pki/admin.crt", f"{self.data}/pki/admin.key")
        self.connection = None
        self.used = time.monotonic()
        self.get("/version")
        self.start_ms = (time.monotonic() - begin) * 1e3

    def shared_folder(self, name):
        """A directory for pods to write to: beside the cluster's own files, which no pod sees, and open to all, since
        who is root in a pod is nobody here."""
        folder = Path(f"{self.data}-{name}")
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        self.folders.append(folder)
        return folder

    def request(self, method, path, body=None, content_type="application/json"):
        """One connection is kept, as clients of the API do: a new TLS handshake would count as the cluster's work.

        Not one that was idle for a minute, since the server ends those after three.
        """
        if self.connection is not None and time.monotonic() - self.used > _IDLE_SECONDS:
            self.connection.close()
            self.connection = None
        self.used = time.monotonic()
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.url.split("//", 1)[1], context=self.context, timeout=30)
        data = json.dumps(body).encode() if body is not None else None
        self.connection.request(method, path, data, {"Content-Type": content_type})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text)

    def get(self, path):
        return self.request("GET", path)

    def load(self, *words):
        return run_load(self.kubeconfig, *words)

    def namespace(self, name):
        self.request("POST", "/api/v1/namespaces",
                     {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def rss_mb(self):
        return rss_mb(self.process.pid)

    def stop(self, keep=False):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        if not keep:
            for folder in (self.data, *self.folders):
                shutil.rmtree(folder, ignore_errors=True)

    def kill(self):
        self.process.kill()
        self.process.wait()


class ControlPlane:
    """etcd, kube-apiserver and kube-controller-manager."""

    def __init__(self, *flags, environment=()):
        self.run_dir = tempfile.mkdtemp(prefix="swell-bench-kubernetes-")
        self.environment = {**os.environ, **dict(environment), "KUBE_RUN_DIR": self.run_dir}
        self.kubeconfig = self.cluster("up", *flags)
        self.environment["KUBECONFIG"] = self.kubeconfig

    def namespace(self, name):
        """One that accepts pods."""
        if f"namespace/{name}\n" not in self.kubectl("get", "namespaces", "-o", "name"):
            self.kubectl("create", "namespace", name)
        # Before 1.24, pods also wait for the account's token.
        minor = json.loads(self.kubectl("get", "--raw", "/version"))["minor"].rstrip("+")
        wanted = "default-token" if int(minor) < 24 else "name: default"
        while wanted not in self.kubectl("get", "serviceaccounts", "-n", name, "-o", "yaml"):
            time.sleep(0.2)

    def rss_mb(self):
        return sum(rss_mb(int(Path(f"{self.run_dir}/{part}.pid").read_text())) for part in ("etcd", "kube-apiserver"))

    def restart_seconds(self):
        self.cluster("kill", "kube-apiserver", "etcd")
        begin = time.monotonic()
        self.cluster("start", "etcd", "kube-apiserver")
        return time.monotonic() - begin

    def cluster(self, *words):
        done = subprocess.run([ROOT / "tests" / "kubernetes" / "cluster", *words], env=self.environment, text=True,
                              stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"cluster {' '.join(words)} failed")
        return done.stdout.strip()

    def tell(self, *words):
        subprocess.run([BIN / "swell", *map(str, words)], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)

    def kubectl(self, *words, check=True):
        return subprocess.run(["kubectl", *words], env=self.environment, text=True, check=check,
                              stdout=subprocess.PIPE).stdout

    def load(self, *words):
        return run_load(self.kubeconfig, *words)

    def stop(self):
        self.cluster("down", "--wipe")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().split("\n"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
