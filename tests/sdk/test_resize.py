"""Elastic jobs change size in memory: no process restarts, no step is lost, no record is trained twice."""

import contextlib
import errno
import glob
import io
import os
import re
import signal
import socket
import unittest
from types import SimpleNamespace
from unittest import mock

import support
import swell
import torch
from members import Members
from swell import abort, resize
from swell.rendezvous import JobEnded, RendezvousClient


class ElasticTest(support.FolderTest):
    def undisturbed(self, **options):
        job = Members(self, most=1, **options)
        job.start(0)
        self.assertEqual(job.finish(0), [0])
        return job.end_of(0)

    def assert_same_training(self, job, ordinal, expected):
        end = job.end_of(ordinal)
        self.assertEqual(end["step"], expected["step"])
        self.assertAlmostEqual(end["loss"], expected["loss"], places=4)
        self.assertAlmostEqual(end["weights"], expected["weights"], places=2)


class ResizeTest(ElasticTest):
    def test_shrinks_and_grows_without_a_restart(self):
        expected = self.undisturbed(epochs=3)
        job = Members(self, most=4, epochs=3, gather={5: 4, 30: 4})
        job.start(0, 1)
        job.start(2, 3, lose_at=[12])
        self.assertEqual(job.finish(2, 3), [143, 143])
        job.start(2, 3)
        self.assertEqual(job.finish(0, 1, 2, 3), [0, 0, 0, 0])
        # They leave together. They may come back together or one after the other.
        sizes = job.sizes(0)
        self.assertEqual([sizes[step] for step in (6, 12, 13, 31, job.steps)], [4, 4, 2, 4, 4])
        job.assert_each_record_once()
        self.assert_same_training(job, 0, expected)
        # One process trained from the first step to the last, each step once.
        self.assertEqual(job.log(0).count("begins "), 1)
        steps = [int(n) for n in re.findall(r"^step (\d+) ", job.log(0), re.M)]
        self.assertEqual(steps, list(range(1, job.steps + 1)))
        # The only checkpoint is the one at the end.
        self.assertEqual(len(glob.glob(os.path.join(job.checkpoints, "*"))), 2)

    def test_the_first_member_may_leave_and_come_back(self):
        expected = self.undisturbed(epochs=3)
        job = Members(self, most=3, epochs=3, gather={5: 3, 30: 3})
        job.start(0, lose_at=[9])
        job.start(1, 2)
        self.assertEqual(job.finish(0), [143])
        job.start(0)
        self.assertEqual(job.finish(0, 1, 2), [0, 0, 0])
        # Its rank comes after those of the others, which kept the state.
        self.assertIn("begins rank 2 of 3", job.log(0))
        self.assertEqual([job.sizes(1)[step] for step in (6, 9, 10, 31)], [3, 3, 2, 3])
        self.assertIn("step 10 rank 0 of 2", job.all_logs())
        job.assert_each_record_once()
        self.assert_same_training(job, 1, expected)

    def test_when_members_leave_one_by_one_the_last_one_saves(self):
        expected = self.undisturbed(epochs=2)
        job = Members(self, most=3, epochs=2, gather={5: 3})
        job.start(0, lose_at=[20])
        job.start(1, lose_at=[15])
        job.start(2, lose_at=[10])
        self.assertEqual(job.finish(0, 1, 2), [143, 143, 143])
        self.assertIn("checkpoint saved step=20 reason=notice", job.log(0))
        job.start(0, 1, 2)
        self.assertEqual(job.finish(0, 1, 2), [0, 0, 0])
        self.assertRegex(job.log(0), r"begins rank 0 of \d at step 20")
        job.assert_each_record_once()
        self.assert_same_training(job, 0, expected)

    def test_all_members_leave_at_once(self):
        job = Members(self, most=2, epochs=2, gather={5: 2})
        job.start(0, 1, lose_at=[7])
        self.assertEqual(job.finish(0, 1), [143, 143])
        self.assertIn("checkpoint saved step=7 reason=notice", job.all_logs())

    def test_starts_with_the_members_that_came(self):
        job = Members(self, most=4, least=2, epochs=1)
        job.start(0, 1)
        self.assertEqual(job.finish(0, 1), [0, 0])
        self.assertIn("begins rank 0 of 2 at step 0", job.log(0))

    def test_a_member_that_joined_keeps_copies_in_memory_too(self):
        memory = self.path("memory")
        os.mkdir(memory)
        job = Members(self, most=2, gather={5: 2})
        job.start(0, SWELL_CHECKPOINT_SECONDS="0.001")
        job.wait(0, "step 3 ")
        job.start(1, lose_at=[30], SWELL_MEMORY_DIR=memory)
        self.assertEqual(job.finish(0, 1), [0, 143])
        self.assertIn("begins rank 1 of 2 at step 5", job.log(1))
        self.assertNotIn("no copy in memory", job.all_logs())
        self.assertTrue(glob.glob(os.path.join(memory, "swell-*", "[ab]")), job.log(1))

    def test_a_member_that_comes_too_late_exits_with_success(self):
        job = Members(self, most=2, epochs=1, wait_at_end=True)
        job.start(0)
        job.wait(0, "trained")
        job.start(1)
        self.assertEqual(job.finish(0, 1), [0, 0])
        job.assert_each_record_once()


