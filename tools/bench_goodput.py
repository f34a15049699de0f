"""Three jobs that scale differently on six GPUs: Goodput beside equal shares and beside doubling while it pays; used by
tools/bench.

As in bench_elastic, steps are made to last by sleeping and all else is real. A job's progress is the work that it did,
in seconds of one member that trains alone; what counts is all of it from the first second to the last, so what
measuring and resizing cost is in it.
"""

import math
import time

from bench_elastic import JOBS as TRAINING_JOBS, ElasticJob

GPUS = 6
# Seconds of a step that members do not share, and that they share.
JOBS = {"scales": (0.0, 0.6), "between": (0.2, 0.4), "flat": (0.5, 0.1)}
WAYS = {
    "equal shares": {"least": GPUS // len(JOBS), "most": GPUS // len(JOBS)},
    "doubling": {"least": 1, "most": GPUS, "replicas": 1, "autoscaling": {
        "mode": "Metric", "intervalSeconds": 2, "observations": 2,
        "metrics": [{"name": "took", "regex": r"took (\d+\.\d+)s"}]}},
    "goodput": {"least": 1, "most": GPUS, "replicas": 1, "autoscaling": {
        "mode": "Goodput", "intervalSeconds": 2, "observations": 2}},
}


def progress(cluster, way, seconds):
    """{job: work done in that time}, of the jobs together on an otherwise empty cluster."""
    jobs = {}
    for name, (serial, shared) in JOBS.items():
        jobs[name] = ElasticJob(cluster, f"{name}-{way.replace(' ', '-')}", steps=20_000, seconds=shared,
                                options=("--shared", f"--serial={serial}", "--log"), **WAYS[way])
    for job in jobs.values():
        job.wait("a step", job.steps, 120)
    before = {name: len(job.steps()) for name, job in jobs.items()}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 15))
        cluster.get(f"{TRAINING_JOBS}/{jobs['flat'].name}")  # a connection on which nothing happens is closed
    done = {}
    for name, job in jobs.items():
        steps = job.steps()
        done[name] = (steps[-1][1] - before[name]) * sum(JOBS[name])
        done[f"{name} members"] = steps[-1][2]
    for job in jobs.values():
        job.delete()
    return done


def total(done):
    return sum(done[name] for name in JOBS)


def geometric(done):
    return math.prod(done[name] for name in JOBS) ** (1 / len(JOBS))


def run(report, make_cluster, quick):
    seconds = 90 if quick else 240
    cluster = make_cluster("--nodes", "1", "--gpus-per-node", str(GPUS), "--cpus", "64")
    try:
        done = {}
        for way in WAYS:
            done[way] = progress(cluster, way, seconds)
            print(f"  goodput: {way}: {total(done[way]):.0f} s of work in {seconds} s; "
                  + ", ".join(f"{name} {done[way][name]:.0f} s" for name in JOBS), flush=True)
    finally:
        cluster.stop()
    ours = done["goodput"]
    for way in ("equal shares", "doubling"):
        other = done[way]
        sizes = ", ".join(f"{name} {ours[f'{name} members']} ({other[f'{name} members']})" for name in JOBS)
        report.add(f"three jobs on {GPUS} GPUs: progress with goodput / {way}", total(ours) / total(other), "", 1.15,
                   True,
                   f"in {seconds} s, measuring included; geometric mean of jobs "
                   f"{geometric(ours) / geometric(other):.2f}; members at the end: {sizes}")
