"""The training of KubeDL's walkthrough: its log has the format of KubeDL's document, and it resumes."""

import os
import re
import subprocess
import sys
import unittest

import support

MAIN = os.path.join(support.ROOT, "examples", "imagenet", "main.py")
NUMBER = r"( \d|\d\d)\.\d{3}"
PERCENT = r"( {2}\d| \d\d|\d{3})\.\d\d"
LOSS = r"\d\.\d{4}e[+-]\d\d"
LINE = re.compile(
    rf"Epoch: \[\d+\]\[ *\d+/\d+\]\tTime {NUMBER} \({NUMBER}\)\tData {NUMBER} \({NUMBER}\)\t"
    rf"Loss {LOSS} \({LOSS}\)\tAcc@1 {PERCENT} \({PERCENT}\)\tAcc@5 {PERCENT} \({PERCENT}\)")


class ImagenetTest(support.FolderTest):
    def train(self, *arguments, launcher=()):
        done = subprocess.run(
            [sys.executable, *launcher, MAIN, "--arch=resnet50", "--batch-size=64", "--print-freq=4", "--workers=0",
             "--test-samples=100", "/usr/share/datasets/fashion-mnist",
             f"--checkpoint-file={self.path('data', 'checkpoint.pth.tar')}", *arguments],
            env=support.clean_environment(OMP_NUM_THREADS=1, IMAGENET_SAMPLES=640), text=True, capture_output=True,
            timeout=2 * support.WAIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_the_log_has_the_format_of_the_document_and_training_resumes(self):
        lines = self.train("--epochs=1")
        epochs = [line for line in lines if line.startswith("Epoch")]
        self.assertEqual([line.split("\t")[0] for line in epochs],
                         ["Epoch: [0][ 0/10]", "Epoch: [0][ 4/10]", "Epoch: [0][ 8/10]"])
        for line in epochs:
            self.assertRegex(line, f"^{LINE.pattern}$")
        lines = self.train("--epochs=2")
        self.assertIn("=> loaded checkpoint: epoch 1 record 0 step 10", lines)
        self.assertEqual([line.split("\t")[0] for line in lines if line.startswith("Epoch")],
                         ["Epoch: [1][ 0/10]", "Epoch: [1][ 4/10]", "Epoch: [1][ 8/10]"])

    def test_workers_end_together(self):
        lines = self.train("--epochs=1", launcher=("-m", "swell.launch", "--standalone", "--nproc_per_node=2"))
        self.assertIn("swell.launch: 1 node trains", lines)
        self.assertIn("=> using resnet50 for Fashion-MNIST, worker 0 of 2", lines)
        self.assertTrue(os.path.exists(self.path("data", "checkpoint.pth.tar")))

    def test_an_incomplete_checkpoint_is_ignored(self):
        os.mkdir(self.path("data"))
        with open(self.path("data", "checkpoint.pth.tar"), "wb") as file:
            file.write(b"half")
        lines = self.train("--epochs=1")
        self.assertTrue(any(line.startswith("=> no checkpoint at") for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
