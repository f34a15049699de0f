"""Trains a small network on Fashion-MNIST, in one process or several. With the Swell SDK it can be preempted.

PyTorchJobs start it as `python mnist.py --backend gloo --epochs 200`. If there are several ranks, RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT are in the environment.

What always holds:
* The same seed and world size give the same weights, bit for bit, however often the run was preempted.
* Each step is done exactly once. `<checkpoint folder>/steps-rank0.log` shows it: a line "step N" for every step.
"""

import argparse
import os
import sys
import time

try:
    import swell as sdk
except ImportError:
    import plain as sdk

# Before torch, whose import takes seconds: a notice in that time should end the process at once.
JOB = sdk.Job()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from fashion import DEFAULT_DIR, count_right, read_images  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=96, help="records per step, all ranks together")
    parser.add_argument(
        "--train-samples",
        type=int,
        default=int(os.environ.get("SWELL_MNIST_SAMPLES") or 9600),
        help="size of the training subset; the whole set has 60000",
    )
    parser.add_argument("--test-samples", type=int, default=2000)
    parser.add_argument(
        "--step-seconds",
        type=float,
        default=float(os.environ.get("SWELL_MNIST_STEP_SECONDS") or 0),
        help="a step takes at least this long; for demonstrations, so that they last as long on any machine",
    )
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--log-interval", type=int, default=20, help="steps between log lines")
    parser.add_argument("--checkpoint-every", type=int, default=500, help="steps; 0: only on a notice")
    parser.add_argument("--target-accuracy", type=float, help="stop after the epoch that reaches it")
    parser.add_argument("--data-dir", default=os.environ.get("FASHION_MNIST_DIR") or DEFAULT_DIR)
    # Kubeflow's example of this name has these, and its manifests should run. They have no effect.
    for flag in ("--momentum", "--test-batch-size", "--dir", "--log-path", "--logger"):
        parser.add_argument(flag, help=argparse.SUPPRESS)
    for flag in ("--no-cuda", "--save-model"):
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def usable(backend):
    """gloo in place of a backend that cannot be had: the network trains on CPUs, and few builds of torch know MPI."""
    if backend == "nccl" or (backend == "mpi" and not dist.is_mpi_available()):
        log(f"backend gloo in place of {backend}, which is not available here")
        return "gloo"
    return backend


def build_network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(16 * 7 * 7, 10),
    )


class Training:
    """The state that a checkpoint has, and the training loop."""

    def __init__(self, options):
        self.options = options
        self.train_set = read_images(options.data_dir, "train", options.train_samples)
        self.test_set = read_images(options.data_dir, "t10k", options.test_samples)
        torch.manual_seed(options.seed)
        self.network = build_network()
        self.model = JOB.parallel(self.network, example=torch.zeros(1, 1, 28, 28))
        JOB.join()
        log(f"rank {JOB.env.rank} of {JOB.env.world} started")
        # Different dropout on each rank, the same on every run.
        torch.manual_seed(options.seed * 1000 + JOB.env.rank)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=options.lr, momentum=0.9)
        self.sampler = sdk.ResumableDistributedSampler(
            len(self.train_set), options.batch_size, options.seed, job=JOB
        )
        self.step = 0
        self.accuracy = 0.0
        self.reached_target = False
        self._log_started = time.monotonic()
        self._steps_log = None

    def state(self):
        return {
            "step": self.step,
            "model": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "sampler": self.sampler.state_dict(),
            "accuracy": self.accuracy,
            "reached_target": self.reached_target,
        }

    def resume(self):
        saved = JOB.restore()
        if saved is None:
            return
        self.load(saved.state)
        log(f"resumed from step={self.step} epoch={self.sampler.epoch} record={self.sampler.position}")

    def load(self, state):
        self.step = state["step"]
        self.network.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.sampler.load_state_dict(state["sampler"])
        self.accuracy = state["accuracy"]
        self.reached_target = state["reached_target"]

    def run(self):
        while not self.reached_target and self.sampler.epoch < self.options.epochs:
            self.model.train()
            for batch in self.sampler:
                with JOB.guard(self.state, self.load):
                    self.train_step(batch)
                    self.save_if_due()
                    # The last call of a step: a rank that joins here begins with the next one.
                    JOB.step_done(
                        self.step, self.state, epoch=self.sampler.epoch, records=self.options.batch_size
                    )
            self.end_epoch()
        self.save("final")

    def train_step(self, batch):
        begin = time.monotonic()
        images, labels = self.train_set.batch(batch)
        self.optimizer.zero_grad()
        # A scaled sum, because ranks may have different numbers of records and all records must weigh the same.
        loss = functional.cross_entropy(self.model(images), labels, reduction="sum") * self.sampler.scale
        loss.backward()
        self.optimizer.step()
        self.sampler.commit()
        self.step += 1
        self.note_step(loss)
        time.sleep(max(0.0, begin + self.options.step_seconds - time.monotonic()))

    def note_step(self, loss):
        if JOB.env.leader and JOB.checkpoints is not None:
            if self._steps_log is None:
                os.makedirs(JOB.checkpoints.dir, exist_ok=True)
                path = os.path.join(JOB.checkpoints.dir, "steps-rank0.log")
                self._steps_log = open(path, "a", encoding="utf-8", buffering=1)
            self._steps_log.write(f"step {self.step}\n")
        if self.step % self.options.log_interval == 0:
            now = time.monotonic()
            in_epoch = -(-self.sampler.position // self.options.batch_size)
            seconds = (now - self._log_started) / self.options.log_interval
            self._log_started = now
            log(
                f"epoch {self.sampler.epoch + 1} step {in_epoch} (global {self.step}) "
                f"loss {loss.item():.4f} seconds/step {seconds:.4f}"
            )

    def end_epoch(self):
        self.accuracy = self.measure_accuracy()
        log(f"test accuracy={self.accuracy:.4f} epoch={self.sampler.epoch + 1}")
        self.sampler.next_epoch()
        target = self.options.target_accuracy
        self.reached_target = target is not None and self.accuracy >= target

    def measure_accuracy(self):
        self.model.eval()
        # Without DDP, which would synchronise buffers for nothing.
        right = count_right(self.network, self.test_set, JOB.env.rank, JOB.env.world)
        if JOB.env.distributed:
            dist.all_reduce(right)
        return right.item() / len(self.test_set)

    def save_if_due(self):
        every = self.options.checkpoint_every
        if every and self.step % every == 0:
            self.save("periodic")

    def save(self, reason):
        saved = JOB.save(
            self.step, self.state, epoch=self.sampler.epoch, metrics={"accuracy": self.accuracy}
        )
        if saved:
            log(f"checkpoint saved step={self.step} reason={reason}")


def log(text):
    if JOB.env.leader:
        print(text, flush=True)


def main():
    options = parse_arguments()
    # One thread per rank: ranks share the machine's cores, and sums are the same on every machine.
    torch.set_num_threads(1)
    JOB.backend = usable(options.backend)
    training = Training(options)
    training.resume()
    training.run()
    log(f"done steps={training.step} accuracy={training.accuracy:.4f}")


if __name__ == "__main__":
    sys.exit(main())
