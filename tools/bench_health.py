"""Figures of training that looks after itself, on real pods of an embedded cluster; used by tools/bench.

As in bench_elastic, steps last by sleeping and all else is real. Processes are killed on this machine, by the rank in
their environment. A machine vanishes when the neighbours of its pod's network are made unreachable from within: frames
go to a card that does not exist, and no connection ends. Only the pods' own network namespaces are touched.
"""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_elastic import JOBS, ROOT, ElasticJob, lost

SDK_COSTS = ROOT / "bench" / "sdk_costs.py"
_PODS = "/api/v1/namespaces/default/pods"


def processes(job):
    """{rank: process} of the job's trainings."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if command[0].startswith(b"/") and b"swell" in command[0] or str(job.steps_file).encode() not in command:
                continue
            values = dict(one.split(b"=", 1) for one in (folder / "environ").read_bytes().split(b"\0") if b"=" in one)
            found[int(values[b"RANK"])] = int(folder.name)
    return found


def gap_after(job, moment, world, seconds=60):
    """Seconds from `moment` to the first step that so many did after it."""
    def later():
        return [at for at, _, size in job.steps() if at > moment and size == world]
    job.wait(f"a step of {world} after the loss", later, seconds)
    return later()[0] - moment


def bench_kill(report, cluster, quick):
    """Each of four members in turn; the others continue, and its replacement joins them."""
    job = ElasticJob(cluster, "kill", 4, 100_000)
    gaps, repeated = [], []
    for victim in (0, 3) if quick else (0, 1, 2, 3):
        job.wait_world(4)
        before = lost(job.steps())
        moment = time.time()
        os.kill(processes(job)[victim], signal.SIGKILL)
        gaps.append(gap_after(job, moment, 3))
        repeated.append(lost(job.steps()) - before)
    job.wait_world(4)
    job.delete()
    note = f"largest of {len(gaps)}, rank 0 among them; from the signal to the others' next step"
    report.add("kill -9 of a member of four: time to the next step", max(gaps), "s", 3, note=note)
    report.add("kill -9 of a member of four: steps lost", max(repeated), "", 1, note="the most steps done twice")


def cut_off(pid, addresses):
    """The pod of that process reaches nobody from now on. False if that cannot be done here."""
    inside = ["nsenter", "-t", str(pid), "-n", "ip"]
    links = subprocess.run([*inside, "-o", "-4", "addr"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\d+: (?!lo)(\S+) +inet (\S+)/", links, re.M)
    if not found:
        return False
    link, own = found.groups()
    for address in [one for one in addresses if one != own]:
        done = subprocess.run([*inside, "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", link, "nud",
                               "permanent"], capture_output=True, check=False)
        if done.returncode != 0:
            return False
    return True


def bench_silence(report, cluster, quick):
    job = ElasticJob(cluster, "silence", 4, 100_000)
    job.wait_world(4)
    selector = f"{_PODS}?labelSelector=swell.dev/pod-group%3Dsilence"
    pods = {pod["metadata"]["name"]: pod["status"].get("podIP") for pod in cluster.get(selector)["items"]}
    moment = time.time()
    if cut_off(processes(job)[2], list(pods.values())):
        whole = gap_after(job, moment, 3)
        found = told_after(cluster, [name for name in pods if not name.endswith("-2")], moment)
        note = "the pod's neighbours made unreachable from within; by the log of the first that noticed"
        report.add("a member's machine vanishes: found", found, "s", 10, note=note)
        report.add("a member's machine vanishes: next step after that", max(0.0, whole - found), "s", 5)
    else:
        print("       pods share this machine's network here, so none can vanish", flush=True)
    job.delete()


def told_after(cluster, pods, moment):
    """Seconds from `moment` to the first line of a log that says that a peer was lost."""
    times = []
    for pod in pods:
        text = subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig, "logs", pod, "--timestamps"],
                              capture_output=True, text=True, check=True).stdout
        for stamp in re.findall(r"^(\S+)Z \S*.*lost a peer", text, re.M):
            at = datetime.datetime.fromisoformat(stamp[:26]).replace(tzinfo=datetime.timezone.utc).timestamp()
            times += [at - moment] if at > moment else []
    if not times:
        raise SystemExit("no member says that it lost a peer")
    return min(times)


def bench_stuck(report, cluster, quick):
    """All ranks sleep in a step, as in a collective whose last member does not come."""
    pace = cluster.shared_folder("steps") / "stuck-pace"
    pace.write_text("0.03")
    job = ElasticJob(cluster, "stuck", 2, 100_000, least=2, seconds=pace, health={"hangSeconds": 5})
    job.wait_world(2, more=400)

    def hung():
        conditions = cluster.get(f"{JOBS}/stuck").get("status", {}).get("conditions", [])
        return any(one["type"] == "Hung" and one["status"] == "True" for one in conditions)

    def deadline():
        pods = cluster.get(f"{_PODS}?labelSelector=swell.dev/pod-group%3Dstuck")["items"]
        texts = [pod["metadata"]["annotations"].get("swell.dev/progress", '{"ranks": []}') for pod in pods]
        return max(rank["deadlineSeconds"] for text in texts for rank in json.loads(text)["ranks"])
    alarm = hung()
    pace.write_text("100000")
    time.sleep(1)
    last = job.steps()[-1][0]
    # On a busy machine steps differ much, so a rank may take longer before it counts as stuck.
    job.wait("the condition Hung", hung, deadline() + 120)
    seconds, allowed = time.time() - last, deadline()
    job.delete()
    report.add("stuck ranks: found after their deadline", seconds - allowed, "s", 15,
               note=f"a deadline of {allowed} s" + (", and a false alarm before" if alarm else ""))


def bench_goodput(report, cluster, quick):
    """Steps in the same time with a preemption and a crash a minute, and without."""
    minutes = 1 if quick else 3
    rates = []
    for disturbed in (False, True):
        job = ElasticJob(cluster, f"goodput-{'disturbed' if disturbed else 'calm'}", 4, 100_000)
        job.wait_world(4)
        begin, before = time.time(), len(job.steps())
        for minute in range(minutes):
            if disturbed:
                time.sleep(max(0.0, begin + 60 * minute + 10 - time.time()))
                job.scale(3)
                time.sleep(5)
                job.scale(4)
                time.sleep(max(0.0, begin + 60 * minute + 40 - time.time()))
                os.kill(processes(job)[minute % 4], signal.SIGKILL)
            time.sleep(max(0.0, begin + 60 * (minute + 1) - time.time()))
        steps = job.steps()
        rates.append((len(steps) - before - lost(steps)) / (time.time() - begin))
        job.delete()
    report.add("goodput, one preemption and one crash a minute", 100 * rates[1] / rates[0], "%", 93, True,
               f"steps in {minutes} min of {1 / rates[0] * 1e3:.0f} ms; a step lasts the same with 3 members and 4")


def costs(*words):
    done = subprocess.run([sys.executable, SDK_COSTS, *map(str, words)], capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(f"sdk_costs.py {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def bench_sdk(report, _, quick):
    with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
        saved = costs("save", folder, 1024)
        report.add("asynchronous save: stall against a copy of the memory", saved["ratio"], "x", 1.2,
                   note=f"1 GiB in 300 tensors, median of pairs: {saved['copy'] * 1e3:.0f} and "
                        f"{saved['stall'] * 1e3:.0f} ms; of processor time {saved['cpu_ratio']:.2f}")
        alone, together = (costs("step", tempfile.mkdtemp(dir=folder), ranks) for ranks in (1, 4))
        report.add("the SDK's part of a step, of 50 ms", alone["microseconds"] / 500, "%", 0.1,
                   note=f"{alone['microseconds']:.1f} us for one rank; {together['microseconds']:.0f} us for four, "
                        f"which meet in an all-reduce on {os.cpu_count()} processors")
        restart = tempfile.mkdtemp(dir=folder)
        victim = subprocess.Popen([sys.executable, SDK_COSTS, "leave", restart, "100"], stdout=subprocess.PIPE,
                                  text=True)
        if victim.stdout.readline() != "saved\n":
            raise SystemExit("sdk_costs.py leave failed")
        victim.kill()
        victim.wait()
        times = costs("resume", restart)
        report.add("restart in place: from the copy in memory to a step", times["seconds"], "s", 1,
                   note="100 MiB, after kill -9; torch is loaded before")


def run(report, make_cluster, quick):
    bench_sdk(report, None, quick)
    cluster = make_cluster("--nodes", "1", "--gpus-per-node", "9", "--cpus", "64")
    try:
        for bench in (bench_kill, bench_silence, bench_stuck, bench_goodput):
            bench(report, cluster, quick)
    finally:
        cluster.stop()
