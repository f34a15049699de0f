"""Callbacks: with the frameworks (in the stage with a current torch), and in any case without them."""

import glob
import importlib.util
import io
import itertools
import json
import os
import random
import signal
import sys
import types
import unittest
from unittest import mock

import support
import swell
from swell import frameworks

_HEAD = """
import os, signal
import swell
from swell import frameworks
job = swell.Job()
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
NOTICE_AT = int(os.environ.get("NOTICE_AT", "0"))
def notice_at(step):
    if step == NOTICE_AT:
        os.kill(os.getpid(), signal.SIGTERM)
data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randn(40, 2))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
def show(step):
    print(f"ends {step} weights {sum(p.double().sum().item() for p in model.parameters()):.9f}", flush=True)
"""
_LIGHTNING = _HEAD + """
import lightning.pytorch as pl
class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, index):
        notice_at(self.global_step + 1)
        return torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, callbacks=[frameworks.lightning(job)], enable_model_summary=False)
trainer.fit(Module(), frameworks.Loader(job, data, 4), ckpt_path=frameworks.last(job, "lightning"))
show(trainer.global_step)
"""
_HUGGINGFACE = _HEAD + """
import transformers
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model
    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.model(x), labels)}
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return {"x": data[i][0], "labels": data[i][1]}
class Notice(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **named):
        notice_at(state.global_step + 1)
arguments = transformers.TrainingArguments(output_dir=job.checkpoints.dir, num_train_epochs=2, use_cpu=True,
    per_device_train_batch_size=4, save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no")
callbacks = [Notice(), frameworks.huggingface(job)]
trainer = transformers.Trainer(Model(), arguments, train_dataset=Data(), callbacks=callbacks)
trainer.train(resume_from_checkpoint=frameworks.last(job, "huggingface"))
show(trainer.state.global_step)
"""
_ACCELERATE = _HEAD + """
import accelerate
accelerator = accelerate.Accelerator(cpu=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimizer = accelerator.prepare(model, optimizer)
loader = frameworks.Loader(job, data, 4)
accelerator.register_for_checkpointing(loader)
state = frameworks.Accelerate(job, accelerator)
step = state.restore()
while loader.epoch < 2:
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
        step += 1
        notice_at(step)
        state.step_done(step)
show(step)
"""


class RealTest(support.FolderTest):
    """The framework itself, suspended and resumed."""

    def run_script(self, code, script, folder, **extra):
        path = self.path("script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        process = support.start(self, [path], SWELL_CHECKPOINT_DIR=self.path(folder), OMP_NUM_THREADS=1, **extra)
        status, output = support.finish(process)
        self.assertEqual(status, code, output)
        return [line for line in output.splitlines() if line.startswith("ends ")]

    def suspend_and_resume(self, script):
        expected = self.run_script(0, script, "undisturbed")
        self.assertTrue(expected[0].startswith("ends 20 "), expected)
        for step in (7, 10):  # within an epoch, and at its end
            folder = f"stopped-{step}"
            self.assertEqual(self.run_script(143, script, folder, NOTICE_AT=step), [])
            self.assertEqual(self.run_script(0, script, folder), expected)

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "lightning is not installed")
    def test_lightning(self):
        self.suspend_and_resume(_LIGHTNING)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_huggingface(self):
        self.suspend_and_resume(_HUGGINGFACE)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate is not installed")
    def test_accelerate(self):
        self.suspend_and_resume(_ACCELERATE)


