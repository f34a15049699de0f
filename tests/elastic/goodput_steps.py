"""The training of test_goodput: real DDP steps, of which a part is not shared by the members.

A member of an elastic job runs it: goodput_steps.py OUT STEPS SERIAL SHARED. A step takes SERIAL seconds, and SHARED
divided by the number of members; it sleeps instead of computing, so that a machine with few cores can run many members.
Rank 0 appends "STEP WORLD LOSS" to OUT after every step.
"""

import sys
import time

import swell

JOB = swell.Job(backend="gloo")

import torch  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

BATCH = 24


def data(steps):
    random = torch.Generator().manual_seed(5)
    inputs = torch.randn(BATCH * steps, 16, generator=random)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True).sin())


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))


def main(path, steps, serial, shared):
    torch.set_num_threads(1)
    model = JOB.parallel(network(), example=torch.zeros(2, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = JOB.batches(data(steps), batch_size=BATCH, epochs=1, keep={"model": model, "optimizer": optimizer})
    with open(path, "a", encoding="utf-8", buffering=1) as out:
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            time.sleep(serial + shared / JOB.env.world)
            loss.backward()
            optimizer.step()
            if JOB.env.leader:
                out.write(f"{JOB.step + 1} {JOB.env.world} {loss.item():.6f}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
