"""`job.batches` says what is wrong with its arguments, and with a checkpoint of another script."""

import functools
import math
import os
import random
import re
import shutil
import signal
import unittest
from types import SimpleNamespace
from unittest import mock

import support  # noqa: F401  (puts the SDK on the path)
import swell
from swell.loop import batches


_FOLDS = """
import sys, torch, swell
job = swell.Job()
data = torch.arange(32.0).reshape(16, 2) / 32
for name in ("fold-1", "fold-2"):
    torch.manual_seed(job.rank)
    model = job.parallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for records in job.batches(data, 4, 1, {"model": model.module, "optimizer": optimizer}, name=name):
        optimizer.zero_grad()
        model(records).pow(2).mean().backward()
        optimizer.step()
    with open(f"{sys.argv[1]}-{name}-{job.rank}", "w") as file:
        file.write(str(model.module.state_dict()))
"""


class Weight:
    value = 0.0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


class Kept:
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        self.loaded = state


def job_with(checkpoint):
    return SimpleNamespace(env=SimpleNamespace(rank=0, world=1, leader=False), restore=lambda: checkpoint,
                           checkpoints=SimpleNamespace(dir="/ckpt"), batch_size=SimpleNamespace(most=None), _loops={})


def first(job, keep):
    return next(batches(job, [1.0, 2.0], 1, 1, keep, 0, 0, {}))


class KeepTest(unittest.TestCase):
    def test_it_is_a_dict_of_things_with_a_state(self):
        with self.assertRaisesRegex(TypeError, 'keep is a list: expected a dict like {"model": model, '):
            first(job_with(None), [Kept()])
        with self.assertRaisesRegex(TypeError, r"keep\['lr'\] is a float: expected an object with state_dict"):
            first(job_with(None), {"model": Kept(), "lr": 0.1})

    def test_wrong_arguments_are_named(self):
        for size, epochs, options, error, text in (
            ("8", 1, {}, TypeError, "batch_size is a str, '8': expected a whole number"),
            (0, 1, {}, ValueError, "batch_size is 0: expected 1 or more"),
            (8, 1.5, {}, TypeError, "epochs is a float, 1.5: expected a whole number"),
            (8, -1, {}, ValueError, "epochs is -1: expected 0 or more"),
            (8, 1, {"shuffle": True, "drop_last": True}, TypeError, "job.batches takes no drop_last, shuffle: "),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, f"^{text}"):
                next(batches(job_with(None), [1.0], size, epochs, {"model": Kept()}, 0, 0, options))
        from torch.utils.data import DataLoader

        with self.assertRaisesRegex(TypeError, "^job.batches got a DataLoader: give it the dataset"):
            next(batches(job_with(None), DataLoader([1.0]), 8, 1, {"model": Kept()}, 0, 0, {}))
        with self.assertRaisesRegex(ValueError, "^the dataset has no records$"):
            next(batches(job_with(None), [], 8, 1, {"model": Kept()}, 0, 0, {}))

    def test_a_checkpoint_without_a_name_says_which_it_has(self):
        sampler = {"epoch": 0, "position": 0, "seed": 0, "length": 2, "shuffle": True}
        found = SimpleNamespace(step=7, state={"step": 7, "sampler": sampler, "keep": {"net": {}, "optimizer": {}}})
        with self.assertRaisesRegex(ValueError, r"keep\['model'\] is not in the checkpoint of step 7, which has: "
                                                "net, optimizer"):
            first(job_with(found), {"model": Kept()})

    def test_a_checkpoint_of_another_model_is_named_in_one_line(self):
        import torch

        sampler = {"epoch": 0, "position": 0, "seed": 0, "length": 2, "shuffle": True}
        keep = {"model": torch.nn.Linear(2, 3).state_dict()}
        found = SimpleNamespace(step=7, state={"step": 7, "sampler": sampler, "keep": keep})
        with self.assertRaises(ValueError) as raised:
            first(job_with(found), {"model": torch.nn.Linear(2, 4)})
        self.assertRegex(str(raised.exception), r"^the checkpoint of step 7 in /ckpt does not fit this script; to "
                                                r"start anew, remove the checkpoints there or save elsewhere \(.*"
                                                r"size mismatch for weight.*\)$")
        self.assertNotIn("\n", str(raised.exception))

    def test_a_full_gpu_is_no_fault_of_the_checkpoint(self):
        class Full(Kept):
            def load_state_dict(self, state):
                raise RuntimeError("CUDA out of memory")

        sampler = {"epoch": 0, "position": 0, "seed": 0, "length": 2, "shuffle": True}
        found = SimpleNamespace(step=7, state={"step": 7, "sampler": sampler, "keep": {"model": {}}})
        with self.assertRaisesRegex(RuntimeError, "^CUDA out of memory$"):
            first(job_with(found), {"model": Full()})


