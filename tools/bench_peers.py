"""Swell and the schedulers people know, one after the other on a Kubernetes of today; for tools/bench --only peers.

Each gets a new control plane, the same simulated nodes and the same pods, and gangs as it knows them. docs/peers.md has
figures, and says what is not the same in all.
"""

import json
import math
import os
import ssl
import tempfile
import threading
import time
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from bench_cluster import cpu_seconds
from bench_kubernetes import Kubernetes, kubernetes_programs, wait
from bench_peer_systems import GPUS, JOBS, PODS, Swell, all_systems, pod

LIMIT = 900  # seconds for one load
GATES = "GenericWorkload=true"
VERSION = "1.37.2"


@dataclass
class Size:
    """How much is placed: GPUs for every pod, gangs of these sizes, and a gang that takes the place of others."""
    nodes: int
    gangs: tuple
    reclaiming: int

    @property
    def pods(self):
        return self.nodes * GPUS


QUICK = Size(nodes=50, gangs=(8, 64), reclaiming=100)
FULL = Size(nodes=500, gangs=(8, 64, 1_000), reclaiming=1_000)


# --- Where they run ------------------------------------------------------------------------------


class Plane(Kubernetes):
    """A control plane with simulated nodes, whose agent ends and runs pods for all systems alike."""

    flags = ("--manager-qps", "5000", "--feature-gates", GATES, "--runtime-config", "scheduling.k8s.io/v1beta1=true")

    def __init__(self, nodes):
        super().__init__(nodes, GPUS, *self.flags,
                         environment={} if os.environ.get("KUBE_BIN_DIR") else {"KUBE_VERSION": VERSION})
        self.namespace("bench")
        self.loads = 0  # that were placed
        for name, value in (("low", 10), ("high", 20)):
            self.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                         "value": value})
        access = json.loads(self.kubectl("config", "view", "--minify", "-o", "json"))
        self.address = access["clusters"][0]["cluster"]["server"].split("//", 1)[1]
        self.context = ssl.create_default_context(cafile=f"{self.run_dir}/pki/ca.crt")
        self.context.load_cert_chain(f"{self.run_dir}/pki/admin.crt", f"{self.run_dir}/pki/admin.key")

    def submit(self, requests):
        """The groups first, then their pods."""
        for part in ([one for one in requests if one[0] != PODS], [one for one in requests if one[0] == PODS]):
            if part:
                self.send(part)

    def send(self, requests):
        """Creates the objects in this order, from 16 connections."""
        with tempfile.NamedTemporaryFile("w", dir=self.run_dir, suffix=".objects") as file:
            file.writelines(f"{path} {json.dumps(thing)}\n" for path, thing in requests)
            file.flush()
            figures = self.load("send", len(requests), 16, file.name)
        if figures.get("errors"):
            raise SystemExit(f"objects were refused: {figures.get('first_error')}")

    def api_pid(self):
        return int(Path(f"{self.run_dir}/kube-apiserver.pid").read_text())

    def clear(self, peer):
        """Deletes all pods, who makes them, and their groups, and waits until they are gone."""
        paths = [path for path in (JOBS, PODS, peer.groups) if path]
        for path in paths:
            self._delete_all(path)
        # Groups of Kubernetes keep their names until their pods are gone.
        wait(lambda: not any(self._names(path) for path in paths), lambda: "deleted objects stay", seconds=300)

    def _names(self, path):
        code, text = self._request(self._connection(), "GET", path)
        return [one["metadata"]["name"] for one in json.loads(text)["items"] or []] if code == 200 else []

    def _delete_all(self, path):
        """From 16 connections: kube-apiserver deletes a collection one by one, and gives up after a minute."""
        names = iter(self._names(path))
        turn = threading.Lock()

        def work():
            connection = self._connection()
            while True:
                with turn:
                    name = next(names, None)
                if name is None:
                    return
                self._request(connection, "DELETE", f"{path}/{name}?gracePeriodSeconds=0&propagationPolicy=Background")

        workers = [threading.Thread(target=work) for _ in range(16)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _connection(self):
        return HTTPSConnection(self.address, context=self.context, timeout=60)

    def _request(self, connection, method, path):
        accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}
        connection.request(method, path, headers=accept)
        answer = connection.getresponse()
        return answer.status, answer.read()