class GroupTest(unittest.TestCase):
    """The order in which wrappers and groups end."""

    def setUp(self):
        self.group = resize.Group.__new__(resize.Group)
        self.group.env = SimpleNamespace(world=2, rank=0, elastic=True)
        self.group.generation = 1
        self.group.broken = None
        self.group._roster = [["", 1], ["", 2]]
        self.group._sockets = set()
        self.group._peers = mock.Mock(port=1, **{"reunite.return_value": None, "sockets.return_value": []})
        self.group._server = None
        self.group._client = mock.Mock(waiting=[])
        self.group._new_client = lambda: mock.Mock(waiting=[])
        self.group._open_store = lambda: (None, "", 1)
        self.group._broadcast = lambda plan, leader: plan
        self.calls = mock.Mock()
        for name, made in (("_form", self.calls.form), ("_join", self.calls.join)):
            setattr(self.group, name, made)
        patches = (mock.patch("torch.distributed.destroy_process_group", self.calls.destroy),
                   mock.patch("torch.distributed.is_initialized", lambda: True),
                   mock.patch.object(resize, "replace", lambda env, **changed: env))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def order(self):
        return [call[0] for call in self.calls.mock_calls]

    # If a wrapper holds the last reference to its group, the process hangs when the wrapper is released.
    def test_wrappers_are_released_before_the_group_ends(self):
        self.assertTrue(self.group.change((1,), [self.calls.wrapper], None))
        self.assertEqual(self.order(), ["wrapper.release", "destroy", "form"])

    def test_wrappers_are_released_first_when_peers_are_lost_too(self):
        self.group.rejoin([self.calls.wrapper], 3, {})
        self.assertEqual(self.order(), ["wrapper.release", "destroy", "join"])

    def test_a_peer_may_be_lost_while_the_group_is_formed(self):
        """Which of torch's sockets are the group's is known only when it is complete."""
        before, far = socket.socketpair()
        with before, far:
            self.group._sockets_before, self.group._sockets = abort.sockets(), None
            self.group._client.sockets.return_value = []
            ours, theirs = socket.socketpair()
            with ours, theirs:
                self.group.rejoin([self.calls.wrapper], 3, {})
                self.assertEqual(theirs.recv(1), b"")
            before.send(b"x")
            self.assertEqual(far.recv(1), b"x")
        self.assertEqual(self.order(), ["wrapper.release", "destroy", "join"])

    def test_a_rank_that_leaves_does_not_look_for_a_leader_that_has_ended(self):
        """All got a notice, and the leader a moment later than this rank. It ends within its grace all the same."""
        self.group._on_first_member = False
        with mock.patch("torch.distributed.TCPStore") as store, contextlib.redirect_stderr(io.StringIO()) as errors:
            self.group._wait_until_formed({"host": "127.0.0.1", "port": support.free_port()})
        store.assert_not_called()
        self.assertIn("may not have formed their group yet", errors.getvalue())

    def test_a_leader_does_not_look_for_the_first_member_to_know_its_own_address(self):
        del self.group._open_store
        self.group._on_first_member = False
        self.group._roster = [["10.0.0.7", 1], ["10.0.0.8", 2]]
        with mock.patch("torch.distributed.TCPStore", return_value=mock.Mock(port=5)):
            with mock.patch("socket.socket", side_effect=AssertionError("it looked for the first member")):
                _, host, port = self.group._open_store()
        self.assertEqual((host, port), ("10.0.0.7", 5))

    def test_a_group_gives_up_when_a_waiting_member_trained_further(self):
        self.group.env = SimpleNamespace(world=1, rank=0, elastic=True)
        self.group._flags = torch.zeros(6, dtype=torch.uint8)
        self.group._client = RendezvousClient("127.0.0.1", 1, "job", 0, 1, 2)
        self.group._client._waiting = [{"id": "1", "ordinal": 1, "step": 19}, {"id": "2", "ordinal": 2, "step": None}]
        self.assertEqual(self.group.agree(False, 18), ((), True, True, False))
        self.assertEqual(self.group.agree(False, 19), ((), True, False, False))
        self.assertEqual(self.group.agree(False, 19, save=True), ((), True, False, True))