class FinishTest(support.FolderTest):
    def job(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        return swell.Job(env=swell.Env(), checkpoints=self.path("checkpoints"))

    def steps(self, last=None):
        """The steps that a new job does, of ten; in the step `last` it calls finish."""
        job, done = self.job(), []
        for _ in job.batches([1.0] * 10, 1, 1, {"kept": Kept()}):
            done.append(job.step)
            if job.step == last:
                job.finish()
        self.assertEqual(job.checkpoints.latest(), job.step)
        self.assertEqual(job.progress.total, job.step)
        return done

    def test_the_step_that_calls_finish_is_the_last_and_is_saved(self):
        self.assertEqual(self.steps(last=3), [0, 1, 2, 3])
        self.assertEqual(self.steps(), [])  # restarted, for instance because another member failed at its end

    def test_a_job_whose_loop_has_finished_may_have_another_loop(self):
        job = self.job()
        for folder in ("one", "two"):
            job.checkpoints = swell.CheckpointManager(self.path(folder))
            done = [job.finish() for _ in job.batches([1.0] * 4, 1, 1, {"kept": Kept()})]
            self.assertEqual(len(done), 1)

    def test_a_second_loop_that_would_train_nothing_is_refused(self):
        job = self.job()
        begin = functools.partial(job.batches, [1.0] * 4, 1, 1, {"kept": Kept()})
        self.assertEqual(len(list(begin())), 4)
        with self.assertRaisesRegex(RuntimeError, 'give each of several loops a name, job.batches.*name="fold-1"'):
            next(begin())
        self.assertEqual(len(list(begin(name="other"))), 4)
        for name in ("other", None):
            with self.assertRaisesRegex(RuntimeError, "give each of several loops a name"):
                next(begin(name=name))
        with self.assertRaisesRegex(ValueError, "name='../a': expected letters, digits"):
            next(begin(name="../a"))

    def test_a_loop_with_a_name_keeps_as_many_checkpoints_as_the_job(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job = swell.Job(env=swell.Env(), checkpoints=swell.CheckpointManager(self.path("checkpoints"), keep=4))
        for name in ("one", "two"):
            for _ in job.batches([1.0] * 6, 1, 1, {"kept": Kept()}, name=name, checkpoint_every=1):
                job.flush()
            self.assertEqual(job.checkpoints.dir, self.path("checkpoints", name))
            self.assertEqual(job.checkpoints.steps(), [6, 5, 4, 3])

    def test_checkpoints_in_a_form_of_the_scripts_own_need_no_folder(self):
        saved = []
        form = SimpleNamespace(load=lambda: None, save=lambda step, state, epoch, metrics: saved.append(step))
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job = swell.Job(env=swell.Env(), checkpoints=form)
        begin = functools.partial(job.batches, [1.0] * 4, 1, 1, {"kept": Kept()})
        self.assertEqual(len(list(begin())), 4)
        self.assertEqual(saved, [4])
        with self.assertRaisesRegex(RuntimeError, "an earlier loop of job.batches ended"):
            next(begin())
        with self.assertRaisesRegex(RuntimeError, "^name='fold-1': it would be the name of a folder"):
            next(begin(name="fold-1"))
        with self.assertRaisesRegex(ValueError, r"^name=\['fold-1'\]: expected letters"):
            next(begin(name=["fold-1"]))

    def test_several_loops_resume_where_they_were(self):
        def train(stop_in=None):
            job, done = self.job(), []
            for name in ("fold-1", "fold-2", "fold-3"):
                weight = Weight()
                for _ in job.batches([1.0] * 4, 1, 1, {"weight": weight}, name=name):
                    weight.value += random.random()
                    done.append((name, job.step))
                    if done[-1] == stop_in:
                        job.notice.note()
                done.append(weight.value)
            return done

        random.seed(7)
        undisturbed = train()
        shutil.rmtree(self.path("checkpoints"))
        random.seed(7)
        with self.assertRaises(SystemExit) as stopped:
            train(stop_in=("fold-2", 1))
        self.assertEqual(stopped.exception.code, 143)
        random.seed(8)
        resumed = train()
        self.assertEqual(resumed, undisturbed[4:5] + undisturbed[7:])
        self.assertEqual(sorted(os.listdir(self.path("checkpoints"))), ["fold-1", "fold-2", "fold-3"])

    def test_reports_and_curves_of_a_loop_have_nothing_of_the_loop_before(self):
        import torch

        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job = swell.Job(env=swell.Env(), checkpoints=self.path("checkpoints"), log_dir=self.path("curves"))
        for name in ("one", "two"):
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
            for _ in job.batches([1.0] * 4, 1, 1, {"optimizer": optimizer}, name=name):
                optimizer.step()
                self.assertEqual(job._optimizers, [optimizer])
                self.assertNotIn("one" if name == "two" else "two", job.metrics)
                job.log(**{name: math.nan})
                job.scalar("loss", 1.0)
            self.assertEqual(list(job.checkpoints.load().metrics), [name])
            self.assertEqual(len(os.listdir(self.path("curves", name))), 1)
        self.assertEqual(job._not_finite_since, 0)

    def test_a_network_that_is_made_after_a_loop_trains_on_all_ranks(self):
        path = self.path("folds.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_FOLDS)
        command = ["-m", "swell.launch", "--standalone", "--nproc_per_node=2", path, self.path("weights")]
        environ = {"SWELL_CHECKPOINT_DIR": self.path("checkpoints"), "OMP_NUM_THREADS": 1}
        code, output = support.finish(support.start(self, command, **environ))
        self.assertEqual(code, 0, output)
        for fold in ("fold-1", "fold-2"):
            weights = []
            for rank in (0, 1):
                with open(self.path(f"weights-{fold}-{rank}"), encoding="utf-8") as file:
                    weights.append(file.read())
            self.assertEqual(weights[0], weights[1])

    def test_several_loops_of_ranks_that_come_and_go_are_refused(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job = swell.Job(env=swell.Env(world=2), checkpoints=self.path("checkpoints"))
        with self.assertRaisesRegex(RuntimeError, "^name='fold-1': a rank that joins while others train"):
            next(job.batches([1.0], 1, 1, {"kept": Kept()}, name="fold-1"))

    def test_the_last_step_of_each_epoch_is_marked(self):
        for workers in (0, 2):
            job = self.job()
            job.checkpoints = swell.CheckpointManager(self.path(f"workers{workers}"))
            marks = [job.epoch_ends for _ in job.batches([1.0] * 5, 2, 2, {"kept": Kept()}, num_workers=workers)]
            self.assertEqual(marks, 2 * [False, False, True])
            self.assertFalse(job.epoch_ends)

    def leave(self, statement):
        script = f"""
import swell, torch
job = swell.Job()
weight = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(job.parallel(weight).parameters(), lr=0.1)
for batch in job.batches([1.0] * 10, 1, 1, {{"optimizer": optimizer}}):
    weight(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    if job.step == 3:
        {statement}
"""
        process = support.start(self, ["-c", script], SWELL_CHECKPOINT_DIR=self.path("saved"))
        return support.finish(process)

    def test_a_break_is_told(self):
        code, output = self.leave("break")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"swell: the script left job.batches in step 4, .* call job.finish\(\)")

    def test_an_error_is_not_told_as_a_break(self):
        code, output = self.leave("raise ValueError('bad record')")
        self.assertEqual(code, 1, output)
        self.assertNotIn("left job.batches", output)
        self.assertEqual(output.splitlines()[-1], "ValueError: bad record")


# A shell that does not handle SIGTERM and waits for the script has Swell signal the process group: the workers of the
# loader, too.
_GROUP = """
import multiprocessing, os, signal, subprocess
import swell
os.setsid()
job = swell.Job()
import torch

class Data(torch.utils.data.{kind}):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        if "{where}" == "worker" and index == 37 and not os.path.exists("killed"):
            open("killed", "w").close()
            os.killpg(0, signal.SIGTERM)
        return torch.ones(1)
    def __iter__(self):
        return (self[index] for index in range(torch.utils.data.get_worker_info().id, 64, 2))

model = job.parallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for records in job.batches(Data(), 4, 1, {{"model": model, "optimizer": optimizer}}, num_workers=2):
    optimizer.zero_grad()
    model(records).sum().backward()
    optimizer.step()
    print("step", job.step, flush=True)
    if "{where}" == "step" and job.step == 3:
        workers = multiprocessing.active_children()
        subprocess.run(["sh", "-c", "kill -TERM 0"])  # workers end without a failure if their parent sends it
        for worker in workers:  # not join, which would take their ends from torch's handler
            while open("/proc/%d/stat" % worker.pid).read().split()[2] != "Z":
                pass
"""


class GroupSignalTest(support.FolderTest):
    """A notice ends the workers of a loader, too, and costs no step all the same."""

    def stopped(self, kind, where):
        path = self.path("script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"import os\nos.chdir({self.folder!r})\n" + _GROUP.format(kind=kind, where=where))
        code, output = support.finish(support.start(self, [path], SWELL_CHECKPOINT_DIR=self.path("checkpoints")))
        self.assertEqual(code, 143, output)
        last = int(re.findall(r"^step (\d+)$", output, re.M)[-1])
        self.assertEqual(swell.CheckpointManager(self.path("checkpoints")).latest(), last + 1)
        return last

    def test_in_a_step(self):
        for kind in ("Dataset", "IterableDataset"):
            with self.subTest(kind):
                self.assertEqual(self.stopped(kind, "step"), 3)
                shutil.rmtree(self.path("checkpoints"))

    def test_while_it_waits_for_a_batch(self):
        self.stopped("Dataset", "worker")


class GradientsTest(support.FolderTest):
    """Gradients that are summed over several batches are told, since no checkpoint has them."""

    def told(self, body):
        import torch

        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        job = swell.Job(env=swell.Env(), checkpoints=self.path("checkpoints"))
        model = torch.nn.Linear(1, 1)
        keep = {"model": model, "one": torch.optim.SGD(model.parameters(), lr=0.1),
                "two": torch.optim.SGD(model.parameters(), lr=0.1)}
        with mock.patch("swell.report.complain") as complain:
            for _ in job.batches(torch.ones(8, 1), 1, 1, keep):
                body(job, keep["one"], keep["two"])
        return [call[0][0] for call in complain.call_args_list]

    def test_a_step_without_an_optimizers_is_told_once(self):
        (text,) = self.told(lambda job, one, two: one.step() if job.step % 4 == 3 else None)
        self.assertRegex(text, "^step 1 ended without the step of an optimizer in keep: gradients that wait ")

    def test_two_optimizers_may_take_turns(self):
        self.assertEqual(self.told(lambda job, one, two: (one, two)[job.step % 2].step()), [])


class GroupTest(unittest.TestCase):
    def test_a_job_of_several_ranks_without_a_group_says_what_to_do(self):
        job = swell.Job(env=swell.Env(world=2), checkpoints=SimpleNamespace(load=lambda: None))
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        with self.assertRaisesRegex(RuntimeError, r"2 ranks and no process group: wrap the model with job.parallel"):
            job.agree_on("anything")


if __name__ == "__main__":
    unittest.main()