class Watch:
    """Follows pods by a watch of their metadata: when each came that the query lets through.

    kube-apiserver ends watches that fall behind, as one may on busy cores: another begins with what is there by then.
    """

    ENDS_MAX = 20

    def __init__(self, plane, query, tells):
        """`tells`: whether the metadata of a pod counts."""
        self.times, self.tells, self.error, self.closed = {}, tells, None, False
        self.plane, self.path = plane, f"{PODS}?watch=1&resourceVersion=0&timeoutSeconds=3600{query}"
        self._open()
        threading.Thread(target=self._follow, daemon=True).start()

    def _open(self):
        self.connection = HTTPSConnection(self.plane.address, context=self.plane.context, timeout=LIMIT)
        accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
        self.connection.request("GET", self.path, headers=accept)
        self.answer = self.connection.getresponse()

    def _lines(self):
        text = b""
        while data := self.answer.read1(65536):
            *lines, text = (text + data).split(b"\n")
            yield from lines

    def _follow(self):
        try:
            for _ in range(self.ENDS_MAX):
                self._read()
                if self.error or self.closed:
                    return
                self._open()
            self.error = f"it ended {self.ENDS_MAX} times"
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            if not self.closed:
                self.error = repr(error)

    def _read(self):
        for line in self._lines():
            event = json.loads(line)
            metadata = event["object"].get("metadata", {})
            if event["type"] == "ERROR":
                self.error = event["object"].get("message")
                return
            if event["type"] != "DELETED" and self.tells(metadata):
                self.times.setdefault(metadata["name"], time.monotonic())

    def close(self):
        self.closed = True
        self.connection.close()

    def until(self, count, begin):
        """Waits for so many; returns the seconds from `begin` to the last that came."""
        while len(self.times) < count and time.monotonic() < begin + LIMIT:
            if self.error:
                raise SystemExit(f"the watch of pods failed: {self.error}")
            time.sleep(0.02)
        self.close()
        return max(self.times.values(), default=math.inf) - begin


def bound(plane, prefix=""):
    return Watch(plane, "&fieldSelector=spec.nodeName%21%3D", lambda metadata: metadata["name"].startswith(prefix))


def ending(plane, prefix):
    return Watch(plane, "", lambda metadata: metadata["name"].startswith(prefix) and "deletionTimestamp" in metadata)


def peak_mb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().split("\n"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


def gang_of(pod_name):
    return pod_name.rsplit("-", 1)[0]


# --- The loads -----------------------------------------------------------------------------------


@dataclass
class Figures:
    seconds: float
    pods: int
    wanted: int
    partial: int = 0  # gangs of which some pods are bound, and not all
    idle: int = 0  # pods that were preempted beyond those whose place was needed
    cpu: float = 0.0
    api_cpu: float = 0.0

    @property
    def whole(self):
        return self.pods >= self.wanted and self.partial == 0


class Clock:
    """Processor time of a system and of kube-apiserver, from here on."""

    def __init__(self, plane, pids):
        self.plane, self.pids = plane, pids
        self.before = self._read()

    def _read(self):
        return sum(map(cpu_seconds, self.pids)), cpu_seconds(self.plane.api_pid())

    def put(self, figures):
        figures.cpu, figures.api_cpu = (now - then for now, then in zip(self._read(), self.before))
        return figures


def place(plane, peer, pids, sizes):
    """Gangs of these sizes, all at once; size 1 is a pod without a gang.

    No name comes twice in a control plane: a system may keep what it wrote of a pod beyond the pod's end.
    """
    plane.loads += 1
    names = [f"bench-{plane.loads}-{number}" for number in range(len(sizes))]
    requests = []
    for name, size in zip(names, sizes):
        requests += peer.single(f"{name}-0") if size == 1 else peer.gang(name, size, "low")
    watch, clock = bound(plane, f"bench-{plane.loads}-"), Clock(plane, pids)
    begin = time.monotonic()
    plane.submit(requests)
    seconds = watch.until(sum(sizes), begin)
    members = {}
    for name in watch.times:
        members[gang_of(name)] = members.get(gang_of(name), 0) + 1
    partial = sum(1 for name, size in zip(names, sizes) if 0 < members.get(name, 0) < size)
    return clock.put(Figures(seconds, len(watch.times), sum(sizes), partial))


def reclaim(plane, peer, pids, size):
    """A cluster full of gangs of 8, and one that is worth more."""
    count = size.pods // 8
    place(plane, peer, pids, [8] * count)
    running = ("get", "pods", "-n", "bench", "--field-selector=status.phase=Running", "-o", "name")
    wait(lambda: plane.kubectl(*running).count("\n") >= count * 8, lambda: "the pods that fill the cluster do not run",
         seconds=300)
    gone, come, clock = ending(plane, "bench-"), bound(plane, "high-"), Clock(plane, pids)
    begin = time.monotonic()
    plane.submit(peer.gang("high", size.reclaiming, "high"))
    seconds = come.until(size.reclaiming, begin)
    gone.close()
    # Pods that were free beside the full gangs need no victim; gangs are preempted whole.
    needed = math.ceil(max(0, size.reclaiming - (size.pods - count * 8)) / 8) * 8
    return clock.put(Figures(seconds, len(come.times), size.reclaiming, int(0 < len(come.times) < size.reclaiming),
                             max(0, len(gone.times) - needed)))


def bare_placing(plane, size):
    """What a client alone takes to create and to bind as many pods, one after the other."""
    creations = [(PODS, pod(f"bench-{i}", "nobody", {})) for i in range(size.pods)]
    begin = time.monotonic()
    plane.send(creations)
    plane.load("bind", size.pods, 16, size.nodes)
    return time.monotonic() - begin


def bare_reclaiming(plane, size):
    """What a client alone takes to delete pods and to create and bind as many others."""
    others = [(PODS, pod(f"high-{i}", "nobody", {})) for i in range(size.reclaiming)]
    begin = time.monotonic()
    plane.load("delete", size.reclaiming, 16)
    plane.send(others)
    bindings = [(f"{PODS}/high-{i}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"high-{i}"},
                                              "target": {"apiVersion": "v1", "kind": "Node",
                                                         "name": f"node-{1 + i % size.nodes}"}})
                for i in range(size.reclaiming)]
    plane.send(bindings)
    return time.monotonic() - begin


