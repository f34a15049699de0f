"""Figures of the laboratory: workloads of Pollux, Sia, Shockwave and Rubick under Swell's allocation and others; used
by tools/bench.

The workloads, profiles and published results are read where they lie: in the folder that SWELL_LAB_DATA names, else in
../shared/data beside the source tree. `rubick` there is the folder `simulator` of Rubick's artefact. Pollux' published
simulator has eight workloads of each load; the means are over those that are there, and the published figure beside
them is over the same ones.
"""

import csv
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SWELL_LAB_DATA") or ROOT.parent / "shared" / "data")
IN_MEMORY_SECONDS = 3  # stands for a resize in memory; bench_elastic.py measures those
# Average completion time of `goodput` over all eight workloads of a load, and of Pollux, in seconds. Where fewer are
# present the target is the same part of what Pollux takes on those: some are easier than others.
TARGETS = {"1.0": (2480, 2751.13), "2.0": (4760, 5289.20)}


def published(config, workloads):
    """The mean over the workloads of the published average completion time; None where there are none."""
    times = {}
    with open(DATA / "pollux" / "published" / "per_job_jct.csv", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["experiment"] == "results-jobload" and row["config"] == config:
                times.setdefault(row["workload"], []).append(float(row["jct_s"]))
    means = [statistics.mean(times[w]) for w in workloads if w in times]
    return statistics.mean(means) if len(means) == len(workloads) else None


SIA_CLUSTER = "6x4:aws,2x8:dgx-ext,3x8:rtx"
# SOSP'23, table 3: average and p99 of completion times in hours, GPU-hours a job. The averages are rounded to a tenth.
SIA = {"philly": (0.6, 9.5, 4.0), "saturn": (0.7, 10.9, 4.8), "newtrace": (0.7, 4.6, 3.0)}
# The same table's Gavel, which maximises the sum of throughputs: average in hours and its deviation, p99, makespan,
# GPU-hours a job.
GAVEL = {"philly": (1.9, 0.3, 30.0, 33.8, 9.0), "saturn": (2.5, 0.9, 38.7, 43.0, 12.1),
         "newtrace": (11.3, 3.0, 98.1, 110, 6.4)}
PHILLY_NODES = 23  # of 8 GPUs; its jobs used 370 GPUs on average
PHILLY_LIMIT_SECONDS = 300
PHILLY_FIRST_JOBS = 8000
# Rows of the laboratory's table that no run here measures, and why (docs/lab.md, "Targets").
NOT_MEASURED = {
    "one decision of 2,048 GPUs of several types": "the exact program takes seconds (docs/lab.md)",
}
# NSDI'23's artefact on the trace of 120 jobs, 32 GPUs: makespan and average in seconds, worst ratio, unfair per cent.
SHOCKWAVE = {"Shockwave": (24197, 9958, 1.78, 5.0), "max-min (Gavel)": (33208, 11274, 2.95, 25.0)}
SHOCKWAVE_TRACE = "120_0.2_5_100_40_25_0_0.5_0.5_0.6_0.3_0.09_0.01_multigpu_dynamic.trace"


def play(program, traces, *flags, profiles=DATA / "profiles"):
    """What `swell lab run` says of each policy, by name."""
    command = [program, "lab", "run", *map(str, traces), "--profiles", profiles, "-o", "json", *flags]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"swell lab run failed:\n{done.stderr}")
    return {entry["policy"]: entry for entry in json.loads(done.stdout)}


def note_of(entry, pollux):
    low, high = entry.get("averageSeconds95", (entry["averageSeconds"],) * 2)
    beside = f", {100 * (entry['averageSeconds'] / pollux - 1):+.1f} % beside Pollux' {pollux:.0f} s" if pollux else ""
    return (f"95 % {low:.0f} to {high:.0f}{beside}; p99 {entry['p99Seconds'] / 3600:.1f} h, makespan "
            f"{entry['makespanSeconds'] / 3600:.1f} h, {entry['restartsPerJob']:.1f} restarts/job, "
            f"{entry['decisionsHash']}")


def oracles(report, load, entries, workloads):
    """Tiresias and Optimus are deterministic: their means are the published ones, or the simulator is wrong."""
    for policy in ("tiresias", "optimus"):
        expected = published(f"{policy}-{load}", workloads)
        if expected is not None:
            difference = abs(entries[policy]["averageSeconds"] - expected)
            report.add(f"lab: {policy}, load {load}, beside what was published", difference, "s", 1e-6,
                       note=f"{expected:.3f} s there")