class LoaderTest(unittest.TestCase):
    def loaders(self, world, **options):
        notice = types.SimpleNamespace(batches_of=iter)
        jobs = [types.SimpleNamespace(env=swell.Env(rank, world), notice=notice) for rank in range(world)]
        return [frameworks.Loader(job, list(range(50)), 8, seed=3, **options) for job in jobs]

    def test_each_record_once_also_on_another_number_of_ranks(self):
        seen, loaders = [], self.loaders(2)
        self.assertEqual(len(loaders[0]), 7)
        for loader in loaders:
            seen += [record for batch in itertools.islice(loader, 3) for record in batch.tolist()]
        resumed = self.loaders(3)
        for loader in resumed:
            loader.load_state_dict(loaders[0].state_dict())
            seen += [record for batch in loader for record in batch.tolist()]
        # The last batch has two records; the rank without one gets the record 0.
        self.assertEqual(sorted(seen), [0, *range(50)])
        self.assertEqual([loader.epoch for loader in resumed], 3 * [1])

    def test_batches_that_workers_have_prefetched_are_handed_out_again(self):
        (loader,), (resumed,) = self.loaders(1, num_workers=2), self.loaders(1)
        batches = iter(loader)
        seen = [next(batches).tolist() for _ in range(3)]
        self.assertEqual(loader.state_dict()["position"], 24)
        resumed.load_state_dict(loader.state_dict())
        batches.close()
        seen += [batch.tolist() for batch in resumed]
        (whole,) = self.loaders(1)
        self.assertEqual(seen, [batch.tolist() for batch in whole])

    def test_an_epoch_begins_where_the_one_before_has_ended(self):
        (loader,), (whole,) = self.loaders(1), self.loaders(1)
        expected = [[batch.tolist() for batch in whole] for _ in range(2)]
        self.assertNotEqual(*expected)
        self.assertEqual([batch.tolist() for batch in loader], expected[0])
        (resumed,) = self.loaders(1)
        resumed.load_state_dict(loader.state_dict())
        self.assertEqual([batch.tolist() for batch in resumed], expected[1])


