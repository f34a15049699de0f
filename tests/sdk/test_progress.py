"""The progress record: what the node agent reads, and the stacks that it asks for."""

import io
import json
import math
import os
import signal
import struct
import unittest
from unittest import mock

import support
import swell
from swell import progress, report


_SPAWNS = """
import multiprocessing
import swell
job = swell.Job()
def work():
    assert job.progress.step == 0
    print("the child has a job, too", flush=True)
if __name__ == "__main__":
    job.progress.enter("step", 7)
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
"""


class ProgressTest(support.FolderTest):
    def environ(self):
        return {"SWELL_REPORT_FILE": self.path("report.json")}

    def read(self, rank=0):
        return progress.read(self.path(f"progress-{rank}"))

    def test_the_layout(self):
        record = progress.ProgressRecord(3, 8, self.environ())
        record.total, record.epoch, record.epochs, record.repeated = 1 << 40, 2, 5, 1
        record.enter("save", 7)
        with open(self.path("progress-3"), "rb") as file:
            data = file.read()
        self.assertEqual(len(data), 96)
        fields = struct.unpack("<8sIIQQQIIIIIIQQQQ", data)
        self.assertEqual(fields[:5], (b"SWELLPR1", 4, 3, 7, 1 << 40))
        self.assertEqual(fields[6:], (2, 5, 3, 8, os.getpid(), 1, 0, 0, 0, 0))
        record.note_own(20, 3, 4, 1 << 50)
        with open(self.path("progress-3"), "rb") as file:
            self.assertEqual(struct.unpack("<QQQQ", file.read()[64:]), (20, 3, 4, 1 << 50))

    def test_a_new_process_begins_anew(self):
        progress.ProgressRecord(0, 1, self.environ()).enter("step", 7)
        self.assertEqual((self.read()["phase"], self.read()["step"]), ("step", 7))
        progress.ProgressRecord(0, 1, self.environ())
        self.assertEqual((self.read()["phase"], self.read()["step"]), ("init", 0))

    def test_a_spawned_process_that_imports_the_script_leaves_the_record_alone(self):
        with open(self.path("script.py"), "w", encoding="utf-8") as file:
            file.write(_SPAWNS)
        process = support.start(self, [self.path("script.py")], SWELL_REPORT_FILE=self.path("report.json"))
        status, output = support.finish(process)
        self.assertEqual((status, output), (0, "the child has a job, too\n"))
        found = self.read()
        self.assertEqual((found["phase"], found["step"], found["pid"]), ("step", 7, process.pid))

    def test_what_is_no_record_is_none(self):
        self.assertIsNone(self.read())
        for data in (b"", b"x" * 95, b"x" * 96, b"SWELLPR1" + struct.pack("<II", 3, 0) + bytes(80),
                     b"SWELLPR1" + struct.pack("<II", 2, 99) + bytes(80)):
            with self.subTest(data=data), open(self.path("progress-0"), "wb") as file:
                file.write(data)
                file.flush()
                self.assertIsNone(self.read())

    def test_without_a_report_file_there_is_no_record(self):
        record = progress.ProgressRecord(0, 1, {})
        record.enter("step", 7)
        self.assertEqual((record.phase, record.step), ("step", 7))

    def test_a_phase_that_is_none_is_named(self):
        with self.assertRaisesRegex(ValueError, "^phase 'train' is not one of init, step, eval, save, load, data, do"):
            progress.ProgressRecord(0, 1, {}).enter("train")

    def test_a_folder_that_does_not_exist_ends_nothing(self):
        with mock.patch("sys.stderr"):
            record = progress.ProgressRecord(0, 1, {"SWELL_REPORT_FILE": self.path("none", "report.json")})
            record.enter("step", 7)
        self.assertEqual((record.phase, record.step), ("step", 7))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_job_shows_its_phases(self):
        with mock.patch.dict(os.environ, self.environ()):
            job = swell.Job(checkpoints=swell.CheckpointManager(self.path("checkpoints")), env=swell.Env())
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        self.assertEqual(self.read()["phase"], "init")
        job.restore()
        job.step_done(5, {"step": 5}, epoch=1)
        self.assertEqual({key: self.read()[key] for key in ("phase", "step", "epoch")},
                         {"phase": "step", "step": 5, "epoch": 1})
        with job.phase("eval"):
            self.assertEqual(self.read()["phase"], "eval")
        self.assertEqual(self.read()["phase"], "step")

    def test_a_job_that_only_asks_whether_to_stop_moves(self):
        """Otherwise it would be taken for one that hangs."""
        checkpoints = swell.CheckpointManager(self.path("checkpoints"))
        checkpoints.save(7, {"step": 7})
        with mock.patch.dict(os.environ, self.environ()):
            job = swell.Job(checkpoints=checkpoints, env=swell.Env())
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job.restore()
        before = self.read()
        self.assertEqual((before["phase"], before["step"]), ("init", 7))
        self.assertFalse(job.should_stop())
        after = self.read()
        self.assertEqual((after["phase"], after["step"]), ("init", 7))
        self.assertGreater(after["monotonic_ns"], before["monotonic_ns"])
        self.assertFalse(job.should_stop(8))
        self.assertEqual((self.read()["phase"], self.read()["step"]), ("step", 8))
        job.save(9, {"step": 9})
        self.assertEqual((self.read()["phase"], self.read()["step"]), ("step", 9))

    def test_numbers_that_are_not_finite_are_reported_as_texts(self):
        environ = self.environ()
        report.report_checkpoint(5, report.now(), metrics={"loss": math.inf, "accuracy": 0.5}, environ=environ)
        report.report_progress({"training_step": 6, "loss": math.nan}, environ)

        def refuse(constant):
            raise ValueError(constant)

        with open(environ["SWELL_REPORT_FILE"], encoding="utf-8") as file:
            content = json.load(file, parse_constant=refuse)
        self.assertEqual(content["step"], 5)
        self.assertEqual(content["metrics"], {"loss": "NaN", "accuracy": 0.5, "training_step": 6})

    def test_a_loss_that_is_not_finite_is_said_once(self):
        with mock.patch.dict(os.environ, self.environ()):
            job = swell.Job(checkpoints=swell.CheckpointManager(self.path("checkpoints")), env=swell.Env())
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        with mock.patch("sys.stderr", new_callable=io.StringIO) as said:
            for loss in (0.5, math.nan, math.nan, 0.25, math.inf):
                job.log(loss=loss)
        self.assertEqual(said.getvalue(), "swell: loss is not a finite number at step 0 (nan)\n"
                                          "swell: loss is not a finite number at step 0 (inf)\n")

    def test_a_signal_writes_the_stacks_while_native_code_runs(self):
        script = ("import swell, ctypes, os\n"
                  "job = swell.Job()\n"
                  "def waits_here():\n"
                  "    print('ready', flush=True)\n"
                  "    ctypes.PyDLL(None).pause()\n"  # holds the GIL
                  "    ctypes.PyDLL(None).pause()\n"
                  "waits_here()\n")
        process = support.start(self, ["-c", script], SWELL_REPORT_FILE=self.path("report.json"))
        self.assertEqual(process.stdout.readline(), "ready\n")

        def stacks():
            process.send_signal(signal.SIGUSR1)
            with open(self.path("stacks-0"), encoding="utf-8") as file:
                return "in waits_here" in file.read()

        self.assertTrue(support.until(stacks))


if __name__ == "__main__":
    unittest.main()