def hours(entry):
    return (f"average {entry['averageSeconds'] / 3600:.3f} h, p99 {entry['p99Seconds'] / 3600:.1f} h, makespan "
            f"{entry['makespanSeconds'] / 3600:.1f} h, {entry['gpuHoursPerJob']:.2f} GPU-h/job, "
            f"{entry['restartsPerJob']:.1f} restarts/job, {entry['decisionsHash']}")


def sia(report, program, quick):
    """Three types of GPU: the port of Sia beside what was published, and Swell's allocation beside the port."""
    for name, (average, _, _) in SIA.items():
        traces = sorted((DATA / "sia" / "workloads" / name).glob("workload-*.csv"))[:1 if quick else None]
        if not traces:
            print(f"  lab: no workloads of Sia's {name} below {DATA}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            jobs = Path(folder) / "jobs.csv"
            entries = play(program, traces, "--rules=sia", f"--cluster={SIA_CLUSTER}", "--fair-times", f"--csv={jobs}",
                           "--policy=sia", "--policy=goodput", "--policy=max-sum")
            beside = ratios_to_port(jobs)
        port, ours = entries["sia"], entries["goodput"]
        # Whole tenths were published, of ten traces; some of those are here.
        delta = abs(port["averageSeconds"] / 3600 - average)
        report.add(f"lab: Sia on {name}, average beside table 3", delta, "h", 0.1,
                   note=f"{average} ± 0.1 h there; {len(traces)} traces here: {hours(port)}")
        low, high = ours.get("changePercent95", (ours["changePercent"],) * 2)
        report.add(f"lab: goodput beside Sia on {name}, average JCT", ours["changePercent"], "%", -5,
                   note=f"95 % {low:+.1f} to {high:+.1f}; {hours(ours)}")
        tail = 100 * (ours["p99Seconds"] / port["p99Seconds"] - 1)
        report.add(f"lab: goodput beside Sia on {name}, p99", tail, "%", 0)
        report.add(f"lab: goodput beside Sia on {name}, GPU-hours",
                   100 * (ours["gpuHoursPerJob"] / port["gpuHoursPerJob"] - 1), "%", 0)
        report.add(f"lab: goodput on Sia's {name}, worst finish-time ratio", ours["worstFinishTimeRatio"], "", 1.2,
                   note=f"{ratios(ours)}; Sia's port: {ratios(port)}; goodput to the port's fair times: worst "
                        f"{max(beside):.2f}, {100 * sum(one > 1.05 for one in beside) / len(beside):.1f} % above 1.05")
        gavel(report, name, entries["max-sum"])


def ratios_to_port(path):
    """The ratios of goodput's completion times to the fair times that jobs have under Sia's port. A policy that is fast
    with a job alone sets itself shorter fair times; these are the same yardstick for both."""
    with open(path, encoding="utf-8") as f:
        rows = {(row["policy"], row["trace"], row["job"]): row for row in csv.DictReader(f)}
    return [float(row["completion_s"]) / float(rows["sia", trace, job]["fair_s"])
            for (policy, trace, job), row in rows.items() if policy == "goodput"]


def gavel(report, name, ours):
    average, deviation, p99, makespan, gpu_hours = GAVEL[name]
    report.add(f"lab: max-sum on Sia's {name}, average beside Gavel in table 3",
               abs(ours["averageSeconds"] / 3600 - average), "h", deviation,
               note=f"there {average} ± {deviation} h, p99 {p99} h, makespan {makespan} h, {gpu_hours} GPU-h/job; "
                    f"here {hours(ours)}; {ratios(ours)}")


def shockwave(report, program):
    trace = DATA / "shockwave" / SHOCKWAVE_TRACE
    if not trace.is_file():
        print(f"  lab: no {trace}")
        return
    flags = ("--cluster=32x1", "--resize-cost=20")
    port = play(program, [trace], *flags, "--round=120", "--policy=max-min")["max-min"]
    makespan, average, _, _ = SHOCKWAVE["max-min (Gavel)"]
    for what, key, there in (("makespan", "makespanSeconds", makespan), ("average", "averageSeconds", average)):
        report.add(f"lab: max-min on Shockwave's trace, {what} beside the artefact", abs(100 * (port[key] / there - 1)),
                   "%", 5, note=f"{port[key]:.0f} s here, {there} s there; {ratios(port)}")
    policies = ("fifo", "goodput", "shortest", "critical", "shockwave")
    entries = play(program, [trace], *flags, *(f"--policy={policy}" for policy in policies))
    print(f"  lab: Shockwave itself (its artefact): {SHOCKWAVE['Shockwave']}: makespan, average, worst ratio, unfair %")
    for policy, entry in entries.items():
        print(f"       {policy:10} makespan {entry['makespanSeconds']:.0f} s, average {entry['averageSeconds']:.0f} s, "
              f"{ratios(entry)}")
    # `critical` knows how long jobs train, Shockwave how many epochs they have, `goodput` neither.
    for policy in ("critical", "goodput"):
        ours = entries[policy]
        report.add(f"lab: {policy} on Shockwave's trace, makespan", ours["makespanSeconds"], "s", 24400,
                   note=ratios(ours))
        report.add(f"lab: {policy} on Shockwave's trace, average JCT", ours["averageSeconds"], "s", 9500)
        report.add(f"lab: {policy} on Shockwave's trace, worst ratio", ours["worstFinishTimeRatio"], "", 1.7)


def rubick(report, program):
    """Jobs that keep the execution plan they requested, where jobs with a guarantee have a quota of all GPUs."""
    for name in ("base", "bp", "mt"):
        trace = DATA / "rubick" / "workloads" / f"workload-{name}.csv"
        if not trace.is_file():
            print(f"  lab: no {trace}")
            continue
        quota = ["--quota=guaranteed=64"] if name == "mt" else []
        entries = play(program, [trace], "--cluster=8x8", "--rules=rubick", *quota, "--policy=rubick",
                       "--policy=goodput", profiles=DATA / "rubick" / "traces")
        report.add(f"lab: goodput beside Rubick with one plan on {name}, average JCT",
                   entries["goodput"]["changePercent"], "%", 0,
                   note=f"{hours(entries['goodput'])}; Rubick's port: {hours(entries['rubick'])}")


def ratios(entry):
    return f"worst finish-time ratio {entry['worstFinishTimeRatio']:.2f}, {entry['unfairPercent']:.1f} % above 1.05"


def thousand_jobs(report, program):
    """Jobs of Pollux' workloads that come within a minute, on 2,048 GPUs, until all have ended."""
    jobs = []
    for number, path in enumerate(sorted((DATA / "pollux" / "workloads" / "load-2.0").glob("workload-*.csv"))):
        with open(path, encoding="utf-8") as f:
            jobs += [dict(row, name=f"{row['name']}-{number}") for row in csv.DictReader(f)]
    if len(jobs) < 1000:
        print(f"  lab: fewer than 1,000 jobs of load 2.0 below {DATA}")
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "thousand.csv"
        with open(trace, "w", encoding="utf-8", newline="") as f:
            out = csv.DictWriter(f, ("name", "time", "application", "num_replicas", "batch_size"))
            out.writeheader()
            out.writerows(dict(job, time=number * 60 // 1000) for number, job in enumerate(jobs[:1000]))
        ours = play(program, [trace], "--cluster=512x4", "--policy=goodput")["goodput"]
    report.add("lab: one decision of 2,048 GPUs and 1,000 jobs, p99", ours["decideMsP99"], "ms", 10,
               note=f"median {ours['decideMsP50']:.2f} ms, over all decisions until the last job ends")


def philly(report, program):
    """Philly's jobs on half of the GPUs that they used on average; each tenant's quota is its part of them."""
    path = DATA / "philly" / "philly_jobs.csv"
    if not path.is_file():
        print(f"  lab: no {path}")
        return
    used = {}
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            used[row["cluster"]] = used.get(row["cluster"], 0) + float(row["gpu_time"])
    gpus = PHILLY_NODES * 8
    quotas = [f"--quota={tenant}={gpus * seconds / sum(used.values()):.2f}" for tenant, seconds in used.items()]
    command = [program, "lab", "run", path, f"--cluster={PHILLY_NODES}x8", "--policy=fair", *quotas]
    # Processor time: other work of the machine does not count.
    before = os.times()
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PHILLY_LIMIT_SECONDS)
        note = f"{len(used)} tenants, {gpus} GPUs"
    except subprocess.TimeoutExpired:
        note = f"{len(used)} tenants, {gpus} GPUs; stopped before its end"
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    report.add("lab: Philly's 110 days with quotas at twice the load", seconds, "s", 10, note=note)
    philly_shares(report, program, path, quotas)


def philly_shares(report, program, path, quotas):
    """How many hours leave each tenant within 2 % of its share (docs/lab.md, "Shares of tenants"): of the first jobs,
    which are played in a minute."""
    with open(path, encoding="utf-8") as f:
        jobs = sorted(csv.DictReader(f), key=lambda row: row["timestamp"])[:PHILLY_FIRST_JOBS]
    there = {job["cluster"] for job in jobs}
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "first.csv"
        with open(trace, "w", encoding="utf-8", newline="") as f:
            out = csv.DictWriter(f, jobs[0].keys())
            out.writeheader()
            out.writerows(jobs)
        own = [quota for quota in quotas if quota.partition("=")[2].partition("=")[0] in there]
        entry = play(program, [trace], f"--cluster={PHILLY_NODES}x8", "--policy=fair", *own)["fair"]
    report.add(f"lab: Philly's first {len(jobs)} jobs, tenants' hours within 2 % of the share",
               entry["tenantHoursWithin2Percent"], "%", 100, at_least=True,
               note=f"{entry['tenantHours']} hours of tenants; "
                    f"{entry['tenantHoursWithin2PercentOrOneGpu']:.1f} % within 2 % or one GPU; "
                    f"at worst {entry['worstTenantHourShortGpus']:.1f} GPUs short")


def run(report, program, quick):
    pollux_workloads(report, program, quick)
    if not quick:
        philly(report, program)
    thousand_jobs(report, program)
    sia(report, program, quick)
    shockwave(report, program)
    rubick(report, program)
    revocation(report, program, quick)
    for what, why in NOT_MEASURED.items():
        print(f"  lab: not measured: {what}: {why}")


def revocation(report, program, quick):
    """Each node goes 5 times a day: what jobs keep of the GPU time they get, beside rigid jobs with checkpoints."""
    traces = sorted((DATA / "pollux" / "workloads" / "load-1.0").glob("workload-*.csv"))[:2 if quick else None]
    if not traces:
        return
    rigid = play(program, traces, "--revoke=5", "--save-time=1h", "--policy=tiresias")["tiresias"]
    for cost, target in ((30, 95), (IN_MEMORY_SECONDS, 99)):
        ours = play(program, traces, "--revoke=5", f"--resize-cost={cost}", "--policy=goodput")["goodput"]
        report.add(f"lab: goodput under revocation, {cost} s a resize", ours["goodputPercent"], "%", target,
                   at_least=True, note=f"{ours['revocations']:.0f} revocations a trace, {note_of(ours, None)}; "
                                       f"tiresias with checkpoints each 10 min: {rigid['goodputPercent']:.1f} %")


def tail_of_load_1(report, ours):
    report.add("lab: goodput, load 1.0, p99", ours["p99Seconds"] / 3600, "h", 13.0)
    report.add("lab: goodput, load 1.0, makespan", ours["makespanSeconds"] / 3600, "h", 16.8)
    report.add("lab: goodput, load 1.0, restarts a job", ours["restartsPerJob"], "", 3)


def pollux_workloads(report, program, quick):
    folder = DATA / "pollux" / "workloads"
    if not folder.is_dir():
        print(f"  lab: no {folder}; SWELL_LAB_DATA names the folder with Pollux' workloads and profiles")
        return
    for load, (aim, theirs) in TARGETS.items():
        traces = sorted((folder / f"load-{load}").glob("workload-*.csv"))[:2 if quick else None]
        workloads = [trace.stem for trace in traces]
        policies = ["tiresias", "optimus", "shortest", "afs", "max-min", "goodput", "recurring"]
        entries = play(program, traces, *(f"--policy={policy}" for policy in policies))
        oracles(report, load, entries, workloads)
        pollux = published(f"pollux-{load}", workloads)
        target = round(aim * (pollux or theirs) / theirs)
        print(f"  lab: {len(traces)} workloads of load {load}: {', '.join(workloads)}")
        for policy in policies[2:5]:
            print(f"       {policy:10} {entries[policy]['averageSeconds']:8.1f} s, {note_of(entries[policy], pollux)}")
        report.add(f"lab: goodput, load {load}, average JCT", entries["goodput"]["averageSeconds"], "s", target,
                   note=note_of(entries["goodput"], pollux))
        if load == "1.0":
            tail_of_load_1(report, entries["goodput"])
        report.add(f"lab: recurring, load {load}, average JCT", entries["recurring"]["averageSeconds"], "s", target,
                   note=note_of(entries["recurring"], pollux))
        report.add(f"lab: one decision of 64 GPUs, load {load}, median", entries["goodput"]["decideMsP50"], "ms", 0.3,
                   note=f"p99 {entries['goodput']['decideMsP99']:.2f} ms")
        report.add(f"lab: one decision of 64 GPUs, load {load}, p99", entries["goodput"]["decideMsP99"], "ms", 1)
        ours = play(program, traces, "--policy=goodput", f"--resize-cost={IN_MEMORY_SECONDS}")["goodput"]
        report.add(f"lab: goodput, load {load}, {IN_MEMORY_SECONDS} s a resize", ours["averageSeconds"], "s", target,
                   note=note_of(ours, pollux))
