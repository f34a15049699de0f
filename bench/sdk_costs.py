"""What the SDK costs a training, measured in processes of their own; used by tools/bench_health.

    sdk_costs.py save FOLDER MIB        seconds of a copy of so much memory and of the stall of a save: medians of pairs
    sdk_costs.py step FOLDER RANKS      microseconds of the SDK's part of a step without events
    sdk_costs.py leave FOLDER MIB       saves in memory, prints "saved" and waits to be killed
    sdk_costs.py resume FOLDER          seconds from the Job to the end of the first step, with torch loaded before

Each prints one JSON document. FOLDER holds checkpoints; copies in memory are where the SDK puts them.
"""

import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sdk" / "python"))

_TENSORS = 300
_ROUNDS = 9


def _job(folder, **environ):
    os.environ.update(SWELL_CHECKPOINT_DIR=folder, SWELL_REPORT_FILE=os.path.join(folder, "report"), **environ)
    import swell

    return swell.Job(backend="gloo", checkpoint_seconds=0)


def _state(mib):
    import torch

    size = mib * 2**20 // 4 // _TENSORS
    return {"step": 1, "model": {f"layer.{i}.weight": torch.full((size,), float(i)) for i in range(_TENSORS)}}


def _seconds(call):
    """(seconds that it took, processor seconds of all threads)"""
    begin, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin, time.process_time() - cpu


def save(folder, mib):
    job = _job(folder)
    import torch
    from swell import snapshot

    torch.set_num_threads(1)
    state = _state(int(mib))
    job.restore()
    job._memory.prepare(snapshot.size_of(state))  # as the first step does, in the background
    target = [torch.zeros_like(tensor) for tensor in state["model"].values()]

    def copy():
        for to, tensor in zip(target, state["model"].values()):
            to.copy_(tensor)

    job.checkpoints.save_copy = lambda copy: None  # the disk is another figure
    copy()
    pairs = []
    for step in range(1, _ROUNDS + 1):
        copied = _seconds(copy)
        stalled = _seconds(lambda: job.save(step, state, wait=False))
        pairs.append([*copied, *stalled])
        job.flush()
    job._memory.remove()
    copied, copied_cpu, stalled, stalled_cpu = (statistics.median(column) for column in zip(*pairs))
    # What else the machine does takes time of both; the two of a pair had the same neighbours.
    ratio = statistics.median(pair[2] / pair[0] for pair in pairs)
    return {"copy": copied, "stall": stalled, "ratio": ratio, "cpu_ratio": stalled_cpu / copied_cpu}


def _steps(folder, rank, ranks, port, count, results):
    job = _job(folder, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
               PET_NNODES=f"1:{ranks}", PET_RDZV_ID="costs")
    import torch

    torch.set_num_threads(1)
    model = job.parallel(torch.nn.Linear(4, 4))
    state = {"step": 0, "model": model.state_dict()}
    job.restore()
    while job.env.world < ranks:
        job.step_done(0, state)
    times = []
    for step in range(1, count + 1):
        begin = time.perf_counter()
        with job.guard(lambda: state, lambda state: None):
            job.step_done(step, state)
        times.append(time.perf_counter() - begin)
    results.put(statistics.median(times) * 1e6)
    job.flush()
    results.close()
    results.join_thread()
    os._exit(0)


def step(folder, ranks):
    ranks = int(ranks)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = [(folder, rank, ranks, port, 5000, results) for rank in range(ranks)]
    processes = [context.Process(target=_steps, args=one) for one in arguments]
    for process in processes:
        process.start()
    times = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
        process.kill()
    return {"microseconds": max(times)}


def leave(folder, mib):
    job = _job(folder)
    state = _state(int(mib))
    job.restore()
    job.save(7, state, wait=False)
    job.flush()
    print("saved", flush=True)
    time.sleep(3600)


def resume(folder):
    import torch  # noqa: F401

    begin = time.perf_counter()
    job = _job(folder)
    found = job.restore()
    job.step_done(found.step + 1, found.state)
    seconds = time.perf_counter() - begin
    job._memory.remove()
    return {"seconds": seconds, "step": found.step}


if __name__ == "__main__":
    what = {"save": save, "step": step, "leave": leave, "resume": resume}[sys.argv[1]]
    print(json.dumps(what(*sys.argv[2:])))
