"""Figures of the pages: a browser on an embedded cluster, what ten tabs cost its server, and a year of curves.

The browser is Chromium without a window on the same cores; where it or Node cannot be had, its figures are left out.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench_cluster import BIN, LOAD, ROOT

WEB = ROOT / "web"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
GANG = 1_000
THREAD = "swell-pages"


def pages_seconds(pid):
    """Processor time of the pages' thread."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == THREAD:
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    raise SystemExit(f"{pid} has no thread {THREAD}")


def share_over(cluster, work):
    """(percent of a core that the pages' thread took, seconds) while `work` ran."""
    before, begin = pages_seconds(cluster.process.pid), time.monotonic()
    work()
    seconds = time.monotonic() - begin
    return 100 * (pages_seconds(cluster.process.pid) - before) / seconds, seconds


def gang(name, members, priority):
    pod = {"priorityClassName": priority, "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "pytorch", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    template = {"metadata": {"annotations": {"swell.dev/run-seconds": "3600"}}, "spec": pod}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": members, "template": template}}}}


def running(cluster, name, members):
    path = f"{JOBS}/{name}"
    end = time.monotonic() + 300
    while cluster.get(path).get("status", {}).get("replicaStatuses", {}).get("Worker", {}).get("active", 0) < members:
        if time.monotonic() > end:
            raise SystemExit(f"{name} does not run with {members} members")
        time.sleep(0.2)


def storm(cluster, name):
    """A gang of 1,000 takes the GPUs of ten gangs of 100."""
    cluster.connection = None  # it was idle while the browser measured, and the server has closed it
    for i in range(10):
        running(cluster, f"low-{i}", GANG // 10)

    def work():
        cluster.request("POST", JOBS, gang(name, GANG, "high"))
        running(cluster, name, GANG)

    figures = share_over(cluster, work)
    cluster.request("DELETE", f"{JOBS}/{name}")
    return figures


class Tabs:
    """Ten tabs of a browser, and what it measured before."""

    def __init__(self, cluster, rounds):
        told = subprocess.run([BIN / "swell", "ui", "--print", "--data-dir", cluster.data], text=True, check=True,
                              capture_output=True).stdout.strip()
        self.process = subprocess.Popen(["node", "tests/run.mjs", "bench", told, str(rounds)], cwd=WEB, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the browser's measurements failed")
        self.figures = json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def has_browser():
    return shutil.which("node") and Path(os.environ.get("SWELL_CHROMIUM", "/usr/bin/chromium")).exists() \
        and (WEB / "node_modules" / "playwright-core").is_dir()


def browser_figures(report, cluster, quick):
    for name, value in (("low", 10), ("high", 1000)):
        cluster.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                         "value": value})
    for i in range(10):
        cluster.request("POST", JOBS, gang(f"low-{i}", GANG // 10, "low"))
    without, _ = storm(cluster, "without-tabs")
    for i in range(10):
        running(cluster, f"low-{i}", GANG // 10)
    seconds = 15 if quick else 60
    quiet, _ = share_over(cluster, lambda: time.sleep(seconds))
    rounds = 3 if quick else 9
    tabs = Tabs(cluster, rounds)
    try:
        seen = tabs.figures
        report.add("pages: first paint", seen["paintMs"], "ms", 300,
                   note=f"the frame, median of {rounds}, nothing cached; numbers after {seen['numbersMs']:.0f} ms")
        report.add("pages: a decision visible after it was made", seen["decisionMs"], "ms", 500,
                   note=f"median of {rounds}, slowest {seen['decisionMostMs']:.0f}")
        report.add("pages: 10,000 workloads scroll", seen["scrollFrames"], "fps", 50, at_least=True,
                   note=f"best of {rounds} over 3 s, made up; {seen['scrollCostMs']:.1f} ms of its thread a frame")
        time.sleep(5)
        idle, _ = share_over(cluster, lambda: time.sleep(seconds))
        report.add("pages: ten tabs when nothing changes", idle, "%", 2,
                   note=f"of a core, the pages' thread over {seconds} s; {quiet:.2f} without tabs")
        share, took = storm(cluster, "with-tabs")
        report.add("pages: ten tabs while 1,000 pods are preempted", share, "%", 15,
                   note=f"of a core, the pages' thread over {took:.1f} s; {without:.1f} without tabs")
    finally:
        tabs.close()


def history(report):
    program = LOAD.with_name("swell_history")
    with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
        done = subprocess.run([program, folder, "500"], text=True, capture_output=True, check=True)
    report.add("pages: curves of 500 series and a year", json.loads(done.stdout)["bytes"] / 1e6, "MB", 300,
               note="on disk, every slot filled")


def run(report, make_cluster, quick):
    history(report)
    if not has_browser():
        print("  pages: no browser; ./dev setup web, and npm ci in web/")
        return
    cluster = make_cluster("--nodes", "125", "--gpus-per-node", "8", "--runtime", "simulated")
    try:
        browser_figures(report, cluster, quick)
    finally:
        cluster.stop()
