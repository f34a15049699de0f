"""The same training, elastic: ranks come and go between two steps."""

import swell

job = swell.Job(backend="gloo")  # before torch, so that a notice ends the process while torch loads

import torch
from torch import nn

from shapes import Shapes, accuracy

torch.manual_seed(1)
model = job.parallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = Shapes(4800)
for images, labels in job.batches(data, 96, epochs=3, keep={"model": model, "optimizer": optimizer}):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"accuracy {accuracy(model):.3f}", flush=True)
