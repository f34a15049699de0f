"""What a cluster is like after hours of work: what did not end, what grew, what was left behind; used by tools/bench.

Rounds of some twenty seconds on one embedded cluster whose pods are real processes: jobs of every kind that has a
controller, elastic and rigid, more than fit, preempted by urgent ones, some suspended, scaled, failing once or deleted
while they run; watchers, log followers and commands in pods come and go beside them. After each round everything is
deleted, events too, and the cluster is looked at when it is idle. The last quarter of the rounds is compared with the
quarter before it: the first half may fill caches. The API server forgets the history of watches every five minutes,
so memory is a saw whose teeth are as long: its lows are compared, and only when there were some.
"""

import contextlib
import http.client
import os
import random
import re
import subprocess
import threading
import time
from pathlib import Path

_GPUS = 12  # of the cluster: 3 nodes with 4 each
_MEMORY_MINUTES = 20  # two teeth of the saw in half of it
_ROUND_S = 300  # what has not ended by then does not end
# Earlier files of a log or record, whose number is bounded.
_EARLIER_PART = re.compile(r".*/(swell\.\d+\.log|audit\.log\.\d+|cycles/[^/]*)")
_PATIENT = "trap 'exit 143' TERM; sleep {seconds} & wait $!"
_SWELL, _TRAINING, _BATCH, _APPS = "/apis/swell.dev/v1", "/apis/kubeflow.org/v1", "/apis/batch/v1", "/apis/apps/v1"
_SPACE = "/namespaces/default/"


def _pod(command, gpus=0, restart="Never", priority=""):
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    spec = {"containers": [container], "restartPolicy": restart, "terminationGracePeriodSeconds": 10}
    if priority:
        spec["priorityClassName"] = priority
    return {"spec": spec}


def _training_job(members, least, seconds):
    role = {"replicas": members, "restartPolicy": "OnFailure",
            "template": _pod(_PATIENT.format(seconds=seconds), gpus=1)}
    if least < members:
        role["elastic"] = {"minReplicas": least, "maxReplicas": members}
    return {"apiVersion": "swell.dev/v1", "kind": "TrainingJob", "spec": {"roles": {"worker": role}}}


def _pytorch_job(workers, seconds, priority=""):
    def role(replicas):
        # "pytorch" is the container that the training operator asks for.
        template = _pod(_PATIENT.format(seconds=seconds), gpus=1, priority=priority)
        template["spec"]["containers"][0]["name"] = "pytorch"
        del template["spec"]["restartPolicy"]
        return {"replicas": replicas, "restartPolicy": "OnFailure", "template": template}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "spec": {"pytorchReplicaSpecs": {"Master": role(1), "Worker": role(workers)}}}


def _batch_job(command, completions):
    return {"apiVersion": "batch/v1", "kind": "Job",
            "spec": {"completions": completions, "parallelism": 2, "backoffLimit": 3, "template": _pod(command)}}


