"""Copies of a state in memory: whole, of one moment, and in pages that were touched before."""

import os
from collections import OrderedDict
from unittest import mock

import support
import torch
from swell import memory, snapshot


class SnapshotTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        self.copies = memory.MemoryCopies(self.path("checkpoints"), {"SWELL_MEMORY_DIR": self.folder})
        self.copies.run = "run"

    def write(self, state, step=1):
        with self.copies.alone():
            return self.copies.write(step, state, str(step))

    def assert_same(self, found, state):
        self.assertEqual(type(found), type(state))
        if isinstance(state, dict):
            self.assertEqual(list(found), list(state))
            for key in state:
                self.assert_same(found[key], state[key])
        elif isinstance(state, (list, tuple)):
            self.assertEqual(len(found), len(state))
            for one, other in zip(found, state):
                self.assert_same(one, other)
        elif isinstance(state, torch.Tensor):
            self.assertEqual((found.dtype, found.shape, found.requires_grad),
                             (state.dtype, state.shape, state.requires_grad))
            self.assertTrue(torch.equal(found, state))
        else:
            self.assertEqual(found, state)

    def test_every_kind_of_tensor_comes_back(self):
        state = {
            "types": [torch.arange(7).to(kind) for kind in (torch.float16, torch.bfloat16, torch.bool, torch.int8,
                                                            torch.complex64, torch.float64)],
            "strange": [torch.arange(12.0).reshape(3, 4).t()[1:], torch.zeros(0, 3), torch.tensor(3.5)],
            "parameter": torch.nn.Parameter(torch.ones(3)),
            "rest": (1, 2.5, None, "text", b"bytes", True, torch.Size([2]), {1: [2]}),
        }
        self.assert_same(self.write(state).state(), state)

    def test_tensors_that_share_their_memory_share_it_in_the_copy(self):
        whole = torch.arange(1000.0)
        found = self.write({"whole": whole, "part": whole[10:20], "bytes": whole.view(torch.uint8)}).state()
        self.assertTrue(torch.equal(found["bytes"], whole.view(torch.uint8)))
        found["whole"][10] = 7.0
        self.assertEqual(found["part"][0], 7.0)

    def test_a_model_and_its_optimizer_come_back(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(5, 4)).sum().backward()
        optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        found = self.write(state).state()
        self.assert_same(found, state)
        self.assertIsInstance(found["model"], OrderedDict)
        self.assertEqual(found["model"]._metadata, state["model"]._metadata)

    def test_what_changes_before_it_is_whole_is_not_in_it(self):
        state = {"tensor": torch.zeros(5), "list": [1], "bytes": bytearray(b"a")}
        with self.copies.alone():
            begun = self.copies.begin(1, state, "1")
            self.assertIsNone(self.copies.newest())
            state["tensor"].fill_(1)
            state["list"].append(2)
            state["bytes"][0] = 0
            copy = begun.finish()
        found = copy.state()
        self.assertEqual((found["tensor"].sum(), found["list"], bytes(found["bytes"])), (0, [1], b"a"))

    def test_what_only_pickle_can_copy_is_copied_at_once(self):
        state = {"tensor": torch.zeros(5), "object": torch.nn.Linear(2, 2)}
        with self.copies.alone(), mock.patch("sys.stderr"):
            begun = self.copies.begin(1, state, "1")
            state["object"].weight.data.fill_(9)
            found = begun.finish().state()
        self.assertNotEqual(found["object"].weight[0, 0], 9)

    def test_the_same_pages_are_written_again(self):
        state = {"tensor": torch.randn(1 << 20)}
        slots = self.copies._mapped
        self.write(state, 1)
        self.write(state, 2)
        before = {name: slot._map for name, slot in slots.items()}
        for step in (3, 4):
            state["tensor"].fill_(step)
            self.assert_same(self.write(state, step).state(), state)
        self.assertEqual({name: slot._map for name, slot in slots.items()}, before)

    def test_a_file_that_another_process_shortened_or_replaced_is_made_anew(self):
        state = {"tensor": torch.randn(1 << 16)}
        for step in (1, 2):
            self.write(state, step)
        os.truncate(os.path.join(self.copies.dir, "a"), 0)
        os.remove(os.path.join(self.copies.dir, "b"))
        for step in (3, 4, 5):
            self.assert_same(self.write(state, step).state(), state)

    def test_a_state_that_grows_and_shrinks_comes_back(self):
        for step, size in enumerate((10, 1 << 18, 10, 1 << 19), 1):
            state = {"tensor": torch.full((size,), float(step))}
            self.assert_same(self.write(state, step).state(), state)

    def test_prepared_memory_keeps_the_copy_that_is_there(self):
        state = {"tensor": torch.randn(1 << 18)}
        self.write(state, 1)
        self.copies.prepare(8 << 20)
        self.assert_same(self.copies.newest().state(), state)
        with mock.patch.object(os, "posix_fallocate", side_effect=AssertionError("reserved in a save")):
            self.write({"tensor": torch.randn(1 << 20)}, 2)
            self.write({"tensor": torch.randn(1 << 20)}, 3)

    def test_large_states_are_copied_by_several_threads(self):
        state = {"tensor": torch.randn(1 << 21), "other": torch.arange(1 << 20)}
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.addCleanup(torch.set_num_threads, threads)
        with mock.patch.object(snapshot, "_THREADS_FROM_BYTES", 1 << 20), \
                mock.patch.object(snapshot, "_CHUNK_BYTES", 1 << 18), \
                mock.patch.object(os, "sched_getaffinity", return_value={0, 1, 2}):
            self.assert_same(self.write(state).state(), state)

    def test_a_copy_that_memory_is_too_small_for_leaves_the_one_before(self):
        state = {"tensor": torch.randn(1 << 16)}
        self.write(state, 1)
        with mock.patch.object(os, "posix_fallocate", side_effect=OSError(28, "No space left on device")):
            with self.assertRaises(OSError):
                self.write({"tensor": torch.randn(1 << 20)}, 2)
        self.assertEqual(self.copies.newest().index["step"], 1)
        self.assert_same(self.write(state, 3).state(), state)


if __name__ == "__main__":
    import unittest

    unittest.main()
