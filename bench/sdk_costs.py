"""What the SDK costs a training, measured in processes of their own; used by tools/bench_health.

    sdk_costs.py save FOLDER MIB        seconds of a copy of so much memory and of the stall of a save: medians of pairs
    sdk_costs.py step FOLDER RANKS      microseconds of the SDK's part of a step without events
    sdk_costs.py noise FOLDER RANKS     by what part measuring the noise of gradients lengthens ten steps
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
_NOISE_BLOCKS = 25


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


def _noise_steps(folder, rank, ranks, port, count, results):
    """Ten steps with one that is measured, and ten without, by turns. A network of 5 million parameters."""
    job = _job(folder, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
               PET_NNODES=f"{ranks}:{ranks}", PET_RDZV_ID="costs")
    import torch
    from swell import noise

    torch.set_num_threads(1)
    width = 1290
    layers = [layer for _ in range(3) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = job.parallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    records = torch.randn(8, width)
    job.restore()
    every, blocks, own = noise.EVERY, {True: [], False: []}, []

    def timed(call):
        def call_and_time(*arguments):
            begin = time.thread_time()
            result = call(*arguments)
            own.append(time.thread_time() - begin)
            return result

        return call_and_time

    for name in ("before", "after", "end_pass", "end_step"):
        setattr(job._noise, name, timed(getattr(job._noise, name)))
    for block in range(2 * count + 2):
        measured = block % 2 == 0
        noise.EVERY = every if measured else 1 << 60
        job._noise.begin_group()

        def ten_steps(block=block):
            for step in range(every):
                optimizer.zero_grad()
                model(records).square().mean().backward()
                optimizer.step()
                job.step_done(block * every + step, {}, records=8 * ranks)

        own.clear()
        blocks[measured].append((*_seconds(ten_steps), sum(own)))
    results.put((blocks[True][1:], blocks[False][1:], job._noise._measured))
    job.flush()
    results.close()
    results.join_thread()
    os._exit(0)


def noise(folder, ranks):
    with_it, without, measured = _of_ranks(_noise_steps, folder, int(ranks), _NOISE_BLOCKS)[0]
    # The two of a pair had the same neighbours on this machine, but other work still moves their ratio by a few
    # percent. The processor's time in the calls that measure does not depend on it.
    part = statistics.median(one[0] / other[0] for one, other in zip(with_it, without)) - 1
    step, cpu = (statistics.median(block[i] for block in without) / 10 for i in (0, 1))
    own = statistics.median(block[2] for block in with_it) / 10
    return {"step": step, "cpu": cpu, "measured": measured, "part": part, "own": own, "own_part": own / cpu}


def step(folder, ranks):
    return {"microseconds": max(_of_ranks(_steps, folder, int(ranks), 5000))}


def _of_ranks(target, folder, ranks, count):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = [(folder, rank, ranks, port, count, results) for rank in range(ranks)]
    processes = [context.Process(target=target, args=one) for one in arguments]
    for process in processes:
        process.start()
    found = [results.get(timeout=300) for _ in processes]
    for process in processes:
        process.join(60)
        process.kill()
    return found


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
    what = {"save": save, "step": step, "noise": noise, "leave": leave, "resume": resume}[sys.argv[1]]
    print(json.dumps(what(*sys.argv[2:])))
