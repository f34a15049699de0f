"""The example, preempted at an exact step and resumed, ends with the weights of an undisturbed run."""

import json
import os
import re
import shutil
import signal
import unittest

import support

# 10 steps an epoch, 30 in all: the notice comes in the middle of the second epoch.
_SMALL = ["--epochs", "3", "--train-samples", "480", "--batch-size", "48", "--test-samples", "300"]
_STEPS = 30


class MnistTest(support.FolderTest):
    def start(self, folder, world, notice_at=None, noticed_rank=0, options=()):
        script = [support.MNIST, *_SMALL, "--log-interval", "5", *options]
        port = support.free_port()
        processes = []
        for rank in range(world):
            arguments = script
            if notice_at is not None:
                arguments = [os.path.join(support.HERE, "noticed.py"), str(notice_at), *script]
            extra = {"NOTICED_RANK": noticed_rank, "SWELL_CHECKPOINT_DIR": self.path(folder)}
            extra["SWELL_REPORT_FILE"] = self.path(f"{folder}-report-{rank}")
            extra["SWELL_TERMINATION_LOG"] = self.path(f"{folder}-message-{rank}")
            if world > 1:
                extra.update(RANK=rank, WORLD_SIZE=world, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            processes.append(support.start(self, arguments, **extra))
        return processes

    def run_job(self, code, *arguments, **options):
        """Rank 0's output, once every rank has ended with `code`."""
        results = [support.finish(process) for process in self.start(*arguments, **options)]
        for number, output in results:
            self.assertEqual(number, code, output)
        return results[0][1]

    def steps(self, folder):
        with open(self.path(folder, "steps-rank0.log"), encoding="utf-8") as file:
            return file.read().splitlines()

    def assert_each_step_once(self, folder):
        self.assertEqual(self.steps(folder), [f"step {n}" for n in range(1, _STEPS + 1)])

    def weights(self, folder):
        import torch

        from swell import CheckpointManager

        found = CheckpointManager(self.path(folder)).load()
        self.assertEqual(found.step, _STEPS)
        model = found.state["state"]["model"]
        return {name: value.numpy().tobytes() for name, value in model.items() if torch.is_tensor(value)}

    def load_json(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def check_preempted_equals_undisturbed(self, world, noticed_rank, resized_to=None):
        undisturbed = self.run_job(0, "undisturbed", world)
        first = self.run_job(143, "preempted", world, notice_at=13, noticed_rank=noticed_rank)
        self.assertIn("checkpoint saved step=13 reason=notice", first)
        self.assertEqual(len(self.steps("preempted")), 13)
        self.assertEqual(self.load_json("preempted-report-0")["step"], 13)
        for rank in range(world):
            self.assertEqual(self.load_json(f"preempted-message-{rank}"), {"checkpoint": {"step": 13}})
        shutil.copytree(self.path("preempted"), self.path("resized"))
        second = self.run_job(0, "preempted", world)
        self.assertIn("resumed from step=13", second)
        self.assert_each_step_once("undisturbed")
        self.assert_each_step_once("preempted")
        self.assertEqual(_accuracy(undisturbed), _accuracy(second))
        self.assertEqual(self.weights("undisturbed"), self.weights("preempted"))
        if resized_to:
            self.assertIn("resumed from step=13", self.run_job(0, "resized", resized_to))
            self.assert_each_step_once("resized")

    def test_one_process(self):
        self.check_preempted_equals_undisturbed(world=1, noticed_rank=0)

    def test_two_processes_when_only_the_second_gets_the_notice(self):
        self.check_preempted_equals_undisturbed(world=2, noticed_rank=1, resized_to=1)

    def test_a_signal_from_outside(self):
        (process,) = self.start("outside", 1, options=["--epochs", "1000", "--log-interval", "1"])
        for line in process.stdout:
            if "(global 3)" in line:
                break
        process.send_signal(signal.SIGTERM)
        code, output = support.finish(process)
        self.assertEqual(code, 143, output)
        saved = int(re.search(r"checkpoint saved step=(\d+) reason=notice", output).group(1))
        self.assertEqual(self.steps("outside"), [f"step {n}" for n in range(1, saved + 1)])

    def test_without_the_sdk(self):
        process = support.start(self, [support.MNIST, *_SMALL, "--epochs", "1"], PYTHONPATH="")
        code, output = support.finish(process)
        self.assertEqual(code, 0, output)
        self.assertIn("done steps=10", output)
        self.assertNotIn("checkpoint", output)


def _accuracy(output):
    return re.search(r"done steps=\d+ accuracy=([\d.]+)", output).group(1)


if __name__ == "__main__":
    unittest.main()
