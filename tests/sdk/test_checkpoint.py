"""Checkpoints are whole or do not count. Damage is tried at every byte."""

import json
import os
import unittest
from unittest import mock

import support
from swell import files
from swell.checkpoint import CheckpointManager, DamagedCheckpoint


class CheckpointTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        # Messages about damage go to stderr. Here they are expected.
        silence = mock.patch("sys.stderr")
        silence.start()
        self.addCleanup(silence.stop)
        self.environ = {"SWELL_REPORT_FILE": self.path("report.json")}
        self.manager = CheckpointManager(self.path("checkpoints"), keep=2, environ=self.environ)

    def state_file(self, step):
        (name,) = [n for n in self.listing() if n.startswith(f"step-{step:012d}-")]
        return os.path.join(self.manager.dir, name)

    def listing(self):
        return sorted(name for name in os.listdir(self.manager.dir) if name != ".lock")

    def test_nothing_saved_yet(self):
        self.assertIsNone(self.manager.latest())
        self.assertIsNone(self.manager.load())
        self.assertIsNone(self.manager.load(7))

    def test_save_and_load(self):
        self.manager.save(5, {"weights": [1, 2]}, epoch=1, metrics={"accuracy": 0.5})
        found = self.manager.load()
        self.assertEqual((found.step, found.state, found.epoch), (5, {"weights": [1, 2]}, 1))
        self.assertEqual(found.metrics, {"accuracy": 0.5})
        self.manager.save(6, b"opaque")
        self.assertEqual(self.manager.load().state, b"opaque")
        self.assertEqual(self.manager.load(5).step, 5)

    def test_folder_comes_from_the_environment(self):
        manager = CheckpointManager(environ={"SWELL_CHECKPOINT_DIR": self.path("elsewhere")})
        manager.save(1, b"x")
        self.assertIn("step-000000000001.json", os.listdir(self.path("elsewhere")))

    def test_only_the_last_ones_are_kept(self):
        for step in (1, 2, 3, 4):
            self.manager.save(step, b"%d" % step)
        self.assertEqual(self.manager.steps(), [4, 3])
        self.assertEqual(len(self.listing()), 4)

    def test_every_truncation_is_detected(self):
        self.manager.save(1, b"first")
        self.manager.save(2, b"second one")
        path = self.state_file(2)
        for length in range(len(b"second one")):
            with self.subTest(length=length):
                with open(path, "wb") as file:
                    file.write(b"second one"[:length])
                self.assertEqual(self.manager.load().state, b"first")
                self.assertRaises(DamagedCheckpoint, self.manager.load, 2)

    def test_every_flipped_byte_is_detected(self):
        self.manager.save(1, b"first")
        self.manager.save(2, b"second one")
        path = self.state_file(2)
        for place in range(len(b"second one")):
            data = bytearray(b"second one")
            data[place] ^= 0x40
            with open(path, "wb") as file:
                file.write(data)
            self.assertEqual(self.manager.latest(), 1)

    def test_every_truncated_manifest_is_detected(self):
        self.manager.save(1, b"first")
        self.manager.save(2, b"second")
        path = os.path.join(self.manager.dir, "step-000000000002.json")
        with open(path, "rb") as file:
            whole = file.read()
        for length in range(len(whole)):
            with open(path, "wb") as file:
                file.write(whole[:length])
            self.assertEqual(self.manager.latest(), 1, f"manifest cut at {length}")

    def test_a_manifest_cannot_point_outside_the_folder(self):
        self.manager.save(1, b"first")
        path = os.path.join(self.manager.dir, "step-000000000001.json")
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        manifest["file"] = "../../secret"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        self.assertIsNone(self.manager.load())

    def test_a_damaged_one_does_not_push_out_a_whole_one(self):
        self.manager.save(1, b"first")
        self.manager.save(2, b"second")
        os.truncate(self.state_file(2), 3)
        self.manager.save(3, b"third")
        os.truncate(self.state_file(3), 1)
        self.assertEqual(self.manager.load().state, b"first")

    def test_a_crash_at_any_call_leaves_the_earlier_checkpoint(self):
        for name in ("os.fsync", "os.replace", "os.chmod"):
            for nth in range(1, 5):
                self.crash_in_save(name, nth)

    def crash_in_save(self, name, nth):
        manager = CheckpointManager(self.path(f"{name}-{nth}"), environ={})
        manager.save(1, b"first")
        real, calls = getattr(os, name[3:]), []

        def failing(*arguments):
            calls.append(arguments)
            if len(calls) == nth:
                raise OSError("disk full")
            return real(*arguments)

        with mock.patch(name, failing):
            try:
                manager.save(2, b"second")
            except OSError:
                pass
        found = manager.load()
        self.assertIn((found.step, found.state), [(1, b"first"), (2, b"second")])
        left = [n for n in os.listdir(manager.dir) if n.startswith(files.TEMPORARY_PREFIX)]
        self.assertEqual(left, [])
        manager.save(3, b"third")
        self.assertEqual(manager.load().state, b"third")

    def test_saving_an_earlier_step_removes_later_ones(self):
        self.manager.save(10, b"ten")
        self.manager.save(20, b"twenty")
        self.manager.save(11, b"eleven")
        self.assertEqual(self.manager.steps(), [11, 10])

    def test_saving_a_step_again_replaces_it(self):
        self.manager.save(1, b"one")
        self.manager.save(1, b"uno")
        self.assertEqual(self.manager.load().state, b"uno")
        self.assertEqual(len(self.listing()), 2)

    def test_leftovers_of_a_killed_save_are_removed(self):
        os.makedirs(self.manager.dir)
        with open(os.path.join(self.manager.dir, files.TEMPORARY_PREFIX + "abc"), "wb"):
            pass
        self.manager.save(1, b"one")
        self.assertEqual(len(self.listing()), 2)

    def test_each_checkpoint_is_reported(self):
        self.manager.save(7, b"x", epoch=2, metrics={"loss": 0.25})
        with open(self.path("report.json"), encoding="utf-8") as file:
            content = json.load(file)
        self.assertRegex(content.pop("checkpointTime"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(content, {"step": 7, "epoch": 2, "metrics": {"loss": 0.25}})

    def test_a_report_that_cannot_be_written_does_not_fail_the_save(self):
        self.environ["SWELL_REPORT_FILE"] = self.path("missing", "report.json")
        self.manager.save(7, b"x")
        self.assertEqual(self.manager.latest(), 7)


if __name__ == "__main__":
    unittest.main()