def measure_bare(size):
    plane = Plane(size.nodes)
    try:
        placing = bare_placing(plane, size)
        return placing, bare_reclaiming(plane, size)
    finally:
        plane.stop()


def measure(peer, size):
    """All loads of one system, on a control plane of its own."""
    plane = Plane(size.nodes)
    figures = {}
    try:
        version, pids = peer.version(plane), peer.start(plane)

        def note(load, one):
            figures[load] = one
            print(row(f"{peer.name} {version}", load, one, sum(map(peak_mb, pids))), flush=True)

        try:
            for gang in (1, *size.gangs):
                note(f"gangs of {gang}" if gang > 1 else "single pods",
                     place(plane, peer, pids, [gang] * (size.pods // gang)))
                plane.clear(peer)
            note("reclaim", reclaim(plane, peer, pids, size))
            memory = sum(map(peak_mb, pids))
        finally:
            peer.stop()
    finally:
        plane.stop()
    return version, figures, memory


# --- The report ----------------------------------------------------------------------------------


HEADER = (f"  {'':28}{'load':16}{'seconds':>9}{'pods/s':>9}{'own CPU s':>11}{'API CPU s':>11}{'partial':>9}"
          f"{'in vain':>9}{'peak MB':>9}")


def row(name, load, one, memory):
    took = f"{one.seconds:9.1f}" if one.pods >= one.wanted else f"{one.pods:>4}/{one.wanted}"
    return (f"  {name:28}{load:16}{took}{one.pods / one.seconds:9.0f}{one.cpu:11.1f}{one.api_cpu:11.1f}{one.partial:9}"
            f"{one.idle:9}{memory:9.0f}")


def judge(report, size, bare, results):
    """Swell's figures against the targets, with the best of the others in the notes."""
    (placing, reclaiming), (_, ours, memory) = bare, results[Swell.name]
    others = {name: one for name, one in results.items() if name != Swell.name}

    def best(load, value):
        known = {name: value(one[1][load]) for name, one in others.items() if one[1][load].whole}
        name = min(known, key=known.get, default=None)
        return (name, known[name]) if name else ("nobody", math.inf)

    flat, gone = ours["single pods"], ours["reclaim"]
    name, seconds = best("single pods", lambda one: one.seconds)
    report.add(f"{size.pods:,} single pods: of a bare client's rate", 100 * placing / flat.seconds, "%", 95, True,
               f"{flat.seconds:.1f} s; bare client {placing:.1f} s, {name} {seconds:.1f} s")
    for gang in size.gangs:
        load = f"gangs of {gang}"
        name, seconds = best(load, lambda one: one.seconds)
        report.add(f"{load}: time beside single pods", ours[load].seconds / flat.seconds, "x", 1.1,
                   note=f"{ours[load].seconds:.1f} s; {name} {seconds:.1f} s")
    name, seconds = best("reclaim", lambda one: one.seconds)
    report.add(f"a gang of {size.reclaiming:,} takes others' places: time", gone.seconds / reclaiming, "x", 1.3,
               note=f"{gone.seconds:.1f} s; a client that deletes, creates and binds as many {reclaiming:.1f} s")
    if math.isfinite(seconds):
        report.add("  faster than the best peer", seconds / gone.seconds, "x", 5, True, f"{name} {seconds:.1f} s")
    if others:
        name, seconds = best("reclaim", lambda one: one.cpu)
        report.add("  its processor time beside the best peer", gone.cpu / seconds, "x", 0.2,
                   note=f"{gone.cpu:.1f} s; {name} {seconds:.1f} s")
        least = min(others, key=lambda name: others[name][2])
        report.add("peak memory beside the best peer", memory / others[least][2], "x", 0.2,
                   note=f"{memory:.0f} MB; {least} {others[least][2]:.0f} MB")
    report.add("gangs that were placed in part, by Swell", sum(one.partial for one in ours.values()), "", 0)
    report.add("pods that Swell preempted in vain", gone.idle, "", 0)


def run(report, quick):
    if not kubernetes_programs(VERSION):
        return
    size = QUICK if quick else FULL
    bare = measure_bare(size)
    results = {}
    print(HEADER, flush=True)
    for peer in all_systems():
        if peer.missing:
            print(f"  ({peer.name} is left out: {peer.missing})")
            continue
        results[peer.name] = measure(peer, size)
    report.add_series("peers", {name: {"version": version, "peak_mb": memory,
                                       "loads": {load: vars(one) for load, one in figures.items()}}
                                for name, (version, figures, memory) in results.items()})
    judge(report, size, bare, results)
