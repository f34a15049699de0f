"""The training of test_matrix and test_suspensions. It learns noise, so a step that is lost or done with other weights
shows in all that follow.

A member of a job runs it: matrix_steps.py STEPS PACE, in the folder OUT. LOOP=guard: a loop of the script's own;
otherwise one of `Job.batches`. EVERY: it saves in the background after so many steps; 0: never. Rank 0 appends
"STEP WEIGHTS WORLD" to OUT/lines before each step, which takes PACE seconds more than it has to. What happens to it is
in files of OUT:

    until    steps from that number on wait; "passed" has the last step that did not
    eat      rank 1 needs more memory than it may have, once
    die      rank 0 is killed in the middle of writing a checkpoint, once
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import swell

JOB = swell.Job(backend="gloo", checkpoint_seconds=0)

import torch  # noqa: E402
from swell import pack  # noqa: E402

BATCH = 24
OUT = Path(os.environ["OUT"])
EVERY = int(os.environ.get("EVERY", "0"))
STEPS, PACE = int(sys.argv[1]), float(sys.argv[2])


def told(name):
    try:
        (OUT / name).unlink()
        return True
    except FileNotFoundError:
        return False


def kill_in_the_next_save():
    """Half of a record is written then, by the thread that saves."""
    add = pack.Archive.add

    def cut(parts):
        for part in parts:
            if threading.current_thread().name == "swell-saving" and told("die"):
                yield part[: len(part) // 2]
                os.kill(os.getpid(), signal.SIGKILL)
            yield part

    pack.Archive.add = lambda self, name, size, parts: add(self, name, size, cut(parts))


def somebody_joins():
    return JOB._group is not None and JOB.env.leader and bool(JOB._group._client.waiting)


def wait_at_the_gate():
    """Rank 0 does; the others wait for it in the step."""
    while JOB.env.leader and JOB.step >= int((OUT / "until").read_text()):
        if JOB.notice.requested or somebody_joins():
            break
        JOB.progress.enter("step")  # a job that waits here does not hang
        time.sleep(0.02)
    if JOB.env.leader:
        (OUT / "passed").write_text(str(JOB.step))


def begin_step(model):
    weights = sum(parameter.double().sum().item() for parameter in model.parameters())
    if JOB.env.leader:
        with open(OUT / "lines", "a", encoding="ascii") as lines:
            lines.write(f"{JOB.step} {weights:.9f} {JOB.env.world}\n")
    wait_at_the_gate()
    time.sleep(PACE)
    if JOB.env.rank == 1 and told("eat"):
        eaten = bytearray(1 << 30)
        eaten[::4096] = b"x" * len(eaten[::4096])


def with_batches(data, model, optimizer):
    for inputs, target in JOB.batches(data, BATCH, 1, {"model": model, "optimizer": optimizer}, checkpoint_every=EVERY):
        begin_step(model)
        optimizer.zero_grad()
        ((model(inputs) - target) ** 2).mean().backward()
        optimizer.step()


def with_guard(data, model, optimizer):
    sampler = swell.ResumableDistributedSampler(len(data), BATCH, job=JOB)

    def state():
        return {"step": JOB.step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "sampler": sampler.state_dict()}

    def load(state):
        JOB.step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])

    found = JOB.restore()
    if found is not None:
        load(found.state)
    while not sampler.done:
        for batch in sampler:
            with JOB.guard(state, load):
                begin_step(model)
                inputs, target = data[batch]
                optimizer.zero_grad()
                (((model(inputs) - target) ** 2).sum() / target.shape[1] * sampler.scale).backward()
                optimizer.step()
                sampler.commit()
                JOB.step += 1
                if EVERY and JOB.step % EVERY == 0:
                    JOB.save(JOB.step, state, wait=False)
                JOB.step_done(JOB.step, state, records=BATCH)
    JOB.save(JOB.step, state)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    kill_in_the_next_save()
    # Its state is larger than the disk of test_matrix.
    model = JOB.parallel(torch.nn.Sequential(torch.nn.Linear(20, 256), torch.nn.Tanh(), torch.nn.Linear(256, 5)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(BATCH * STEPS, 20, generator=generator),
                                          torch.randn(BATCH * STEPS, 5, generator=generator))
    (with_guard if os.environ.get("LOOP") == "guard" else with_batches)(data, model, optimizer)


if __name__ == "__main__":
    main()
