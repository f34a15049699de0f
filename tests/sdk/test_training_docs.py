"""The loops of docs/training.md, and the README's: each is stopped and ends the same."""

import os
import re
import tempfile
import unittest

import support
import torch

# A notice comes in the pass with this number, as if from outside.
_HEAD = """
import contextlib, os, random, signal
import numpy, torch
random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
torch.set_num_threads(1)
class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3))
generator = torch.Generator().manual_seed(3)
validation, data = [
    (inputs, inputs[:, :3].argmax(1)) for inputs in (torch.randn(count, 4, generator=generator) for count in (64, 160))
]
data = torch.utils.data.TensorDataset(*data)
passes, backward = 0, torch.Tensor.backward
def counting(tensor, *arguments, **named):
    global passes
    passes += 1
    if passes == int(os.environ.get("NOTICE_AT", "0")):
        os.kill(os.getpid(), signal.SIGTERM)
    return backward(tensor, *arguments, **named)
torch.Tensor.backward = counting
"""
_ACCUMULATED = """
import swell
job = swell.Job(backend="gloo")
from torch.nn.functional import cross_entropy
model = job.parallel(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
_TAIL = """
for name, thing in sorted(globals().items()):
    if isinstance(thing, torch.nn.Module):
        parts = (getattr(part, "to_local", lambda: part)() for part in thing.state_dict().values())
        print("ends", name, [round(part.double().sum().item(), 9) for part in parts], flush=True)
print("ends after", vars().get("step", job.step), flush=True)
os._exit(0)
"""


def blocks(*path):
    """{heading: the block of Python below it}"""
    found = {}
    with open(os.path.join(support.ROOT, *path), encoding="utf-8") as file:
        for section in file.read().split("\n## ")[1:]:
            code = re.search(r"^```python\n(.*?)^```", section, re.S | re.M)
            if code is not None:
                found[section.split("\n", 1)[0]] = code[1]
    return found


class DocsTest(support.FolderTest):
    def run_script(self, code, folder, script, **extra):
        os.makedirs(self.path(folder), exist_ok=True)
        # As a pod's own files, those of a run end with it.
        own = tempfile.mkdtemp(dir=self.path("."))
        with open(self.path("script.py"), "w", encoding="utf-8") as file:
            file.write(f"import os; os.chdir({own!r})\n{_HEAD}{script}{_TAIL}")
        process = support.start(
            self, [self.path("script.py")], RANK=0, WORLD_SIZE=1, MASTER_ADDR="127.0.0.1",
            MASTER_PORT=support.free_port(), SWELL_CHECKPOINT_DIR=self.path(folder), **extra)
        status, output = support.finish(process)
        self.assertEqual(status, code, output)
        return [line for line in output.splitlines() if line.startswith("ends ")]

    def suspend_and_resume(self, script):
        expected = self.run_script(0, "undisturbed", script)
        self.assertRegex(expected[-1], r"^ends after \d\d")
        self.run_script(143, "job", script, NOTICE_AT=17)
        self.assertEqual(self.run_script(0, "job", script), expected)

    def block(self, heading):
        return blocks("docs", "training.md")[heading]

    def test_each_block_has_a_test(self):
        self.assertEqual(len(blocks("docs", "training.md")), 6)

    def test_averages_and_mixed_precision(self):
        self.suspend_and_resume(self.block("Mixed precision, clipping, schedules, averages of weights"))

    def test_several_networks(self):
        self.suspend_and_resume(self.block("Several networks"))

    def test_early_stopping(self):
        self.suspend_and_resume(self.block("Evaluation, the best weights, early stopping"))
        best, expected = (torch.load(os.path.join(self.path(folder), "best.pt")) for folder in ("job", "undisturbed"))
        self.assertEqual(best.keys(), expected.keys())
        for name, value in expected.items():
            self.assertTrue(torch.equal(best[name], value), name)

    @support.torch_since(2, 6)
    def test_fsdp(self):
        self.suspend_and_resume(self.block("FSDP, HSDP, tensor parallel"))

    def test_checkpoints_of_the_scripts_own(self):
        self.suspend_and_resume(self.block("Checkpoints of your own").replace("Net()", "torch.nn.Linear(4, 3)"))

    def test_state_of_each_rank(self):
        self.suspend_and_resume(self.block("State of each rank: replay buffers, environments"))

    def test_the_end_of_an_epoch(self):
        block = blocks("sdk", "python", "README.md")["Four lines in a training script"]
        step = "optimizer.zero_grad()\n    cross_entropy(model(images), labels).backward()\n    optimizer.step()"
        block = re.sub(r"\.\.\. .*", step, block).replace("96", "16")
        self.suspend_and_resume(_ACCUMULATED + """
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
def evaluate(network):
    assert (job.step + 1) % 10 == 0 and optimizer.param_groups[0]["lr"] == 0.01 * 0.5 ** (job.epoch + 1)
    print("evaluated epoch", job.epoch)
""" + block)

    def test_accumulated_gradients(self):
        block = blocks("sdk", "python", "README.md")["Accumulated gradients"]
        self.suspend_and_resume(_ACCUMULATED + block.replace("4096", "16").replace("64", "4"))


if __name__ == "__main__":
    unittest.main()
