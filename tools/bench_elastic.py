"""Figures of elastic training, measured on real pods of an embedded cluster; used by tools/bench.

Steps are made to last by sleeping (bench/elastic_steps.py), because members share this machine's few cores; all else is
real: processes, torch.distributed over gloo, the scheduler, the node agent. Times are those of rank 0's steps: time
without progress is the gap between two steps around a change, less the usual one.
"""

import statistics
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "bench" / "elastic_steps.py"
JOBS = "/apis/swell.dev/v1/namespaces/default/trainingjobs"
_STEP_SECONDS = 0.03


class ElasticJob:
    """A TrainingJob of up to `most` members with one GPU each, whose steps it follows."""

    def __init__(self, cluster, name, most, steps, *, least=1, replicas=None, launcher=False, seconds=_STEP_SECONDS,
                 options=(), health=(), autoscaling=None):
        self.cluster, self.name, self.most = cluster, name, most
        self.folder = cluster.shared_folder("steps")
        self.steps_file = self.folder / name
        self.steps_file.touch()
        self.steps_file.chmod(0o666)
        command = ["python3", *(["-m", "swell.launch"] if launcher else []), str(SCRIPT), str(self.steps_file),
                   str(steps), str(seconds), *options]
        container = {"name": "main", "image": "python", "command": command,
                     "env": [{"name": "OMP_NUM_THREADS", "value": "1"},
                             {"name": "PYTHONPATH", "value": str(ROOT / "sdk" / "python")}],
                     "resources": {"limits": {"nvidia.com/gpu": 1}},
                     "volumeMounts": [{"name": name, "mountPath": path} for name, path in self.places().items()]}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 30,
                "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in self.places().items()]}
        role = {"replicas": replicas or most, "restartPolicy": "OnFailure", "template": {"spec": spec}}
        role["elastic"] = {"minReplicas": least, "maxReplicas": most}
        if least == most:
            del role["elastic"]
        spec = {"roles": {"worker": role}, "health": dict(health)}
        if autoscaling:
            spec["autoscaling"] = autoscaling
        self.begin = time.time()
        cluster.request("POST", JOBS, {"apiVersion": "swell.dev/v1", "kind": "TrainingJob",
                                       "metadata": {"name": name}, "spec": spec})

    def places(self):
        return {"data": str(self.folder), "bench": str(SCRIPT.parent)}

    def scale(self, replicas):
        self.cluster.request("PATCH", f"{JOBS}/{self.name}/scale", {"spec": {"replicas": replicas}},
                             "application/merge-patch+json")

    def steps(self):
        """[(time, step, world), ...] so far."""
        rows = (line.split() for line in self.steps_file.read_text().splitlines())
        return [(float(row[0]), int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    def wait_world(self, world, more=10, seconds=120):
        """Until the last `more` steps were done by so many."""
        def there():
            steps = self.steps()[-more:]
            return len(steps) == more and all(step[2] == world for step in steps)
        self.wait(f"{world} members", there, seconds)

    def wait_end(self, seconds=600):
        def over():
            conditions = self.cluster.get(f"{JOBS}/{self.name}").get("status", {}).get("conditions", [])
            true = {one["type"] for one in conditions if one["status"] == "True"}
            if "Failed" in true:
                raise SystemExit(f"job {self.name} failed")
            return "Succeeded" in true
        self.wait("its end", over, seconds)

    def wait(self, what, condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"job {self.name} did not reach {what}; last steps {self.steps()[-3:]}")
            time.sleep(0.1)

    def delete(self):
        self.cluster.request("DELETE", f"{JOBS}/{self.name}")
        pods = f"/api/v1/namespaces/default/pods?labelSelector=swell.dev/pod-group%3D{self.name}"
        self.wait("no pods", lambda: not self.cluster.get(pods)["items"], 60)


def stalls(steps):
    """For each change of size: (world before, after, seconds without progress)."""
    usual = statistics.median(b[0] - a[0] for a, b in zip(steps, steps[1:]))
    return [(a[2], b[2], b[0] - a[0] - usual) for a, b in zip(steps, steps[1:]) if a[2] != b[2]]


def lost(steps):
    """Steps that had to be done again."""
    return len(steps) - len({step for _, step, _ in steps})


def resize(cluster, name, launcher):
    """4 -> 2 -> 4 members: seconds without progress at the shrink and at the growth, and steps done twice."""
    job = ElasticJob(cluster, name, 4, 20_000, launcher=launcher)
    job.wait_world(4)
    job.scale(2)
    job.wait_world(2)
    job.scale(4)
    job.wait_world(4)
    steps = job.steps()
    # What came before all four were there is the start, not a change.
    steps = steps[next(i for i, step in enumerate(steps) if step[2] == 4):]
    changes = stalls(steps)
    job.delete()
    shrink = sum(seconds for before, after, seconds in changes if after < before)
    grow = sum(seconds for before, after, seconds in changes if after > before)
    return shrink, grow, lost(steps)


def bench_resize(report, cluster, quick):
    rounds = 1 if quick else 3
    ours = [resize(cluster, f"memory-{i}", False) for i in range(rounds)]
    theirs = resize(cluster, "torchrun", True)
    note = f"largest of {rounds}; restart by torchrun's way {{:.1f}} s"
    report.add("planned shrink 4 -> 2 workers: without progress", max(one[0] for one in ours), "s", 1,
               note=note.format(theirs[0]))
    report.add("planned growth 2 -> 4 workers: without progress", max(one[1] for one in ours), "s", 1,
               note=note.format(theirs[1]))
    report.add("steps lost in 4 -> 2 -> 4", max(one[2] for one in ours), "", 0, note=f"torchrun's way {theirs[2]}")


def bench_goodput(report, cluster, quick):
    """Steps in the same time, with and without a preemption a minute: one of four members leaves for 5 s."""
    minutes = 1 if quick else 3
    rates = []
    for name, disturbed in (("calm", False), ("disturbed", True)):
        job = ElasticJob(cluster, f"goodput-{name}", 4, 20_000)
        job.wait_world(4)
        begin, before = time.time(), len(job.steps())
        for minute in range(minutes):
            if disturbed:
                time.sleep(max(0.0, begin + 60 * minute + 20 - time.time()))
                job.scale(3)
                time.sleep(5)
                job.scale(4)
            time.sleep(max(0.0, begin + 60 * (minute + 1) - time.time()))
        steps = job.steps()
        rates.append((len(steps) - before - lost(steps)) / (time.time() - begin))
        job.delete()
    report.add("goodput, one preemption a minute", 100 * rates[1] / rates[0], "%", 95, True,
               f"steps in {minutes} min of {1 / rates[0] * 1e3:.0f} ms; a step lasts the same with 3 members and 4")


def makespan(cluster, name, least, steps):
    begin = time.time()
    jobs = [ElasticJob(cluster, f"{name}-{i}", 5, steps, least=least, seconds=0.5, options=("--shared",))
            for i in range(2)]
    for job in jobs:
        job.wait_end()
    seconds = time.time() - begin
    for job in jobs:
        job.delete()
    return seconds


def bench_makespan(report, cluster, quick):
    """Two jobs of five members on nine GPUs: 1.8 of them fit."""
    steps = 300 if quick else 600
    elastic = makespan(cluster, "elastic", 1, steps)
    rigid = makespan(cluster, "rigid", 5, steps)
    report.add("two jobs where 1.8 fit: elastic / rigid makespan", elastic / rigid, "", 0.70,
               note=f"{elastic:.0f} s against {rigid:.0f} s, processes' start included; a step is 0.5 s of one member")


def run(report, make_cluster, quick):
    cluster = make_cluster("--nodes", "1", "--gpus-per-node", "9", "--cpus", "64")
    try:
        for bench in (bench_resize, bench_goodput, bench_makespan):
            bench(report, cluster, quick)
    finally:
        cluster.stop()
