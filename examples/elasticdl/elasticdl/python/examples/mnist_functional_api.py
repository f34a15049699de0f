"""An image classifier for the MNIST family: a model file for ElasticDL on PyTorch.

Used with `--model_file` or `--model_def=mnist_functional_api.custom_model`. A record is the label's byte and 28 x 28
pixels.
"""

import torch
from torch import nn
from torch.nn import functional

PIXELS = 28 * 28


def custom_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def loss(outputs, labels):
    return functional.cross_entropy(outputs, labels)


def optimizer(parameters, lr=0.05):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9)


def feed(records, mode, metadata):
    data = torch.frombuffer(bytearray(b"".join(records)), dtype=torch.uint8).view(len(records), 1 + PIXELS)
    images = data[:, 1:].reshape(-1, 1, 28, 28).to(torch.float32)
    # Mean and deviation of the training set, in pixel values.
    return images.sub_(72.94).div_(90.02), data[:, 0].to(torch.long)


def eval_metrics_fn():
    return {"accuracy": lambda labels, outputs: (outputs.argmax(1) == labels).float().mean()}
