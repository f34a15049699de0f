"""What the tests share in which something dies, is cut off or is in the way: jobs that only pretend, replicas of the
controller, ways to the API server that can be cut, and a recorder that checks every state of every pod.
"""

import http.client
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.parse

from support import ROOT, SWELL, Failure, check, create, kubectl, note, objects

sys.path.insert(0, str(ROOT / "tests" / "conformance"))

from conformance.client import Server, load_kubeconfig  # noqa: E402

# What is promised, and what a machine that has too much to do may take.
TAKEOVER_SECONDS, PATIENCE_SECONDS = 5, 15
# A gang may be placed in part for as long as a takeover and the cycle after it take.
HALF_PLACED_SECONDS = 30
# Without one more job that ends.
STUCK_SECONDS = 180
ENDS = ("Succeeded", "Failed")


def seeded():
    seed = int(os.environ.get("SWELL_SEED", time.time_ns() % 100000))
    note(f"SWELL_SEED={seed}")
    return random.Random(seed)


def check_quietly(what, holds, detail=""):
    if not holds:
        raise Failure(f"{what}: {detail}")


def check_takeover(what, seconds):
    late = "" if seconds <= TAKEOVER_SECONDS else f", more than the {TAKEOVER_SECONDS} s promised"
    check(f"{what}: the other leads after {seconds:.2f} s{late}", seconds <= PATIENCE_SECONDS)


def lease():
    return json.loads(kubectl("get", "lease", "swell-controller", "-n", "swell-system", "-o", "json"))["spec"]


class Jobs:
    """PyTorchJobs of one to four members with one or two GPUs each; `pod` makes a member's template."""

    def __init__(self, namespace, rng, pod):
        self.namespace, self.rng, self.pod = namespace, rng, pod
        self.sizes = {}

    def submit(self, count, policy="Never"):
        made = []
        for _ in range(count):
            name, workers = f"job-{len(self.sizes)}", self.rng.choice((0, 0, 1, 2, 3))
            self.sizes[name] = 1 + workers
            replica = {"restartPolicy": policy, "template": self.pod(self.rng, name)}
            replicas = {"Master": {"replicas": 1, **replica}}
            if workers:
                replicas["Worker"] = {"replicas": workers, **replica}
            made.append({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
                         "metadata": {"name": name, "namespace": self.namespace},
                         "spec": {"pytorchReplicaSpecs": replicas}})
        create(*made)

    def ended(self):
        """How many ended in which way; None where the API server does not tell of all."""
        ended = dict.fromkeys((*ENDS, "other"), 0)
        jobs = objects("pytorchjobs", "-n", self.namespace)
        for job in jobs:
            true = {c["type"] for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"}
            ended[next((end for end in ENDS if end in true), "other")] += 1
        return ended if len(jobs) == len(self.sizes) else None

    def running(self):
        """Whether some have not ended yet, as far as one knows."""
        ended = self.ended()
        return not ended or ended["other"] > 0

    def check_all_succeed(self, recorder):
        """Waits as long as jobs keep ending, however slow this machine is."""
        begin = since = time.monotonic()
        left = len(self.sizes)
        while not (now := self.ended()) or now["other"]:
            recorder.check()
            if now and now["other"] < left:
                left, since = now["other"], time.monotonic()
            check_quietly("jobs go on ending", time.monotonic() - since < STUCK_SECONDS, str(now))
            time.sleep(0.5)
        note(f"every job has ended: after {time.monotonic() - begin:.1f} s")
        check(f"all {len(self.sizes)} succeeded", now["Succeeded"] == len(self.sizes), str(now))
        refused = [pod["metadata"]["name"] for pod in objects("pods", "-n", self.namespace)
                   if pod["status"].get("reason", "").startswith("OutOf")]
        check("no node had to refuse a pod", not refused, str(refused))


def pretending(rng, _):
    """The template of a pod that pretends to work for some seconds."""
    return {"metadata": {"annotations": {"swell.dev/run-seconds": str(rng.randrange(4, 13))}},
            "spec": {"terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "pytorch", "image": "busybox",
                                     "resources": {"limits": {"nvidia.com/gpu": str(rng.choice((1, 1, 2)))}}}]}}