class LauncherTest(unittest.TestCase):
    def test_an_address_of_the_scripts_own_is_told(self):
        held = socket.socket()  # so that nobody else listens there
        self.addCleanup(held.close)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        env = swell.Env(world=2, under_agent=True, master_addr="127.0.0.1", master_port=port)
        text = f"^nobody listens at MASTER_ADDR:MASTER_PORT, 127.0.0.1:{port}: the launcher sets both"
        with mock.patch.dict(os.environ, {"TORCHELASTIC_USE_AGENT_STORE": "True"}):
            with self.assertRaisesRegex(RuntimeError, text):
                resize.init_group(env, "gloo", None)


class LossTest(ElasticTest):
    """A member that dies in the middle of a step: by a kill -9, or by a notice that is shorter than the step."""

    def test_the_others_repeat_the_step(self):
        self.lose_in_a_step(noticed=False)

    def test_the_others_repeat_the_step_after_a_notice_that_is_shorter_than_it(self):
        self.lose_in_a_step(noticed=True)

    def lose_in_a_step(self, noticed):
        expected = self.undisturbed(epochs=2)
        job = Members(self, most=3, epochs=2, gather={5: 3, 30: 2})
        job.start(0, 1)
        job.start(2, kill_at=[20], noticed=noticed)
        self.assertEqual(job.finish(2), [-signal.SIGKILL])
        self.assertEqual(job.finish(0, 1), [0, 0])
        for ordinal in (0, 1):
            self.assertIn("step 19: lost a peer", job.log(ordinal))
            # They continued from memory: there was no checkpoint, and no process restarted.
            self.assertEqual(job.log(ordinal).count("begins "), 1)
            # They form a group at once, or one trains alone until the other joins it.
            self.assertEqual([job.sizes(ordinal)[step] for step in (19, 31)], [3, 2])
        job.assert_each_record_once()
        self.assert_same_training(job, 0, expected)

    def test_the_first_member_comes_back_and_gets_the_state_of_the_others(self):
        expected = self.undisturbed(epochs=3)
        job = Members(self, most=3, epochs=3, gather={5: 3, 30: 3})
        job.start(0, kill_at=[20])
        job.start(1, 2)
        self.assertEqual(job.finish(0), [-signal.SIGKILL])
        job.start(0)
        self.assertEqual(job.finish(0, 1, 2), [0, 0, 0])
        first, second = re.findall(r"begins rank \d of \d at step (\d+)", job.log(0))
        self.assertEqual(int(first), 0)
        self.assertGreaterEqual(int(second), 19)
        job.assert_each_record_once()
        self.assert_same_training(job, 1, expected)

    def test_a_member_that_lost_its_peers_exits_when_the_job_has_ended(self):
        job = swell.Job(env=swell.Env())
        job._group = mock.Mock()
        job._group.rejoin.side_effect = JobEnded
        job._group.broken = None
        with self.assertRaises(SystemExit) as left, job.guard(lambda: {"step": 3}, None):
            raise RuntimeError("gloo: Connection closed by peer")
        self.assertEqual(left.exception.code, 0)

    def test_a_state_that_does_not_tell_its_step_is_of_the_one_last_done(self):
        for state, step in (({"iteration": 9}, 7), ({"step": 3}, 3), ([9], 7)):
            job, loaded = swell.Job(env=swell.Env()), []
            job._group = mock.Mock(broken=None, env=swell.Env())
            job._group.rejoin.return_value = None
            job.progress.enter("step", 7)
            with job.guard(lambda state=state: state, loaded.append):
                raise RuntimeError("gloo: Connection closed by peer")
            self.assertEqual(job._group.rejoin.call_args[0][1], step)
            self.assertEqual((loaded, job.progress.step), ([state], step))

    def test_a_network_that_comes_too_late_is_told(self):
        job = swell.Job(env=swell.Env(world=2))
        with mock.patch("swell.report.complain") as complain:
            job.parallel(torch.nn.Linear(1, 1))
            complain.assert_not_called()
            job._joined, job._group = True, mock.Mock()
            job.parallel(torch.nn.Linear(1, 1))
        self.assertIn("make all networks before", complain.call_args[0][0])

    def test_a_guarded_step_says_whether_it_is_repeated(self):
        job = swell.Job(env=swell.Env())
        job._group = mock.Mock()
        job._group.broken = None
        with job.guard(lambda: {"step": 3}, None) as guarded:
            pass
        self.assertFalse(guarded.repeats)
        with mock.patch.object(job, "_recover") as recover, job.guard(lambda: {"step": 3}, None) as guarded:
            raise RuntimeError("gloo: Connection closed by peer")
        self.assertTrue(guarded.repeats)
        recover.assert_called_once()


