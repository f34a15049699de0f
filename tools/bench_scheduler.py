"""The scheduler's figures: cycles in memory (src/sched/sched_bench.cc) and decisions made durable (bench/decisions.cc).

Times are CPU time of one core, so that what else runs on the machine counts little. A scheduler that looks at every
node and one that samples them as kube-scheduler does place the same pods on the same nodes; both are the bare search,
without queues, gangs, devices and decisions in words.
"""

import json
import math
import subprocess
import tempfile

NODES = [1_000, 3_000, 10_000, 30_000, 100_000]
SCALED = {"index (Swell)": "BM_OneMorePod", "sampling": "BM_OneMorePodSampling", "every node": "BM_OneMorePodNaively"}
TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


def measure(program, names, quick):
    """Google Benchmark's results by name, e.g. BM_PlaceGangs/1/1000; the best of three runs."""
    pattern = "^(" + "|".join(names) + ")(/.*)?$"
    runs = 1 if quick else 3
    done = subprocess.run([program, f"--benchmark_filter={pattern}", f"--benchmark_repetitions={runs}",
                           "--benchmark_format=json", "--benchmark_min_time=0.1"], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{program} failed:\n{done.stderr}")
    found = {}
    for result in json.loads(done.stdout)["benchmarks"]:
        if result.get("run_type") == "aggregate":
            continue
        if result.get("error_occurred"):
            raise SystemExit(f"{result['name']}: {result['error_message']}")
        result["ms"] = result["cpu_time"] * TO_MS[result["time_unit"]]
        name = result["run_name"].removesuffix("/iterations:1")
        if name not in found or result["ms"] < found[name]["ms"]:
            found[name] = result
    return found


def plot(series, rows=12, columns=56):
    """A text plot with logarithmic axes: microseconds for one more pod over nodes."""
    values = [value for points in series.values() for value in points]
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    grid = [[" "] * (columns + 1) for _ in range(rows + 1)]
    for mark, points in zip("*o.", series.values()):
        for nodes, value in zip(NODES, points):
            x = round(columns * math.log10(nodes / NODES[0]) / math.log10(NODES[-1] / NODES[0]))
            y = round(rows * (math.log10(value) - low) / (high - low))
            grid[rows - y][x] = mark
    lines = []
    for i, line in enumerate(grid):
        label = 10 ** (low + (high - low) * (rows - i) / rows)
        lines.append((f"{label:9.3g} us |" if i % 3 == 0 else " " * 12 + " |") + "".join(line).rstrip())
    lines.append(" " * 13 + "+" + "-" * (columns + 1))
    axis = [" "] * (columns + 14)
    for nodes in NODES:
        x = round(columns * math.log10(nodes / NODES[0]) / math.log10(NODES[-1] / NODES[0]))
        text = f"{nodes // 1000}k"
        axis[x:x + len(text)] = text
    lines.append(" " * 14 + "".join(axis).rstrip() + " nodes")
    lines += [f"{'':14}{mark} {name}" for mark, name in zip("*o.", series)]
    return "\n".join(lines)


def placing(report, program, quick):
    found = measure(program, ["BM_PlaceSinglePods", "BM_PlaceMixedPods/10000", "BM_PlaceGangs"], quick)
    others = measure(program, ["BM_PlaceMixedPodsNaively/10000", "BM_PlaceMixedPodsSampling/10000"], True)
    single, mixed = found["BM_PlaceSinglePods/50000"], found["BM_PlaceMixedPods/10000"]
    report.add("50,000 single-GPU pods on 5,000 nodes, placed per second", single["items_per_second"], "/s", 200_000,
               True)
    report.add("100,000 pods on 10,000 mixed nodes, placed per second", mixed["items_per_second"], "/s", 200_000, True,
               f"{others['BM_PlaceMixedPodsNaively/10000']['items_per_second']:.0f}/s looking at every node, "
               f"{others['BM_PlaceMixedPodsSampling/10000']['items_per_second']:.0f}/s at a sample")
    report.add("  memory for them, decisions included", mixed["MiB_with_decisions"], "MiB", 200, note="allocated")
    report.add("a gang of 1,000 on 5,000 nodes", found["BM_PlaceGangs/1/1000"]["ms"], "ms", 5)
    for gangs, members in ((3000, 3), (9, 1000), (10, 5000)):
        took = found[f"BM_PlaceGangs/{gangs}/{members}"]
        report.add(f"  {gangs:,} gangs of {members:,}, per 1,000 pods", took["ms"] * 1000 / (gangs * members), "ms", 5,
                   note=f"{took['ms']:.1f} ms in all")


def taking(report, program, quick):
    found = measure(program, ["BM_PreemptDecisions", "BM_HugeReclaim", "BM_ReclaimManyJobs", "BM_EmptyCycle"], quick)
    urgent = found["BM_PreemptDecisions"]
    report.add("100 urgent gangs on 80,000 full GPUs, decision p99", urgent["p99_ms"], "ms", 20,
               note=f"p50 {urgent['p50_ms']:.1f} ms; 20,000 jobs of 15 tenants, no over-preemption, no partial gang")
    report.add("a reclaim that takes 39,000 pods", found["BM_HugeReclaim"]["ms"], "ms", 100)
    report.add("reclaim, 500 nodes, 4,000 jobs running and 4,000 waiting", found["BM_ReclaimManyJobs"]["ms"], "ms", 200)
    report.add("an empty cycle, 4,000 nodes and 140,000 pods", found["BM_EmptyCycle"]["ms"], "ms", 1)


def scaling(report, program, quick):
    found = measure(program, list(SCALED.values()), quick)
    series = {name: [found[f"{bench}/{nodes}"]["ms"] * 1e3 for nodes in NODES] for name, bench in SCALED.items()}
    ours = series["index (Swell)"]
    note = ", ".join(f"{nodes // 1000}k: {value:.1f}" for nodes, value in zip(NODES, ours))
    report.add("one more pod: cost on 100,000 nodes over that on 1,000", ours[-1] / ours[0], "x", 10,
               note=f"us at {note}")
    report.add_series("us for one more pod, by nodes", {"nodes": NODES, **series})
    print(plot(series))


def deciding(report, program, quick):
    pods = 5_000 if quick else 50_000
    nodes = 6_250  # of eight GPUs: one for each pod
    with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
        done = subprocess.run([program, folder, str(pods), str(nodes)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{program} failed:\n{done.stdout}{done.stderr}")
    report.add("decisions committed through the durable store per second", json.loads(done.stdout)["per_second"], "/s",
               20_000, True, f"{pods:,} pods on {nodes:,} nodes, everything in one process, each fsynced in groups")


def run(report, build, quick):
    program = build / "src" / "sched" / "sched_bench"
    placing(report, program, quick)
    taking(report, program, quick)
    scaling(report, program, quick)
    deciding(report, build / "bin" / "swell_decisions", quick)