def _deployment(replicas):
    labels = {"app": "web"}
    template = _pod(_PATIENT.format(seconds=3600), restart="Always")
    template["metadata"] = {"labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}}


class _Guests:
    """Clients that come and go beside the jobs of a round: watchers, and kubectl in pods."""

    def __init__(self, cluster, rng):
        self.cluster, self.rng = cluster, rng
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.watch, args=(rng.uniform(1, 8),)) for _ in range(6)]
        self.threads.append(threading.Thread(target=self.visit))
        for thread in self.threads:
            thread.start()

    def watch(self, seconds):
        """Reads what comes for a while, then goes without a word."""
        connection = http.client.HTTPSConnection(self.cluster.url.split("//", 1)[1], context=self.cluster.context,
                                                 timeout=1)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/api/v1/pods?watch=1&allowWatchBookmarks=true")
            answer = connection.getresponse()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not self.over.is_set():
                with contextlib.suppress(TimeoutError):
                    answer.read1(1 << 16)
        connection.close()

    def kubectl(self, *words, seconds=20):
        with contextlib.suppress(subprocess.TimeoutExpired):
            command = ["kubectl", "--kubeconfig", self.cluster.kubeconfig, *words]
            return subprocess.run(command, timeout=seconds, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout
        return ""

    def visit(self):
        """Runs commands in pods and follows logs. Pods may be gone by then, which is not a fault."""
        while not self.over.wait(0.5):
            pods = self.kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name").split()
            if pods:
                self.kubectl("exec", self.rng.choice(pods), "--", "true")
                self.kubectl("logs", "-f", self.rng.choice(pods), seconds=2)

    def leave(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def _descendants(pid):
    """How many processes have it among their ancestors."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, to_see = 0, [pid]
    while to_see:
        here = children.get(to_see.pop(), [])
        found += len(here)
        to_see += here
    return found


class _Soak:
    def __init__(self, cluster, seed):
        self.cluster, self.rng = cluster, random.Random(seed)
        self.jobs = self.unfinished = self.failed = 0
        self.samples = []
        cluster.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
                         "value": 1000})

    def submit(self, api, resource, name, body):
        collection = f"{api}{_SPACE}{resource}"
        self.cluster.request("POST", collection, {**body, "metadata": {"name": name}})
        return f"{collection}/{name}"

    def change(self, path, patch):
        self.cluster.request("PATCH", path, patch, "application/merge-patch+json")

    def wait(self, condition, seconds=_ROUND_S):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def ended(self, path):
        conditions = self.cluster.get(path).get("status", {}).get("conditions", [])
        return {one["type"] for one in conditions if one["status"] == "True"} & {"Succeeded", "Complete", "Failed"}

    def submit_round(self, number):
        """A round's jobs; those that are to end come back."""
        def seconds(least, most):
            return round(self.rng.uniform(least, most), 1)
        name = f"round-{number}-".__add__
        ending = [
            self.submit(_SWELL, "trainingjobs", name("wide"), _training_job(_GPUS, 2, seconds(3, 6))),
            self.submit(_SWELL, "trainingjobs", name("rigid"), _training_job(4, 4, seconds(2, 4))),
            self.submit(_TRAINING, "pytorchjobs", name("ddp-0"), _pytorch_job(2, seconds(1, 4))),
            self.submit(_TRAINING, "pytorchjobs", name("ddp-1"), _pytorch_job(2, seconds(1, 4))),
            self.submit(_BATCH, "jobs", name("batch"), _batch_job(f"sleep {seconds(0.1, 1)}", 4)),
            self.submit(_BATCH, "jobs", name("flaky"), _batch_job("test $(($$ % 3)) != 0", 2)),
        ]
        self.doomed = self.submit(_TRAINING, "pytorchjobs", name("doomed"), _pytorch_job(3, 3600))
        self.web = self.submit(_APPS, "deployments", name("web"), _deployment(3))
        time.sleep(seconds(1, 3))
        ending.append(self.submit(_TRAINING, "pytorchjobs", name("urgent"), _pytorch_job(7, seconds(1, 3), "urgent")))
        return ending

    def disturb(self, rigid):
        """What people do to their jobs while they run."""
        self.change(self.web, {"spec": {"replicas": self.rng.randint(0, 5)}})
        self.change(rigid, {"spec": {"suspend": True}})
        time.sleep(self.rng.uniform(0.2, 1.5))
        self.change(rigid, {"spec": {"suspend": False}})
        self.cluster.request("DELETE", self.doomed)

    def round(self, number):
        guests = _Guests(self.cluster, self.rng)
        ending = self.submit_round(number)
        self.disturb(ending[1])
        self.jobs += len(ending)
        if not self.wait(lambda: all(self.ended(path) for path in ending)):
            late = [path for path in ending if not self.ended(path)]
            self.unfinished += len(late)
            print(f"  round {number}: did not end within {_ROUND_S} s: {' '.join(late)}", flush=True)
        # A flaky job may fail for good; no other may.
        failed = [path for path in ending if "Failed" in self.ended(path) and "flaky" not in path]
        self.failed += len(failed)
        if failed:
            print(f"  round {number}: failed: {' '.join(failed)}", flush=True)
        guests.leave()
        for path in [*ending, self.web]:
            self.cluster.request("DELETE", f"{path}?propagationPolicy=Foreground")
        pods = f"/api/v1{_SPACE}pods"
        if not self.wait(lambda: not self.cluster.get(pods)["items"], 60):
            raise SystemExit(f"round {number} left pods behind; see {self.cluster.data}")
        self.cluster.request("DELETE", f"/api/v1{_SPACE}events")
        self.samples.append(self.at_rest())

    def at_rest(self):
        """A look at the cluster when it has put away what the round left: when it stays the same for some seconds."""
        looks = []
        for _ in range(30):
            time.sleep(1)
            looks.append(self.look())
            kept = [{**look, "memory, MB": 0} for look in looks[-4:]]
            if len(kept) == 4 and all(one == kept[0] for one in kept):
                break
        return looks[-1]

    def look(self):
        process = Path("/proc") / str(self.cluster.process.pid)
        return {"memory, MB": self.cluster.rss_mb(),
                "descriptors": len(os.listdir(process / "fd")),
                "processes": _descendants(self.cluster.process.pid),
                "mounts": (process / "mountinfo").read_text().count(str(self.cluster.data)),
                "files": sum(not _EARLIER_PART.fullmatch(f"{at}/{name}")
                             for at, _, names in os.walk(self.cluster.data) for name in names)}


def _growth(samples, what):
    """The least of the last quarter of the samples above the least of the quarter before it."""
    quarter = max(1, len(samples) // 4)
    before, last = samples[-2 * quarter:-quarter] or samples, samples[-quarter:]
    return min(one[what] for one in last) - min(one[what] for one in before)


def run(report, new_cluster, minutes):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"soak: seed {seed}, {minutes:g} minutes", flush=True)
    cluster = new_cluster("--nodes", "3", "--gpus-per-node", str(_GPUS // 3), "--cpus", "32", "--memory", "64Gi")
    try:
        soak, end = _Soak(cluster, seed), time.monotonic() + 60 * minutes
        while not soak.samples or time.monotonic() < end:
            soak.round(len(soak.samples))
    finally:
        cluster.stop()
    note = f"of {soak.jobs} in {len(soak.samples)} rounds, {minutes:g} minutes, seed {seed}"
    report.add("soak: jobs that did not end", soak.unfinished, "", 0, note=note)
    report.add("soak: jobs that failed", soak.failed, "", 0, note=note)
    for what in soak.samples[0]:
        name, _, unit = what.partition(", ")
        if name == "memory" and minutes < _MEMORY_MINUTES:
            print(f"       soak: memory is judged from {_MEMORY_MINUTES} minutes on")
            continue
        report.add(f"soak: growth of {name}", _growth(soak.samples, what), unit, 1 if unit else 0,
                   note=f"at the end {soak.samples[-1][what]:.4g}; lows of the last two quarters")
    report.add_series("soak", soak.samples)
