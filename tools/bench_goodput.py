"""Three jobs that scale differently on six GPUs: Goodput beside equal shares and beside doubling while it pays; used by
tools/bench.

As in bench_elastic, steps are made to last by sleeping and all else is real. A job's progress is the work that it did,
in seconds of one member that trains alone; what counts is all of it from the first second to the last, so what
measuring and resizing cost is in it. The jobs train the same records in the same order whatever their sizes, so after
equal steps a job must have learned the same: its loss on records that are never trained is compared.
"""

import math
import time

from bench_elastic import JOBS as TRAINING_JOBS, ElasticJob

GPUS = 6
# Members sum gradients in an order that depends on their number; what that changes grows with the steps.
LOSS_NOISE_PERCENT = 1
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


def losses_file(cluster, name):
    path = cluster.shared_folder("steps") / f"{name}.losses"
    path.touch()
    path.chmod(0o666)
    return path


def losses_of(path):
    """{step: loss}; a step that was done again counts as it was done last."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {int(row[0]): float(row[1]) for row in rows if len(row) == 2}


def largest_difference(ones, others):
    """The largest difference of losses at equal steps, as a part of the loss; both have done at least a step."""
    common = sorted(set(ones) & set(others))
    return max(abs(ones[step] / others[step] - 1) for step in common), common[-1]


def progress(cluster, way, seconds):
    """{job: work done in that time}, of the jobs together on an otherwise empty cluster."""
    jobs, files = {}, {}
    for name, (serial, shared) in JOBS.items():
        full_name = f"{name}-{way.replace(' ', '-')}"
        files[name] = losses_file(cluster, full_name)
        jobs[name] = ElasticJob(cluster, full_name, steps=20_000, seconds=shared,
                                options=("--shared", f"--serial={serial}", "--log", f"--losses={files[name]}"),
                                **WAYS[way])
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
        done[f"{name} losses"] = losses_of(files[name])
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
    worst, where = 0.0, ""
    for way in ("equal shares", "doubling"):
        for name in JOBS:
            difference, steps = largest_difference(ours[f"{name} losses"], done[way][f"{name} losses"])
            if difference >= worst:
                worst, where = difference, f"largest: {name} beside {way}, in {steps} steps"
    report.add("three jobs: a job's loss at equal steps, goodput beside others", 100 * worst, "%", LOSS_NOISE_PERCENT,
               note=where)