class Pod:
    def __init__(self, pod):
        self.name = pod["metadata"]["name"]
        self.uid = pod["metadata"]["uid"]
        self.node = pod["spec"].get("nodeName", "")
        self.ended = pod["status"].get("phase") in ENDS
        self.group = pod["metadata"].get("labels", {}).get("swell.dev/pod-group", "")
        devices = pod["metadata"].get("annotations", {}).get("swell.dev/gpu-devices", "")
        self.devices = [device for device in devices.split(",") if device]
        self.gpus = sum(int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))
                        for container in pod["spec"]["containers"])


class StateRecorder:
    """Hears every state of every pod of a namespace, in their order, and keeps what must never be: a GPU that two hold,
    a node with more than it has, a pod that moves or lives again; and for how long gangs were placed in part.

    A context: what it has heard until then is checked when the block ends well. `sizes` are those of the gangs.
    """

    def __init__(self, namespace, gpus, sizes=None):
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.gpus = gpus
        self.sizes = {} if sizes is None else sizes
        self.server = Server(os.environ["KUBECONFIG"])
        self.pods, self.half, self.longest = {}, {}, 0.0
        self.wrong, self.bound, self.states, self.gone, self.version = [], 0, 0, 0, None
        self.leaving = threading.Event()
        self.thread = threading.Thread(target=self.hear)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.leaving.set()
        self.thread.join()
        if failure[0] is not None:
            return
        self.check()
        check(f"in {self.states} states of pods and {self.bound} bindings no GPU was held twice", self.bound > 0)
        note(f"{self.gone} pods were made anew")
        if self.sizes:
            note(f"no gang was placed in part for more than {self.longest:.1f} s")

    def check(self):
        check_quietly("what must never be", not self.wrong, "\n".join(self.wrong[:5]))

    def hear(self):
        while not self.leaving.is_set():
            try:
                if self.version is None:
                    self.read()
                self.watch()
            except (OSError, ValueError, http.client.HTTPException):
                self.leaving.wait(0.1)  # it is away; what happens meanwhile is told by the next watch

    def read(self):
        answer = self.server.send("GET", self.path)
        if answer.status != 200:
            raise ValueError(answer.text())
        pods = answer.json()
        gone = set(self.pods) - {pod["metadata"]["uid"] for pod in pods["items"]}
        for uid in gone:
            self.forget(uid)
        for pod in pods["items"]:
            self.take(Pod(pod))
        self.version = pods["metadata"]["resourceVersion"]

    def watch(self):
        """For some seconds, so that it ends when the test does."""
        connection, response = self.server.stream(
            f"{self.path}?watch=1&timeoutSeconds=3&allowWatchBookmarks=1&resourceVersion={self.version}")
        try:
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.version = None
                    return
                self.version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self.forget(event["object"]["metadata"]["uid"])
                elif event["type"] != "BOOKMARK":
                    self.take(Pod(event["object"]))
        finally:
            connection.close()

    def take(self, pod):
        self.states += 1
        before = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if before and before.ended and not pod.ended:
            self.wrong.append(f"{pod.name} lives again")
        if before and before.node and before.node != pod.node:
            self.wrong.append(f"{pod.name} went from {before.node} to {pod.node}")
        if pod.node and not (before and before.node):
            self.bound += 1
            self.look_at_node(pod.node)
        self.look_at_gang(pod.group)

    def forget(self, uid):
        pod = self.pods.pop(uid, None)
        if pod:
            self.gone += 1
            self.look_at_gang(pod.group)

    def look_at_node(self, node):
        here = [pod for pod in self.pods.values() if pod.node == node and not pod.ended]
        if sum(pod.gpus for pod in here) > self.gpus:
            self.wrong.append(f"{node} has {self.gpus} GPUs for {[(pod.name, pod.gpus) for pod in here]}")
        holders = {}
        for pod in here:
            for device in pod.devices:
                if holders.setdefault(device, pod.name) != pod.name:
                    self.wrong.append(f"GPU {device} of {node} is held by {holders[device]} and {pod.name}")

    def look_at_gang(self, group):
        if group not in self.sizes:
            return
        placed = [pod for pod in self.pods.values() if pod.group == group and pod.node]
        if len(placed) >= self.sizes[group] or all(pod.ended for pod in placed):
            self.half.pop(group, None)
        else:
            self.half.setdefault(group, time.monotonic())
        for one, since in self.half.items():
            span = time.monotonic() - since
            self.longest = max(self.longest, span)
            if span > HALF_PLACED_SECONDS:
                self.wrong.append(f"{one} is placed in part since {span:.0f} s")


