"""Scripts as users write them, suspended and resumed as processes: they end with the weights of an undisturbed run."""

import hashlib
import io
import json
import os
import re
import unittest

import support
import torch
from swell.checkpoint import CheckpointManager

_HEAD = """
import swell
job = swell.Job(backend="gloo")
import numpy
import torch
from torch.nn.functional import cross_entropy

def Net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))

class Records(torch.utils.data.Dataset):
    # Each record is drawn anew whenever it is read, so the end depends on NumPy's generator.
    def __len__(self):
        return 960

    def __getitem__(self, index):
        return torch.from_numpy(numpy.random.rand(8)).float() + index % 4, index % 4

numpy.random.seed(2)
data = Records()
"""
_BATCHES = """
model = job.parallel(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for images, labels in job.batches(data, batch_size=96, epochs=3, keep={"model": model, "optimizer": optimizer}):
    optimizer.zero_grad()
    loss = cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
"""
_TAIL = """
print("weights", sum(parameter.double().sum().item() for parameter in model.parameters()), flush=True)
"""


def readme_loop():
    """The loop in the SDK's README, without the lines that `_HEAD` has too."""
    with open(os.path.join(support.SDK, "README.md"), encoding="utf-8") as file:
        (code,) = re.findall(r"^## A loop of your own\n\n```python\n(import swell\n.*?)^```", file.read(), re.S | re.M)
    return code.split("cross_entropy\n", 1)[1]


class SuspendTest(support.FolderTest):
    def run_script(self, code, folder, notice_at=None):
        path = self.path("script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_HEAD + code + _TAIL)
        arguments = [path]
        if notice_at is not None:
            arguments = [os.path.join(support.HERE, "noticed.py"), str(notice_at), path]
        process = support.start(self, arguments, SWELL_CHECKPOINT_DIR=self.path(folder), OMP_NUM_THREADS=1)
        status, output = support.finish(process)
        self.assertEqual(status, 0 if notice_at is None else 143, output)
        self.assertNotIn("Warning", output)
        return re.findall(r"^weights (.*)$", output, re.M)

    def suspend_and_resume(self, code, between=lambda: None):
        expected = self.run_script(code, "undisturbed")
        self.run_script(code, "suspended", notice_at=13)
        between()
        self.assertEqual(self.run_script(code, "suspended"), expected)

    def manifest(self):
        return os.path.join(self.path("suspended"), "step-000000000013.json")

    def read_manifest(self):
        with open(self.manifest(), encoding="utf-8") as file:
            return json.load(file)

    def test_a_script_of_batches(self):
        def check_codec():
            self.assertEqual(self.read_manifest()["codec"], "tensors")

        self.suspend_and_resume(_BATCHES, check_codec)

    def test_the_loop_in_the_readme(self):
        self.suspend_and_resume(readme_loop())

    def test_a_checkpoint_of_an_older_version(self):
        self.suspend_and_resume(_BATCHES, self.rewrite_checkpoint)

    def rewrite_checkpoint(self):
        """Turns the checkpoint into one of a version before 0.1.0: torch.save of the state with NumPy arrays in it."""
        buffer = io.BytesIO()
        torch.save(CheckpointManager(self.path("suspended")).load().state, buffer)
        data = buffer.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        name = f"step-000000000013-{digest[:12]}.state"
        with open(self.path("suspended", name), "wb") as file:
            file.write(data)
        manifest = {**self.read_manifest(), "codec": "torch", "file": name, "size": len(data), "sha256": digest}
        with open(self.manifest(), "w", encoding="utf-8") as file:
            json.dump(manifest, file)


if __name__ == "__main__":
    unittest.main()
