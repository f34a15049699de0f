"""State in plain form: what `job.batches` and scripts keep comes back equal, and torch loads it without trust."""

import io
import os
import pickle
import random
import unittest
from collections import Counter, OrderedDict
from types import SimpleNamespace
from unittest import mock

import numpy
import torch

import support
from swell import plain, random_state, snapshot
from swell.checkpoint import CheckpointManager, decode, encode


def by_pickle(state):
    """The bytes that Swell wrote before 0.1.0."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


class PlainTest(support.FolderTest):
    def test_every_kind_of_number_comes_back_equal(self):
        for code in "?bBhHiIlLqQefdFD":
            with self.subTest(code=code):
                array = numpy.array([[0, 1, 2], [3, 4, 5]]).astype(code)
                codec, data = encode({"array": array})
                self.assertEqual(codec, "tensors")
                back = decode(codec, data)["array"]
                self.assertEqual((back.dtype, back.shape), (array.dtype, array.shape))
                self.assertTrue((back == array).all())

    def test_arrays_of_any_shape_and_order(self):
        whole = numpy.arange(24.0).reshape(2, 3, 4)
        for array in (whole[0, 0, 0:0], numpy.array(5), whole.T, whole[:, ::2], numpy.asfortranarray(whole)):
            back = plain.restore(plain.flatten([array]))[0]
            self.assertEqual(back.shape, array.shape)
            self.assertTrue((back == array).all())
            back += 1  # a resumed script may change it

    def test_numbers_become_python_numbers(self):
        state = {"loss": numpy.float32(0.5), "seen": numpy.int64(7), "done": numpy.bool_(True)}
        self.assertEqual(decode(*encode(state)), {"loss": 0.5, "seen": 7, "done": True})

    def test_what_is_plain_is_not_copied(self):
        state = {"model": OrderedDict(w=torch.ones(2)), "steps": [1, (2, 3)], "name": "x", "none": None}
        self.assertIs(plain.flatten(state), state)

    def test_a_models_state_keeps_its_metadata(self):
        model = torch.nn.BatchNorm1d(2)
        back = decode(*encode({"keep": {"model": model.state_dict()}, "rng": numpy.zeros(1)}))
        self.assertEqual(back["keep"]["model"]._metadata, model.state_dict()._metadata)
        model.load_state_dict(back["keep"]["model"])

    def test_optimizers_and_schedules(self):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.Adam([weight], lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        weight.sum().backward()
        optimizer.step()
        schedule.step()
        state = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        codec, data = encode(state)
        self.assertEqual(codec, "tensors")
        back = decode(codec, data)
        optimizer.load_state_dict(back["optimizer"])
        schedule.load_state_dict(back["schedule"])
        average = state["optimizer"]["state"][0]["exp_avg"]
        self.assertTrue(torch.equal(back["optimizer"]["state"][0]["exp_avg"], average))

    def test_a_schedule_with_milestones(self):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        state = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5, 5]).state_dict()
        for copied in (state, snapshot.Snapshot(state).copy_to(bytearray(), 0)):
            codec, data = encode(copied)
            self.assertEqual(codec, "tensors")
            back = decode(codec, data)["milestones"]
            self.assertEqual((type(back), back), (Counter, Counter([2, 5, 5])))

    def test_random_generators_continue_where_they_were(self):
        codec, data = encode(random_state.whole())
        self.assertEqual(codec, "tensors")
        drawn = random.random(), float(numpy.random.rand()), torch.rand(1).item()
        random_state.restore(decode(codec, data))
        self.assertEqual((random.random(), float(numpy.random.rand()), torch.rand(1).item()), drawn)

    @unittest.skipIf(torch.__version__.startswith("1."), "the safe reader of torch 1.13 knows no floats")
    def test_torch_loads_a_saved_job_without_trusting_it(self):
        manager = CheckpointManager(self.path("checkpoints"), environ={})
        manager.save(3, {"format": "swell-job-1", "state": {"step": 3}, "random": [random_state.whole()]})
        (name,) = [n for n in os.listdir(manager.dir) if n.endswith(".state")]
        content = torch.load(os.path.join(manager.dir, name), weights_only=True)
        self.assertEqual(content["state"], {"step": 3})

    def test_objects_of_the_script_are_kept_and_reported_once(self):
        state = {"options": [SimpleNamespace(rate=0.5)]}
        with mock.patch("swell.report.complain") as complain:
            for _ in range(2):
                codec, data = encode(state)
                self.assertEqual(codec, "objects")
                self.assertEqual(decode(codec, data), state)
        complain.assert_called_once()
        self.assertIn("state['options'][0] is of type types.SimpleNamespace", complain.call_args[0][0])

    def test_what_even_pickle_cannot_store_is_named(self):
        state = {"format": "swell-job-1", "state": {"keep": {"schedule": {"by": lambda step: step}}}}
        with mock.patch("swell.report.complain"), self.assertRaisesRegex(
                TypeError, r"^the state cannot be saved: state\['keep'\]\['schedule'\]\['by'\] is of type "
                           r"builtins.function, and pickle says: Can't .*<lambda>"):
            encode(state)

    def test_checkpoints_of_older_versions_are_read(self):
        old = {"state": {"step": 5, "scale": numpy.float64(2.5)}, "random": [random_state.whole()]}
        back = decode("torch", by_pickle(old))
        self.assertEqual(back["state"]["step"], 5)
        random_state.restore(back["random"][0])
        drawn = numpy.random.rand()
        random_state.restore(old["random"][0])
        self.assertEqual(numpy.random.rand(), drawn)

    @unittest.skipUnless(hasattr(torch.serialization, "safe_globals"), "torch before 2.5 has no allow-list")
    def test_an_old_checkpoint_cannot_run_code(self):
        class Attack:
            def __reduce__(self):
                return os.mkdir, (self.path,)

        attack = Attack()
        attack.path = self.path("made")
        with self.assertRaises(pickle.UnpicklingError):
            decode("torch", by_pickle({"state": attack}))
        self.assertFalse(os.path.exists(attack.path))


if __name__ == "__main__":
    unittest.main()
