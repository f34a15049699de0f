"""What a broken step of `job.batches` does to optimizers, schedulers, scalers and averages of weights: nothing."""

import copy
import io
import unittest
import warnings

import support  # noqa: F401  (puts the SDK on the path)
import torch
from swell.broken import StepGuard
from torch.optim.lr_scheduler import LinearLR, StepLR
from torch.optim.swa_utils import AveragedModel


class HoldBackTest(unittest.TestCase):
    def setUp(self):
        self.guard = StepGuard()
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)

    def do_step(self, body, broken=False):
        self.guard.begin()
        if broken:
            self.guard.note(RuntimeError("a peer was lost"))
        body()
        self.guard.end()

    def test_a_schedulers_state_is_its_own(self):
        schedule = StepLR(self.optimizer, 1)
        names = schedule.state_dict().keys()
        self.guard.hold_back([self.optimizer, schedule])
        self.assertEqual(schedule.state_dict().keys(), names)
        self.assertGreater(len(names), 3)
        torch.save(schedule.state_dict(), io.BytesIO())

    def test_a_scheduler_counts_whole_steps_and_does_not_complain(self):
        schedule = StepLR(self.optimizer, 1)
        self.guard.hold_back([self.optimizer, schedule])
        later = LinearLR(self.optimizer)  # made within the loop
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for broken in (True, False, True, False):
                self.do_step(lambda: (self.optimizer.step(), schedule.step()), broken)
            self.do_step(lambda: (self.optimizer.step(), later.step()))
        self.assertEqual((schedule.last_epoch, later.last_epoch), (2, 1))

    def test_an_average_of_weights_counts_whole_steps(self):
        average = AveragedModel(self.model)
        self.guard.hold_back([average])
        for broken in (False, True, False):
            self.do_step(lambda: average.update_parameters(self.model), broken)
        self.assertEqual(int(average.n_averaged), 2)
        self.assertEqual(average.state_dict().keys(), AveragedModel(self.model).state_dict().keys())

    def test_a_copy_has_methods_of_its_own(self):
        average = AveragedModel(self.model)
        self.guard.hold_back([average])
        best = copy.deepcopy(average)
        self.do_step(lambda: average.update_parameters(self.model))
        self.assertEqual(int(best.state_dict()["n_averaged"]), 0)
        best.update_parameters(self.model)
        best.update_parameters(self.model)
        self.assertEqual((int(best.n_averaged), int(average.n_averaged)), (2, 1))

    @unittest.skipUnless(hasattr(getattr(torch, "amp", None), "GradScaler"), "needs torch 2.3")
    def test_a_scaler_unscales_the_repeated_step(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        self.guard.hold_back([self.optimizer, scaler])

        def body(lost):
            self.optimizer.zero_grad()
            scaler.scale(self.model(torch.ones(1, 2)).sum()).backward()
            scaler.unscale_(self.optimizer)
            if lost:
                self.guard.note(RuntimeError("a peer was lost"))
            scaler.step(self.optimizer)
            scaler.update()

        weight = self.model.weight.detach().clone()
        for lost in (True, False, True):
            self.do_step(lambda: body(lost))
        torch.testing.assert_close(self.model.weight, weight - 1)
        self.assertFalse(self.guard.keeps_gradients())
        self.assertEqual(scaler.state_dict()["_growth_tracker"], 1)


    @unittest.skipUnless(hasattr(getattr(torch, "amp", None), "GradScaler"), "needs torch 2.3")
    def test_a_scaler_that_skips_a_step_keeps_no_gradients(self):
        scaler = torch.amp.GradScaler("cpu")
        self.guard.hold_back([self.optimizer, scaler])
        weight = self.model.weight.detach().clone()

        def body():
            scaler.scale(self.model(torch.full((1, 2), float("inf"))).sum()).backward()
            scaler.step(self.optimizer)
            scaler.update()

        self.do_step(body)
        self.assertTrue(torch.equal(self.model.weight, weight))
        self.assertFalse(self.guard.keeps_gradients())


if __name__ == "__main__":
    unittest.main()