class DiskTest(ElasticTest):
    def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(self):
        expected = self.undisturbed(epochs=2)
        job = Members(self, most=2, epochs=2, gather={5: 2, 10: 2})
        for step in (7, 30):
            job.start(0, 1, lose_at=[step])
            self.assertEqual(job.finish(0, 1), [143, 143])
        (damaged,) = glob.glob(os.path.join(job.checkpoints, "step-000000000030-*.state"))
        os.truncate(damaged, os.path.getsize(damaged) // 2)
        job.start(0, 1)
        self.assertEqual(job.finish(0, 1), [0, 0])
        self.assertIn("swell: skipping checkpoint of step 30: ", job.log(0))
        self.assertRegex(job.log(0), r"begins rank 0 of \d at step 7\b")
        self.assert_same_training(job, 0, expected)

    def test_a_full_disk_costs_no_training(self):
        job = swell.Job(checkpoints=swell.CheckpointManager(self.folder), env=swell.Env())
        self.assertTrue(job.save(1, {"step": 1}))
        said = io.StringIO()
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch("swell.checkpoint.CheckpointManager._write_bytes", side_effect=full):
            with contextlib.redirect_stderr(said):
                self.assertFalse(job.save(2, {"step": 2}))
                # A notice now: the job keeps the earlier checkpoint and does not claim a new one.
                with self.assertRaises(SystemExit) as left:
                    job.stop(2, {"step": 2})
        self.assertEqual(left.exception.code, swell.EXIT_NOT_SAVED)
        self.assertIn(
            "swell: checkpoint of step 2 not saved, training continues: No space left on device", said.getvalue()
        )
        self.assertEqual(job.checkpoints.load().step, 1)
        self.assertTrue(job.save(3, {"step": 3}))
        self.assertEqual(job.checkpoints.load().state["state"], {"step": 3})


if __name__ == "__main__":
    unittest.main()