class FakeTest(support.FolderTest):
    """The calls that a framework makes, without the framework."""

    def setUp(self):
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        environ = {"SWELL_CHECKPOINT_DIR": self.path("checkpoints"), "SWELL_REPORT_FILE": self.path("report.json")}
        patch = mock.patch.dict(os.environ, environ)
        patch.start()
        self.addCleanup(patch.stop)
        self.job = swell.Job(env=swell.Env())

    def fake(self, **modules):
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)

    def report(self):
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_loader_whose_workers_got_the_notice_too_begins_again(self):
        loader = frameworks.Loader(self.job, list(range(12)), 4)

        class Loader(list):
            tries = 0

            def __iter__(this):
                this.tries += 1
                records = iter(loader._sampler)
                yield next(records)
                if this.tries == 2:
                    yield from records
                    return
                self.job.notice.note()
                raise RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly")

        loader._loader = Loader()
        self.assertEqual(sorted(record for batch in loader for record in batch), list(range(12)))
        loader._loader = Loader()
        with self.assertRaisesRegex(RuntimeError, "DataLoader worker"):
            list(loader)

    def test_lightning(self):
        self.fake(**{"lightning": types.ModuleType("lightning"),
                     "lightning.pytorch": types.SimpleNamespace(Callback=object)})
        callback = frameworks.lightning(self.job)
        trainer = mock.Mock(global_step=2, estimated_stepping_batches=20)
        trainer.save_checkpoint = lambda path: open(path, "w", encoding="utf-8").close()
        callback.on_train_start(trainer, None)
        trainer.global_step = 3
        callback.on_train_batch_end(trainer, None, None, None, 2)
        self.assertIsNone(frameworks.last(self.job, "lightning"))
        self.job.notice.note()
        callback.on_train_batch_end(trainer, None, None, None, 3)  # gradients wait for the next batch
        self.assertIsNone(frameworks.last(self.job, "lightning"))
        trainer.global_step = 4
        with self.assertRaises(SystemExit) as left:
            callback.on_train_batch_end(trainer, None, None, None, 4)
        self.assertEqual(left.exception.code, swell.EXIT_NOTICED)
        self.assertEqual(frameworks.last(self.job, "lightning"), self.path("checkpoints", "lightning"))
        self.assertEqual(self.report()["step"], 4)

    def test_lightning_draws_the_numbers_that_follow_the_save(self):
        import torch

        self.fake(**{"lightning": types.ModuleType("lightning"),
                     "lightning.pytorch": types.SimpleNamespace(Callback=object)})
        trainer = mock.Mock(global_step=2, estimated_stepping_batches=20)
        saved = frameworks.lightning(self.job).state_dict()
        drawn = random.random(), torch.rand(1).item()
        callback = frameworks.lightning(self.job)
        callback.load_state_dict(saved)
        callback.on_train_start(trainer, None)
        self.assertEqual((random.random(), torch.rand(1).item()), drawn)

    def test_lightning_shows_no_total_where_it_knows_none(self):
        self.fake(**{"lightning": types.ModuleType("lightning"),
                     "lightning.pytorch": types.SimpleNamespace(Callback=object)})
        for steps, total in ((20, 20), (float("inf"), 0), (-1, 0)):  # -1: of a stream, without max_steps
            trainer = mock.Mock(global_step=2, estimated_stepping_batches=steps)
            frameworks.lightning(self.job).on_train_start(trainer, None)
            self.assertEqual(self.job.progress.total, total)
            self.job.progress.enter("step")

    def test_a_full_disk_is_told_in_whatever_form_the_framework_tells_it(self):
        for error, text in ((RuntimeError("unexpected pos 1408 vs 1300\nframes"), "unexpected pos 1408 vs 1300"),
                            (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
                            (KeyError(), "KeyError")):
            def save_state(path, error=error):
                os.makedirs(path)
                raise error

            job = swell.Job(env=swell.Env())
            state = frameworks.Accelerate(job, mock.Mock(save_state=save_state))
            job.notice.note()
            with mock.patch("swell.report.complain") as complain, self.assertRaises(SystemExit) as end:
                state.step_done(4)
            self.assertEqual(end.exception.code, 138)
            complain.assert_called_once_with(f"checkpoint of step 4 not saved, and the process ends: {text}")
            self.assertEqual(os.listdir(self.path("checkpoints")), [])

    def test_a_save_that_has_no_room_does_not_begin(self):
        with open(self.path("checkpoints"), "w", encoding="utf-8"):
            pass
        accelerator = mock.Mock()
        state = frameworks.Accelerate(self.job, accelerator)
        self.job.notice.note()
        with mock.patch("swell.report.complain") as complain, self.assertRaises(SystemExit) as end:
            state.step_done(4)
        self.assertEqual(end.exception.code, 138)
        accelerator.save_state.assert_not_called()
        self.assertRegex(complain.call_args.args[0], "checkpoint of step 4 not saved, .*checkpoints")

    def test_a_save_that_takes_long_is_made_rarely(self):
        now = [0.0]
        job = self.job = swell.Job(env=swell.Env(), clock=lambda: now[0])
        accelerator = mock.Mock()

        def save_state(path):
            os.makedirs(path)
            now[0] += 60

        accelerator.save_state.side_effect = save_state
        state = frameworks.Accelerate(job, accelerator)
        saved = []
        for step in range(1, 400):
            now[0] += 10
            before = now[0]
            state.step_done(step)
            if now[0] > before:
                saved.append(step)
        # The first after 30 s; then a minute's save is worth 29.4 minutes without one, and a loss a day costs as much.
        self.assertEqual(saved[:2], [3, 3 + 180])

    def test_a_save_of_the_scripts_own_is_reported(self):
        with self.job.saving(7):
            self.assertEqual(self.job.progress.phase, "save")
        self.assertEqual(self.report()["step"], 7)
        with self.assertRaises(OSError), self.job.saving(8):
            raise OSError("disk full")
        self.assertEqual(self.report()["step"], 7)

    def test_the_speed_is_reported(self):
        accelerator = mock.Mock()
        state = frameworks.Accelerate(self.job, accelerator)
        state.restore()
        self.job.log(loss=0.5)
        with mock.patch("swell.report._PROGRESS_SECONDS", 0):
            for step in (1, 2, 3):
                state.step_done(step)
        metrics = self.report()["metrics"]
        self.assertEqual((metrics["training_step"], metrics["world"], metrics["loss"]), (3, 1, 0.5))
        self.assertGreater(metrics["steps_per_second"], 0)

    def test_a_save_that_fails_does_not_claim_that_it_did(self):
        accelerator = mock.Mock()
        accelerator.save_state.side_effect = OSError(28, "No space left on device")
        state = frameworks.Accelerate(self.job, accelerator)
        self.assertEqual(state.restore(), 0)
        self.job.notice.note()
        with mock.patch("sys.stderr"), self.assertRaises(SystemExit) as left:
            state.step_done(4)
        self.assertEqual(left.exception.code, swell.EXIT_NOT_SAVED)
        self.assertEqual(self.report()["saveError"]["step"], 4)

    def test_accelerate_replaces_the_folder_before(self):
        accelerator = mock.Mock()

        def save_state(path):
            os.makedirs(path)
            with open(os.path.join(path, f"file-{accelerator.save_state.call_count}"), "w", encoding="utf-8"):
                pass

        accelerator.save_state.side_effect = save_state
        state = frameworks.Accelerate(self.job, accelerator)
        self.job._agree = lambda: 1
        state.step_done(4)
        state.step_done(5)
        names = [os.path.basename(name) for name in glob.glob(self.path("checkpoints", "*", "*"))]
        self.assertEqual(sorted(names), ["file-2", "swell.json"])
        self.assertEqual(state.restore(), 5)
        accelerator.load_state.assert_called_once_with(self.path("checkpoints", "accelerate"))

    def test_a_crash_between_two_renames_leaves_the_folder_before(self):
        os.makedirs(self.path("checkpoints", "accelerate.old"))
        self.assertEqual(frameworks.last(self.job, "accelerate"), self.path("checkpoints", "accelerate.old"))
        os.makedirs(self.path("checkpoints", "accelerate"))
        self.assertEqual(frameworks.last(self.job, "accelerate"), self.path("checkpoints", "accelerate"))

    def test_a_folder_that_the_trainer_did_not_finish_is_passed_over(self):
        self.assertIsNone(frameworks.last(self.job, "huggingface"))
        for name, text in (("checkpoint-9", "{}"), ("checkpoint-10", "{}"), ("checkpoint-11", ""),
                           ("checkpoint-12", None), ("checkpoint-best", "{}")):
            os.makedirs(self.path("checkpoints", name))
            if text is not None:
                with open(self.path("checkpoints", name, "trainer_state.json"), "w", encoding="utf-8") as file:
                    file.write(text)
        self.assertEqual(frameworks.last(self.job, "huggingface"), self.path("checkpoints", "checkpoint-10"))

    def test_what_happened_is_said_in_a_line_each(self):
        state = frameworks.Accelerate(self.job, mock.Mock(save_state=os.makedirs))
        state.restore()
        self.job.notice.note()
        with mock.patch("sys.stdout", io.StringIO()) as output:
            with self.assertRaises(SystemExit):
                state.step_done(4)
            frameworks.Accelerate(swell.Job(env=swell.Env()), mock.Mock()).restore()
        self.assertEqual(output.getvalue().splitlines(),
                         ["swell: checkpoint saved step=4 reason=notice", "swell: continues from step 4"])

    def test_huggingface(self):
        self.fake(transformers=types.SimpleNamespace(TrainerCallback=object))
        callback = frameworks.huggingface(self.job)
        state = types.SimpleNamespace(global_step=5, max_steps=20)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback.on_train_begin(None, state, control)
        callback.on_step_end(None, state, control)
        self.assertEqual((control.should_save, control.should_training_stop), (False, False))
        self.job.notice.note()
        callback.on_step_end(None, state, control)
        self.assertEqual((control.should_save, control.should_training_stop), (True, True))
        callback.on_save(None, state, control)
        with self.assertRaises(SystemExit) as left:
            callback.on_train_end(None, state, control)
        self.assertEqual(left.exception.code, swell.EXIT_NOTICED)

    def test_a_framework_that_is_missing_is_named(self):
        with mock.patch.dict(sys.modules, {"lightning.pytorch": None, "pytorch_lightning": None}):
            with self.assertRaisesRegex(ModuleNotFoundError, "none of lightning.pytorch, pytorch_lightning is"):
                frameworks.lightning(self.job)


if __name__ == "__main__":
    unittest.main()
