"""Trains an image classifier under torch's elastic launcher: workers may come and go while it trains.

It has the options and the log format of torch elastic's imagenet example, which KubeDL's walkthrough runs:

    main.py --arch=resnet50 --epochs=20 --batch-size=64 --print-freq=50 --workers=0 DATA --checkpoint-file=FILE

The data are Fashion-MNIST, and the networks are small ones of the same family; README.md explains it.

What always holds: when workers come or go, all stop after the same step, which is in the checkpoint. Each record of an
epoch is trained once, whatever the number of workers.
"""

import argparse
import io
import os
import sys
import time

import swell
import swell.plain
from swell.checkpoint import Checkpoint
from swell.files import write_atomic


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", metavar="DIR", help="folder of the data set")
    parser.add_argument("-a", "--arch", default="resnet18", choices=sorted(ARCHITECTURES))
    parser.add_argument("-j", "--workers", type=int, default=0, help="data loading processes; the data lie in memory")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("-b", "--batch-size", type=int, default=32, help="records per step of each worker")
    parser.add_argument("--lr", "--learning-rate", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", "--weight-decay", type=float, default=1e-4, dest="weight_decay")
    parser.add_argument("-p", "--print-freq", type=int, default=10, help="steps between log lines")
    parser.add_argument("--dist-backend", default="gloo", choices=["gloo", "nccl"])
    parser.add_argument("--checkpoint-file", default="/tmp/checkpoint.pth.tar")
    parser.add_argument("--train-samples", type=int, default=int(os.environ.get("IMAGENET_SAMPLES") or 60000))
    parser.add_argument("--test-samples", type=int, default=2000)
    parser.add_argument(
        "--data-seconds",
        type=float,
        default=float(os.environ.get("IMAGENET_DATA_SECONDS") or 0),
        help="the least time that reading a batch takes, to simulate slow storage",
    )
    parser.add_argument(
        "--data-workers",
        type=int,
        default=0,
        help="workers that the storage serves at full speed; each further one adds --data-seconds for all; 0: no limit",
    )
    options = parser.parse_args()
    # Overrides the option without a change of the manifest.
    options.print_freq = max(1, int(os.environ.get("IMAGENET_PRINT_FREQ") or options.print_freq))
    return options


# Blocks of each stage, and channels of the first one. Small enough for CPUs.
ARCHITECTURES = {
    "resnet18": ((1, 1), 12),
    "resnet34": ((2, 2), 12),
    "resnet50": ((2, 2, 2), 16),
    "resnet101": ((2, 3, 3), 16),
    "resnet152": ((3, 4, 3), 16),
}


class File:
    """The job's checkpoint in one file, which is replaced atomically."""

    def __init__(self, path):
        self.path = path

    def save(self, step, state, epoch=None, metrics=None):
        import torch

        content = io.BytesIO()
        torch.save(swell.plain.flatten({"step": step, "epoch": epoch, "state": state}), content)
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        write_atomic(self.path, content.getvalue())
        swell.report.report_checkpoint(step, swell.report.now(), epoch, metrics)

    def load(self):
        try:
            content = swell.plain.restore(swell.plain.load(self.path))
        except FileNotFoundError:
            return None
        except Exception as error:
            # The file may be incomplete or not ours. Starting from the beginning is better than failing.
            print(f"=> cannot read {self.path}: {error}", file=sys.stderr, flush=True)
            return None
        return Checkpoint(content["step"], content["state"], swell.report.now(), content["epoch"], None)


OPTIONS = parse_arguments()
# Before torch, whose import takes seconds: a notice in that time should end the process at once.
JOB = swell.Job(checkpoints=File(OPTIONS.checkpoint_file))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mnist-pytorch"))
from fashion import count_right, read_images  # noqa: E402

# Every pod logs the training, so a reader need not know where rank 0 is.
LOGS = JOB.env.local_rank == 0


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return functional.relu(self.body(images) + self.shortcut(images))


def build_network(arch, classes=10):
    blocks, width = ARCHITECTURES[arch]
    layers = [nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(channels, width * 2**stage, 2 if stage > 0 and block == 0 else 1))
            channels = width * 2**stage * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Meter:
    """The last value and the mean, in the form of torch's examples."""

    def __init__(self, name, form):
        self.name, self.form = name, form
        self.value = self.sum = self.count = 0

    def add(self, value, count=1):
        self.value = value
        self.sum += value * count
        self.count += count

    def __str__(self):
        return f"{self.name} {self.value:{self.form}} ({self.sum / max(1, self.count):{self.form}})"


class Training:
    def __init__(self):
        self.train_set = read_images(OPTIONS.data, "train", OPTIONS.train_samples)
        self.test_set = read_images(OPTIONS.data, "t10k", OPTIONS.test_samples)
        torch.manual_seed(1)
        self.network = build_network(OPTIONS.arch)
        self.model = nn.parallel.DistributedDataParallel(self.network) if JOB.env.distributed else self.network
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), OPTIONS.lr, OPTIONS.momentum, weight_decay=OPTIONS.weight_decay
        )
        # Each worker takes batch-size records per step. With more workers an epoch has fewer steps.
        self.batch_size = OPTIONS.batch_size * JOB.env.world
        self.sampler = swell.ResumableDistributedSampler(
            len(self.train_set), self.batch_size, 1, JOB.env.rank, JOB.env.world
        )
        surplus = max(0, JOB.env.world - OPTIONS.data_workers) if OPTIONS.data_workers else 0
        self.data_seconds = OPTIONS.data_seconds * (1 + surplus)
        self.step = 0

    def state(self):
        return {
            "arch": OPTIONS.arch,
            "step": self.step,
            "model": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "sampler": self.sampler.state_dict(),
        }

    def resume(self):
        saved = JOB.restore()
        if saved is None:
            return say(f"=> no checkpoint at {OPTIONS.checkpoint_file}, starting from the beginning")
        if saved.state["arch"] != OPTIONS.arch:
            raise SystemExit(f"{OPTIONS.checkpoint_file} is of {saved.state['arch']}, not of {OPTIONS.arch}")
        self.step = saved.state["step"]
        self.network.load_state_dict(saved.state["model"])
        self.optimizer.load_state_dict(saved.state["optimizer"])
        self.sampler.load_state_dict(saved.state["sampler"])
        say(f"=> loaded checkpoint: epoch {self.sampler.epoch} record {self.sampler.position} step {self.step}")

    def run(self):
        while self.sampler.epoch < OPTIONS.epochs:
            self.train_epoch()
            self.sampler.next_epoch()
            self.validate()
            JOB.save(self.step, self.state, epoch=self.sampler.epoch)

    def train_epoch(self):
        meters = [Meter("Time", "6.3f"), Meter("Data", "6.3f"), Meter("Loss", ".4e"),
                  Meter("Acc@1", "6.2f"), Meter("Acc@5", "6.2f")]
        self.model.train()
        self.stop_if_noticed()
        steps = -(-len(self.train_set) // self.batch_size)
        end = time.monotonic()
        for indices in self.sampler:
            number = self.sampler.position // self.batch_size
            images, labels = self.train_set.batch(indices)
            wait = end + self.data_seconds - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            meters[1].add(time.monotonic() - end)
            self.train_step(images, labels, meters)
            meters[0].add(time.monotonic() - end)
            end = time.monotonic()
            if number % OPTIONS.print_freq == 0 and LOGS:
                epoch = f"Epoch: [{self.sampler.epoch}][{number:{len(str(steps))}d}/{steps}]"
                print("\t".join([epoch, *map(str, meters)]), flush=True)
            self.stop_if_noticed()

    def train_step(self, images, labels, meters):
        self.optimizer.zero_grad()
        output = self.model(images)
        loss = functional.cross_entropy(output, labels, reduction="sum")
        (loss * self.sampler.scale).backward()
        self.optimizer.step()
        self.sampler.commit()
        self.step += 1
        count = len(labels)
        if count:
            hits = output.detach().topk(5).indices == labels[:, None]
            meters[2].add(loss.item() / count, count)
            meters[3].add(hits[:, 0].sum().item() * 100 / count, count)
            meters[4].add(hits.sum().item() * 100 / count, count)

    def validate(self):
        self.model.eval()
        right = count_right(self.network, self.test_set, JOB.env.rank, JOB.env.world)
        if JOB.env.distributed:
            dist.all_reduce(right)
        say(f" * Acc@1 {right.item() * 100 / len(self.test_set):.3f}")

    def stop_if_noticed(self):
        if JOB.should_stop():
            JOB.stop(self.step, self.state, epoch=self.sampler.epoch)


def say(text):
    if LOGS:
        print(text, flush=True)


def main():
    # One thread per worker: workers share the machine's cores.
    torch.set_num_threads(1)
    if JOB.env.distributed:
        dist.init_process_group(OPTIONS.dist_backend)
    say(f"=> using {OPTIONS.arch} for Fashion-MNIST, worker {JOB.env.rank} of {JOB.env.world}")
    training = Training()
    training.resume()
    training.run()
    if JOB.env.distributed:
        # Everything is saved. A regular exit shuts gloo down, which can wait for peers that have left.
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
