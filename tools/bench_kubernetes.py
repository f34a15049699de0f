"""Figures beside and on a real Kubernetes control plane; used by tools/bench."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench_cluster import BIN, LOAD, Cluster, ControlPlane, cpu_seconds, rss_mb

JOBS = "/apis/kubeflow.org/v1/namespaces/bench/pytorchjobs"
PODS = "/api/v1/namespaces/bench/pods"


class Kubernetes(ControlPlane):
    """With simulated nodes of `swell agent`, which sleeps while schedulers are measured."""

    def __init__(self, nodes, gpus, *flags, environment=()):
        super().__init__(*flags, environment=environment)
        self.tell("install")
        self.agent = self.start("agent", "--nodes", nodes, "--gpus-per-node", gpus, "--cpus", 32, "--memory", "256Gi",
                                "--runtime", "simulated", ready="Registered with")
        self.nodes = nodes

    def start(self, *words, ready):
        log = tempfile.NamedTemporaryFile("w+", dir=self.run_dir, prefix=words[0], delete=False)
        process = subprocess.Popen([BIN / "swell", *map(str, words)], env=self.environment, stdout=log, stderr=log)
        process.text = Path(log.name).read_text
        wait(lambda: ready in process.text(), lambda: f"swell {words[0]} did not get ready:\n{process.text()[-2000:]}",
             lambda: process.poll() is None)
        return process

    def pods(self, count, gpus, scheduler):
        """Pods that wait for a scheduler."""
        self.namespace("bench")
        self.load("pods", count, 16, gpus, scheduler)
        self.agent.send_signal(signal.SIGSTOP)

    def clear(self):
        # All at once and without the agent, which would only begin to run them; the API server gives up after a minute.
        while "bench-" in self.kubectl("get", "--raw", "/api/v1/namespaces/bench/pods?limit=1"):
            self.kubectl("delete", "--raw", "/api/v1/namespaces/bench/pods?gracePeriodSeconds=0", check=False)
        self.agent.send_signal(signal.SIGCONT)

    def swell(self, count, gpus):
        self.pods(count, gpus, "swell")
        watch = self.told("bound", count)
        controller = self.start("controller", "--log-level", "error", ready="Scheduling for")
        figures = json.loads(watch.communicate(timeout=600)[0])
        figures["cpu_ms_per_pod"] = cpu_seconds(controller.pid) * 1e3 / count
        figures["rss_mb"] = rss_mb(controller.pid)
        end(controller)
        self.clear()
        return figures

    def stock(self, count, gpus):
        self.pods(count, gpus, "default-scheduler")
        watch = self.told("bound", count)
        self.cluster("up", "--scheduler", "--scheduler-qps", "5000")
        figures = json.loads(watch.communicate(timeout=900)[0])
        pid = int(Path(f"{self.run_dir}/kube-scheduler.pid").read_text())
        figures["cpu_ms_per_pod"] = cpu_seconds(pid) * 1e3 / count
        figures["rss_mb"] = rss_mb(pid)
        self.cluster("kill", "kube-scheduler")
        self.clear()
        return figures

    def bare(self, count):
        self.pods(count, 0, "nobody")
        figures = self.load("bind", count, 32, self.nodes)
        self.clear()
        return figures

    def crowd(self, count):
        """What the scheduler needs where so many pods are bound, once it has placed one more. The last of a cluster."""
        self.pods(count, 0, "nobody")
        self.load("bind", count, 32, self.nodes)
        controller = self.start("controller", "--log-level", "error", ready="Scheduling for")
        self.kubectl("run", "one-more", "--image=busybox", "-n", "bench",
                     '--overrides={"spec": {"schedulerName": "swell", "tolerations": [{"operator": "Exists"}]}}')
        while not self.kubectl("get", "pod", "one-more", "-n", "bench", "-o", "jsonpath={.spec.nodeName}"):
            time.sleep(0.5)
        megabytes = rss_mb(controller.pid)
        end(controller)
        return megabytes

    def told(self, what, count):
        """Counts the pods that a watch reports, while the rest runs."""
        return subprocess.Popen([LOAD, self.kubeconfig, what, str(count), "900"], text=True, stdout=subprocess.PIPE)

    def controller(self, ready="Scheduling for"):
        return self.start("controller", "--metrics-address", "none", ready=ready)

    def jobs(self, priority, count, pods):
        """Gangs of pods with one GPU each, which pretend to run for good."""
        container = {"name": "pytorch", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        template = {"spec": {"priorityClassName": priority, "containers": [container]}}
        roles = {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template},
                 "Worker": {"replicas": pods - 1, "restartPolicy": "OnFailure", "template": template}}
        self.create(*({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
                       "metadata": {"name": f"{priority}-{i}", "namespace": "bench"},
                       "spec": {"pytorchReplicaSpecs": roles}} for i in range(count)))

    def create(self, *items):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        subprocess.run(["kubectl", "create", "-f", "-"], env=self.environment, input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def wait_running(self, count, *which):
        found = 0

        def there():
            nonlocal found
            found = self.kubectl("get", "pods", "-n", "bench", "--field-selector=status.phase=Running", "-o", "name",
                                 *which).count("\n")
            return found >= count
        wait(there, lambda: f"{found} of {count} pods run", seconds=300)

    def deleted(self, count, gangs):
        """The API server's own rate: running gangs, deleted by a client that does nothing else, told by a watch."""
        self.create(*({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                       "value": value} for name, value in {"low": 10, "high": 20}.items()))
        controller = self.controller()
        self.jobs("low", gangs, count // gangs)
        self.wait_running(count)
        end(controller)
        ending = self.told("ending", count)
        self.load("delete", count, 32)
        return json.loads(ending.communicate(timeout=300)[0])

    def preempted(self, count):
        """The same gangs, back again, make room for one of their size together."""
        wait(lambda: not self.kubectl("get", "pods", "-n", "bench", "-o", "name"), lambda: "deleted pods stay")
        controller = self.controller()
        self.wait_running(count)
        ending = self.told("ending", count)
        begin = time.monotonic()
        self.jobs("high", 1, count)
        figures = json.loads(ending.communicate(timeout=300)[0])
        self.wait_running(count, "-l", "training.kubeflow.org/job-name=high-0")
        figures["whole"] = time.monotonic() - begin
        end(controller)
        return figures

    def stop(self):
        self.agent.send_signal(signal.SIGCONT)
        self.agent.terminate()
        self.agent.wait(30)
        super().stop()


def end(process):
    process.terminate()
    process.wait(30)


def wait(condition, why, alive=lambda: True, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if not alive() or time.monotonic() > end:
            raise SystemExit(why())
        time.sleep(0.05)


def kubernetes_programs(version=None):
    """Whether a control plane (of a version) is at hand, and a word when not; the benchmark builds none."""
    cache = os.environ.get("KUBE_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "swell", "kubernetes")
    places = [os.environ.get("KUBE_BIN_DIR", "")]
    if version:
        places += [] if places[0] else [f"{cache}-{version}/bin"]
    else:
        places += [f"{cache}/bin", *os.environ["PATH"].split(":")]
    if shutil.which("etcd") and any(os.access(f"{place}/kube-scheduler", os.X_OK) for place in places if place):
        return True
    of_version, flag = (f" of {version}", f" --version {version}") if version else ("", "")
    print(f"  (no Kubernetes programs{of_version}: left out; ./dev test kubernetes{flag} --programs builds them)")
    return False


def api_figures(server, quick):
    """What a server does with the same load."""
    seconds, many = (2, 5_000) if quick else (5, 50_000)
    for name in ("bench", "bench-small", "bench-watch", "bench-128"):
        server.namespace(name)
    server.load("fill", 1_000 if quick else 10_000, 16)
    figures = {"memory": server.rss_mb()}
    server.load("create", 1_000, 16, "bench-small")
    small, large = (f"/api/v1/namespaces/{name}/configmaps" for name in ("bench-small", "bench"))
    # Few clients wait for the disk, on both sides; many share what one fsync costs.
    figures["durable creates, 16 clients"] = server.load("create", many, 16)["per_second"]
    figures["durable creates, 128 clients"] = server.load("create", many, 128, "bench-128")["per_second"]
    figures["gets"] = server.load("get", seconds, 16, f"{large}/bench-7")["per_second"]
    for clients in (16, 128):
        figures[f"merge patches, {clients} clients"] = server.load("patch", seconds, clients, 1_000)["per_second"]
    figures["lists of 1,000 config maps"] = server.load("list", seconds, 4, small)["per_second"]
    figures[f"lists of {many:,} config maps"] = server.load("list", seconds, 4, large)["per_second"]
    for clients in (16, 128):
        figures[f"events to 200 watchers, {clients} writers"] = server.load("flood", 200, 500 if quick else 3_000,
                                                                            clients)["per_second"]
    figures["fan-out"] = server.load("watch", 200, 5 if quick else 20)["p50_ms"]
    return figures


def beside(report, quick):
    """The embedded server and kube-apiserver with etcd, one after the other on the same cores."""
    if not kubernetes_programs():
        return
    cluster = Cluster("--nodes", "1", "--runtime", "simulated")
    start = cluster.start_ms / 1e3
    try:
        ours = api_figures(cluster, quick)
    finally:
        cluster.stop()
    plane = ControlPlane()
    try:
        theirs = api_figures(plane, quick)
        restart = plane.restart_seconds()
    finally:
        plane.stop()
    for name in ours:
        if name in ("memory", "fan-out"):
            continue
        report.add(f"{name} per second", ours[name], "/s", round(5 * theirs[name], 1), True,
                   f"kube-apiserver + etcd {theirs[name]:.1f}/s: {ours[name] / theirs[name]:.1f} x")
    report.add("one write delivered to 200 watchers", ours["fan-out"], "ms", round(theirs["fan-out"], 2),
               note="median; the target is what kube-apiserver + etcd takes; the disk's fsync is in both")
    report.add(f"memory with {1_000 if quick else 10_000:,} pods", ours["memory"], "MB", round(theirs["memory"] / 5),
               note=f"kube-apiserver + etcd {theirs['memory']:.0f} MB")
    report.add("start-up", start, "s", round(restart / 20, 3),
               note=f"kube-apiserver + etcd, with state, {restart:.1f} s")


def bindings(report, quick):
    if not kubernetes_programs():
        return
    cases = [("500 nodes, CPU pods", 500, 0, 1_000 if quick else 5_000, 3)]
    if not quick:
        cases.append(("2,000 nodes, one-GPU pods", 2_000, 1, 5_000, 5))
    for what, nodes, gpus, count, times in cases:
        cluster = Kubernetes(nodes, 4)
        try:
            bare = cluster.bare(count)
            ours = cluster.swell(count, gpus)
            stock = cluster.stock(count, gpus)
            crowd = cluster.crowd(20_000) if nodes == 2_000 else None
        finally:
            cluster.stop()
        report.add(f"pods bound per second, {what}", ours["per_second"], "/s", round(times * stock["per_second"], 1),
                   True, f"stock scheduler {stock['per_second']:.0f}/s, its limit lifted")
        report.add(f"  of a bare client's bindings, {what}", 100 * ours["per_second"] / bare["per_second"], "%", 90,
                   True, f"bare client {bare['per_second']:.0f}/s")
        report.add(f"  scheduler's CPU per pod, {what}", ours["cpu_ms_per_pod"], "ms",
                   round(stock["cpu_ms_per_pod"] / 5, 3), note=f"stock {stock['cpu_ms_per_pod']:.2f} ms")
        report.add(f"  scheduler's memory, {what}", ours["rss_mb"], "MB", 150, note=f"stock {stock['rss_mb']:.0f} MB")
        if crowd is not None:
            report.add("  scheduler's memory, 2,000 nodes and 20,000 pods", crowd, "MB", 150)


def waiting_pod(index):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"waits-{index}", "namespace": "bench"},
            "spec": {"schedulerName": "swell", "containers": [{"name": "main", "image": "busybox"}]}}


def preemption(report, quick):
    """A gang of 1,000 takes the GPUs of ten gangs of 100."""
    if not kubernetes_programs():
        return
    count = 1_000
    cluster = Kubernetes(count // 4, 4)
    try:
        cluster.namespace("bench")
        bare = cluster.deleted(count, 10)
        ours = cluster.preempted(count)
    finally:
        cluster.stop()
    share = 100 * ours["per_second"] / bare["per_second"]
    report.add("preempting 1,000 pods for a gang of 1,000", share, "%", 90, True,
               f"{ours['per_second']:.0f} deletions/s; a client that only deletes {bare['per_second']:.0f}/s")
    report.add("  the gang is there → all of them leave", ours["since_added"], "s", round(bare["seconds"] / 0.9, 2),
               note=f"with the decision and its marks; the client's deletions alone {bare['seconds']:.1f} s; "
                    f"submitted → the gang runs {ours['whole']:.1f} s")


def takeover(report, quick):
    """The leader of two replicas is killed while a pod waits for it."""
    if not kubernetes_programs():
        return
    rounds = 3 if quick else 10
    cluster = Kubernetes(2, 4)
    seconds = []
    try:
        cluster.namespace("bench")
        leader, standby = cluster.controller(), cluster.controller("Standing by for")
        for i in range(rounds):
            leader.kill()
            begin = time.monotonic()
            cluster.create(waiting_pod(i))
            wait(lambda name=f"waits-{i}": cluster.kubectl("get", "pod", name, "-n", "bench", "-o",
                                                           "jsonpath={.spec.nodeName}"), lambda: "nobody took over")
            seconds.append(time.monotonic() - begin)
            leader.wait()
            leader, standby = standby, cluster.controller("Standing by for")
        end(standby)
        end(leader)
    finally:
        cluster.stop()
    report.add("takeover: leader killed → a new pod is bound", max(seconds), "s", 5,
               note=f"slowest of {rounds}, median {statistics.median(seconds):.1f} s")
