"""The training that bench_elastic measures: a tiny network whose steps take a given time.

A member of an elastic job runs it, directly or with swell.launch: elastic_steps.py OUT STEPS SECONDS [--shared]
[--serial=SECONDS] [--log] [--losses=FILE].
Rank 0 appends "TIME STEP WORLD" to OUT after every step. A step sleeps for SECONDS in place of computing, so that a
machine with few cores can run many members; with --shared, SECONDS is divided by the number of members, and --serial
adds what is not. SECONDS may be the name of a file, which is read for each step. --log prints how long each step took.
--losses has rank 0 append "STEP LOSS" to FILE after every step, of records that are never trained. Record N is the same
in every run, so losses at equal steps can be compared.
"""

import sys
import time

import swell

JOB = swell.Job(backend="gloo")

import torch  # noqa: E402

torch.set_num_threads(1)
OUT, STEPS, SECONDS = sys.argv[1], int(sys.argv[2]), sys.argv[3]
SHARED = "--shared" in sys.argv
LOG = "--log" in sys.argv
SERIAL = sum(float(word.split("=")[1]) for word in sys.argv if word.startswith("--serial="))
LOSSES = [word.split("=")[1] for word in sys.argv if word.startswith("--losses=")]

torch.manual_seed(7)
FREQUENCIES, TEACHER = torch.rand(64, dtype=torch.float64) * 6, torch.randn(64, 8) / 8
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
model = JOB.parallel(network)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sampler = swell.ResumableDistributedSampler(96 * STEPS, 96, shuffle=False, job=JOB)
step = 0


def seconds():
    try:
        return float(SECONDS)
    except ValueError:
        with open(SECONDS, encoding="utf-8") as file:
            return float(file.read())


def records(numbers):
    """Inputs and targets of the records with these numbers."""
    numbers = torch.as_tensor(list(numbers), dtype=torch.float64)
    inputs = (numbers[:, None] * FREQUENCIES).sin().float()
    return inputs, (inputs @ TEACHER).sin()


HELD_OUT = records(range(-256, 0))


def held_out_loss():
    inputs, targets = HELD_OUT
    with torch.no_grad():
        return torch.nn.functional.mse_loss(network(inputs), targets).item()


def state():
    return {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "sampler": sampler.state_dict(),
    }


def load(state):
    global step
    step = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    sampler.load_state_dict(state["sampler"])


def train(batch):
    global step
    began = time.monotonic()
    inputs, targets = records(batch)
    optimizer.zero_grad()
    loss = (model(inputs) - targets).square().sum() * sampler.scale
    time.sleep(SERIAL + (seconds() / JOB.env.world if SHARED else seconds()))
    loss.backward()
    optimizer.step()
    sampler.commit()
    step += 1
    if JOB.env.leader:
        out.write(f"{time.time():.6f} {step} {JOB.env.world}\n")
        for path in LOSSES:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{step} {held_out_loss():.8f}\n")
        if LOG:
            print(f"step {step} took {time.monotonic() - began:.4f}s", flush=True)
    JOB.step_done(step, state, records=96)


found = JOB.restore()
if found is not None:
    load(found.state)
with open(OUT, "a", encoding="utf-8", buffering=1) as out:
    while not sampler.done:
        for batch in sampler:
            with JOB.guard(state, load):
                train(batch)