class Replicas:
    """Two replicas of the controller; whichever is gone is started again. Each has a `way` to the API server."""

    def __init__(self, bench, ways=(None, None)):
        self.bench, self.started = bench, 0
        self.leader = self.start(ways[0], "Scheduling for")
        self.standby = self.start(ways[1], "Standing by for")

    def start(self, way, ready):
        self.started += 1
        one = self.bench.start(f"controller-{self.started}", SWELL, "controller", ready=ready,
                               env=way.place if way else None)
        one.way = way
        return one

    def lose_leader(self, how, again=True):
        """Does to the leader what it is told, and waits for the other to lead. The seconds it took, and who led before:
        another is started in its place (`again`), or it is the one that stands by."""
        marks = self.standby.text().count("Scheduling for")
        begin = time.monotonic()
        how(self.leader)
        while self.standby.text().count("Scheduling for") == marks:
            if time.monotonic() - begin > 30:
                break
            time.sleep(0.01)
        seconds = time.monotonic() - begin
        lost, self.leader = self.leader, self.standby
        self.standby = self.start(lost.way, "Standing by for") if again else lost
        return seconds, lost


class Way:
    """A way to the API server that a test can cut and mend.

    `cut` is how: None, open; "silent": what is on its way waits until it is mended, as in a network that loses packets;
    "answers": the same, but only on the way back; "refused": connections end and none are made; "slow": each piece
    takes SLOW_SECONDS.
    """

    CUTS = ("silent", "answers", "refused", "slow")
    SLOW_SECONDS = 0.2

    def __init__(self, bench, name):
        config = load_kubeconfig(os.environ["KUBECONFIG"])
        cluster = config["clusters"][0]["cluster"]
        to = urllib.parse.urlsplit(cluster["server"])
        self.target = (to.hostname, to.port)
        self.name, self.cut = name, None
        self.changed = threading.Condition()
        self.connections = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        cluster["server"] = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        file = bench.work / f"{name}.kubeconfig"
        file.write_text(json.dumps(config))
        self.place = {"KUBECONFIG": str(file)}
        threading.Thread(target=self.accept, daemon=True).start()

    def set(self, cut):
        with self.changed:
            self.cut = cut
            if cut == "refused":
                for one in self.connections:
                    end(one)
            self.changed.notify_all()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            if self.cut == "refused":
                near.close()
                continue
            try:
                far = socket.create_connection(self.target)
            except OSError:
                near.close()
                continue
            with self.changed:
                self.connections |= {near, far}
            for pair, back in (((near, far), False), ((far, near), True)):
                threading.Thread(target=self.carry, args=(*pair, back), daemon=True).start()

    def waits(self, back):
        return self.cut == "silent" or (self.cut == "answers" and back)

    def carry(self, source, sink, back):
        try:
            while data := source.recv(1 << 16):
                if self.cut == "slow":
                    time.sleep(self.SLOW_SECONDS)
                with self.changed:
                    self.changed.wait_for(lambda: not self.waits(back))
                sink.sendall(data)
        except OSError:
            pass
        with self.changed:
            self.changed.wait_for(lambda: not self.waits(back))
            self.connections -= {source, sink}
        end(source)
        end(sink)


def end(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it ended by itself
