"""Plain DistributedDataParallel training, as in torch's tutorials: `torchrun --nproc_per_node 2 plain.py`."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from shapes import Shapes, accuracy

dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = Shapes(4800)
sampler = DistributedSampler(data)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for images, labels in DataLoader(data, batch_size=96 // dist.get_world_size(), sampler=sampler):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
print(f"accuracy {accuracy(model):.3f}", flush=True)
