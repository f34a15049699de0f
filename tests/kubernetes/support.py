"""What the tests on a real control plane share: the cluster script, kubectl, swell's own processes, waiting.

A test is an executable test_* in this directory; `run` starts one cluster for all of them and gives them KUBECONFIG,
KUBE_BIN_DIR and SWELL. A test makes what it needs in a namespace of its own and removes it. Standard library only.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SWELL = os.environ.get("SWELL", str(ROOT / "build" / "bin" / "swell"))
LIVE = sys.stdout.isatty() and "CI" not in os.environ
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until, watched  # noqa: E402


class Failure(Exception):
    """What should be is not."""


def note(text):
    print(f"  {text}", flush=True)


def check(what, holds, detail=""):
    if not holds:
        raise Failure(f"{what}\n{detail}" if detail else what)
    note(f"✓ {what}")


def call(*words, input=None, env=None, timeout=LIMIT_S):
    """A command's exit status and output, standard error with it."""
    done = subprocess.run([str(word) for word in words], text=True, input=input, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=timeout, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout


def run(*words, **options):
    code, text = call(*words, **options)
    if code != 0:
        raise Failure(f"exit status {code} of: {' '.join(map(str, words))}\n{text}")
    return text


@functools.cache
def server_minor():
    """20 for Kubernetes 1.20."""
    return int(re.match(r"\d+", json.loads(kubectl("get", "--raw", "/version"))["minor"]).group())


def kubectl(*words, **options):
    return run("kubectl", *words, **options)


def cluster(*words, **options):
    """The cluster script, on the cluster of this run."""
    return run(HERE / "cluster", *words, **options).strip()


def objects(kind, *words):
    code, text = call("kubectl", "get", kind, "-o", "json", *words)
    return json.loads(text)["items"] if code == 0 else []


def wait(what, condition, seconds=LIMIT_S):
    """Asks `condition` until it answers something true, and returns that."""
    answer, took = watched(what, condition, seconds, LIVE)
    if not answer:
        raise Failure(f"waited {seconds} s in vain for: {what}")
    note(f"{what}: after {took:.1f} s")
    return answer


class Process:
    """One of swell's long-running commands; its output goes to a file, whose end is shown when it fails."""

    def __init__(self, log, *words, ready=None, env=None):
        self.log = Path(log)
        self.words = [str(word) for word in words]
        self.env = {**os.environ, **(env or {})}
        self.start(ready)

    def start(self, ready=None):
        before = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=self.env)
        if not ready:
            return
        until(lambda: ready in self.text(before) or self.process.poll() is not None, pause=0.05)
        if ready not in self.text(before):
            raise Failure(f"{' '.join(self.words)} did not say {ready!r}:\n{self.text()[-2000:]}")

    def text(self, start=0):
        return self.log.read_bytes()[start:].decode(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().split("\n"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=30):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()


class Bench:
    """A test's working directory and processes; leaving it stops and removes them."""

    def __init__(self):
        self.work = Path(tempfile.mkdtemp(prefix="swell-kubernetes-"))
        self.processes = []
        self.namespaces = []

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for process in reversed(self.processes):
            if failure[0] is not None:
                print(f"--- the end of {process.log.name}:\n{process.text()[-1500:]}", flush=True)
            process.stop()
        for name in self.namespaces:
            call("kubectl", "delete", "namespace", name, "--wait=false")
        # Pods left on them are for the next owner of nodes of these names, or for the pod collector.
        call("kubectl", "delete", "nodes", "--all")
        if failure[0] is not None and self.processes:
            print(f"--- whole logs stay in {self.work}", flush=True)
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def namespace(self, name):
        """A new namespace whose pods the API server accepts: their service account is there, and its token where
        Kubernetes makes one (before 1.24)."""
        wait(f"no earlier namespace {name} is left", lambda: call("kubectl", "get", "namespace", name)[0] != 0)
        kubectl("create", "namespace", name)
        self.namespaces.append(name)
        wanted = "token" if server_minor() < 24 else "uid"
        wait(f"namespace {name} has its service account",
             lambda: wanted in call("kubectl", "get", "serviceaccount", "default", "-n", name, "-o", "yaml")[1])
        return name

    def start(self, name, *words, ready=None, env=None):
        process = Process(self.work / f"{name}.log", *words, ready=ready, env=env)
        self.processes.append(process)
        return process

    def controller(self, *words, env=None):
        return self.start("controller", SWELL, "controller", *words, ready="Scheduling for", env=env)

    def agent(self, *words, name="agent", env=None):
        return self.start(name, SWELL, "agent", *words, ready="Registered with", env=env)


def install():
    return run(SWELL, "install")


def simulated_pod(name, namespace, seconds=None, gpus=0, cpu="100m", labels=None, **spec):
    annotations = {} if seconds is None else {"swell.dev/run-seconds": str(seconds)}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations, "labels": labels or {}},
            "spec": {"restartPolicy": "Never", "schedulerName": "swell", "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "main", "image": "busybox",
                                     "resources": {"requests": {"cpu": cpu}, "limits": limits}}], **spec}}


def create(*items):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
    return kubectl("create", "--validate=false", "-f", "-", input=text)


def main(*tests):
    """Runs the test functions one after the other; exit status 1 at the first that fails."""
    for test in tests:
        print(f"{test.__name__.replace('_', ' ')}: {(test.__doc__ or '').strip()}", flush=True)
        begin = time.monotonic()
        try:
            with Bench() as bench:
                test(bench)
        except Failure as failure:
            print(f"\nFAILED {test.__name__}: {failure}", file=sys.stderr)
            return 1
        except Exception:
            traceback.print_exc()
            return 1
        note(f"ok, {time.monotonic() - begin:.1f} s")
    return 0
