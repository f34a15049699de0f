"""Event files of TensorBoard: the bytes, what a resumed run continues, and that nothing of it ends a training.

The reader here knows the format by itself. Where TensorBoard is installed, it reads the same files.
"""

import math
import os
import signal
import struct
import unittest
from unittest import mock

import support
import swell
from swell import scalars


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields(data):
    """[(number, value)] of a protobuf message."""
    at, found = 0, []
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = struct.unpack("<d" if size == 8 else "<f", data[at : at + size])[0], at + size
        found.append((key >> 3, value))
    return found


def read_events(path):
    """[(step, what)]: a version, ("start",) or {tag: value}. Checks both checksums of each record."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        length, crc = struct.unpack("<QI", data[at : at + 12])
        assert crc == scalars.masked_crc(data[at : at + 8])
        content = data[at + 12 : at + 12 + length]
        assert struct.unpack("<I", data[at + 12 + length : at + 16 + length])[0] == scalars.masked_crc(content)
        at += 16 + length
        event = dict(fields(content))
        if 3 in event:
            found.append((event[2], event[3].decode()))
        elif 7 in event:
            assert fields(event[7]) == [(1, 1)]
            found.append((event[2], "start"))
        else:
            values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
            found.append((event[2], {value[1].decode(): value[2] for value in values}))
    return found


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


class ScalarsTest(support.FolderTest):
    def files(self):
        return sorted(os.listdir(self.path("logs")))

    def events(self, at=-1):
        return read_events(self.path("logs", self.files()[at]))

    def writer(self, clock=None):
        clock = clock or Clock()
        return scalars.Scalars(self.path("logs"), clock, clock)

    def test_the_checksum_is_castagnolis(self):
        # RFC 3720, B.4.
        self.assertEqual(scalars.crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(scalars.crc32c(b"\xff" * 32), 0x62A8AB43)
        self.assertEqual(scalars.crc32c(bytes(range(32))), 0x46DD794E)

    def test_a_file_says_version_start_and_values(self):
        writer = self.writer()
        writer.add(300, {"loss": 0.5, "größe": 4})
        writer.close()
        self.assertEqual(
            self.events(), [(0, "brain.Event:2"), (300, "start"), (300, {"loss": 0.5, "größe": 4.0})]
        )

    def test_nothing_is_made_before_the_first_event(self):
        self.writer().flush()
        self.assertFalse(os.path.exists(self.path("logs")))

    def test_without_a_folder_nothing_happens(self):
        writer = scalars.Scalars(None)
        writer.add(1, {"loss": 1})
        self.assertFalse(writer.due)
        self.assertEqual(os.listdir(self.folder), [])

    def test_events_wait_in_the_buffer_for_two_seconds(self):
        clock = Clock()
        writer = self.writer(clock)
        writer.add(1, {"loss": 1})
        self.assertEqual(self.events(), [])
        clock.now += 2
        writer.add(2, {"loss": 2})
        self.assertEqual([step for step, _ in self.events()], [0, 1, 1, 2])

    def test_the_buffer_is_bounded(self):
        writer = self.writer()
        for step in range(2000):
            writer.add(step, {"loss": step})
            self.assertLess(len(writer._buffer), scalars._BUFFER_BYTES + 100)
        self.assertGreater(len(self.events()), 1000)

    def test_a_long_run_has_a_point_a_second(self):
        clock = Clock()
        writer = self.writer(clock)
        for step in range(scalars._DENSE_EVENTS):
            self.assertTrue(writer.due)
            writer.add(step, {"loss": 1})
        self.assertFalse(writer.due)
        clock.now += 1
        self.assertTrue(writer.due)

    def test_files_sort_in_their_order_also_when_the_clock_goes_back(self):
        clock = Clock()
        for step in (1, 2, 3):
            writer = self.writer(clock)
            writer.add(step, {"loss": 1})
            writer.close()
            clock.now -= 1000
        self.assertEqual([self.events(at)[-1][0] for at in range(3)], [1, 2, 3])

    def test_a_full_disk_leaves_whole_records(self):
        writer = self.writer()
        writer.add(1, {"loss": 1})
        writer.flush()
        writer.add(2, {"loss": 2})
        real = os.write

        def full(handle, data):
            if len(data) > 5:
                return real(handle, data[:5])
            raise OSError(28, "No space left on device")

        with mock.patch("os.write", full), mock.patch("sys.stderr") as stderr:
            writer.flush()
            writer.add(3, {"loss": 3})
            writer.flush()
        said = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertEqual(said.count("No space left"), 1)
        writer.add(4, {"loss": 4})
        writer.close()
        self.assertEqual([step for step, _ in self.events()], [0, 1, 1, 4])

    def test_a_file_ends_at_its_limit(self):
        writer = self.writer()
        with mock.patch.object(scalars, "_FILE_BYTES", 500), mock.patch("sys.stderr") as stderr:
            for step in range(100):
                writer.add(step, {"loss": 1})
                writer.flush()
        self.assertIn("scalars end here", "".join(call.args[0] for call in stderr.write.call_args_list))
        self.assertLessEqual(os.path.getsize(self.path("logs", self.files()[0])), 500)
        self.assertGreater(len(self.events()), 3)

    def test_values_that_are_no_numbers_end_nothing(self):
        writer = self.writer()
        with mock.patch("sys.stderr"):
            writer.add(1, {"loss": "much"})
            writer.add(2, {"x" * 201: 1})
            writer.add("three", {"loss": 1})
        writer.add(4, {"loss": math.nan})
        writer.add(5, {"loss": 1e300})
        writer.close()
        events = self.events()
        self.assertTrue(math.isnan(events[2][1]["loss"]))
        self.assertEqual(events[3:], [(5, {"loss": math.inf})])

    def test_tags_are_bounded(self):
        writer = self.writer()
        with mock.patch("sys.stderr"):
            for number in range(1100):
                writer.add(1, {f"tag-{number}": 1})
        writer.close()
        self.assertEqual(len(self.events()), 2 + 1000)

    def test_a_folder_that_cannot_be_made_is_said_once(self):
        with open(self.path("logs"), "w", encoding="utf-8"):
            pass
        writer = self.writer()
        with mock.patch("sys.stderr") as stderr:
            for step in range(5):
                writer.add(step, {"loss": 1})
        said = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertEqual(said.count("swell: "), 1)

    def test_a_forked_process_writes_nothing_again(self):
        writer = self.writer()
        writer.add(1, {"loss": 1})
        child = os.fork()
        if child == 0:
            writer.flush()
            os._exit(0)
        os.waitpid(child, 0)
        writer.close()
        self.assertEqual(len(self.events()), 3)

    def test_learning_rates_of_groups(self):
        class Optimizer:
            param_groups = [{"lr": 0.1}, {"lr": 0.2}, {"lr": "auto"}]

        self.assertEqual(scalars.rates_of([Optimizer(), object()]), {"learning_rate": 0.1, "learning_rate/1": 0.2})


class JobTest(support.FolderTest):
    def job(self, **options):
        job = swell.Job(
            checkpoints=swell.CheckpointManager(self.path("checkpoints")), log_dir=self.path("logs"),
            **{"env": swell.Env(), **options}
        )
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        return job

    def events(self, at=-1):
        files = sorted(os.listdir(self.path("logs")))
        return read_events(self.path("logs", files[at]))

    def test_a_step_shows_what_was_logged_and_the_rates(self):
        class Optimizer:
            param_groups = [{"lr": 0.25}]

        job = self.job()
        job.restore()
        job.show_rates([Optimizer()])
        job.log(loss=2)
        job.step_done(1, {"step": 1})
        job.scalar("grad_norm", 3)  # of step 2, which is under way
        with job.phase("eval"):
            job.scalar("accuracy", 0.5)
        job.scalar("late", 1, step=7)
        job._scalars.close()
        self.assertEqual(
            self.events()[1:],
            [(1, "start"), (1, {"loss": 2.0, "learning_rate": 0.25}), (2, {"grad_norm": 3.0}),
             (1, {"accuracy": 0.5}), (7, {"late": 1.0})],
        )

    def test_a_resumed_run_continues_behind_its_checkpoint(self):
        job = self.job()
        job.restore()
        for step in range(1, 8):
            job.log(loss=step)
            job.step_done(step, {"step": step})
            if step == 5:
                job.save(5, {"step": 5})
        job._scalars.close()
        job = self.job()
        self.assertEqual(job.restore().step, 5)
        job.step_done(6, {"step": 6}, metrics={})
        job.scalar("x", 1)
        job._scalars.close()
        self.assertEqual(len(os.listdir(self.path("logs"))), 2)
        self.assertEqual(self.events()[1], (6, "start"))

    def test_the_speed_is_a_curve(self):
        job = self.job()
        job.restore()
        with mock.patch.object(job._speed, "_clock", mock.Mock(side_effect=[0.0, 4.0])):
            job.step_done(1, {"step": 1}, records=8)
            job.step_done(2, {"step": 2}, records=8)
        job._scalars.close()
        self.assertEqual(
            self.events()[-1],
            (2, {"swell/world": 1.0, "swell/steps_per_second": 0.25, "swell/records_per_second": 2.0}),
        )

    def test_other_ranks_write_nothing(self):
        job = self.job(env=swell.Env(rank=1, world=2))
        job.scalar("loss", 1)
        job._scalars.close()
        self.assertFalse(os.path.exists(self.path("logs")))

    def test_a_process_that_ends_leaves_all_of_its_events(self):
        script = "import swell\njob = swell.Job()\njob.restore()\njob.scalar('loss', 1)\n"
        process = support.start(self, ["-c", script], SWELL_LOG_DIR=self.path("logs"),
                                SWELL_CHECKPOINT_DIR=self.path("checkpoints"))
        self.assertEqual(support.finish(process), (0, ""))
        self.assertEqual(self.events()[-1][1], {"loss": 1.0})


class TensorBoardTest(support.FolderTest):
    def test_tensorboard_reads_it_and_drops_repeated_steps(self):
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("TensorBoard is not installed")
        writer = scalars.Scalars(self.path("logs"))
        for step in range(1, 8):
            writer.add(step, {"loss": step, "swell/world": 4})
        writer.close()
        writer = scalars.Scalars(self.path("logs"))
        writer.begin(6)
        writer.add(6, {"loss": 60})
        writer.close()
        read = EventAccumulator(self.path("logs"))
        read.Reload()
        self.assertEqual(sorted(read.Tags()["scalars"]), ["loss", "swell/world"])
        self.assertEqual([(point.step, point.value) for point in read.Scalars("loss")],
                         [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 60)])


if __name__ == "__main__":
    unittest.main()
