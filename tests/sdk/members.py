"""Members of an elastic job as forked processes, which start within milliseconds. Used by the tests of resizing.

The training learns a linear map from noise: it is small, deterministic, and sensitive to a lost or repeated record.
What always holds: members end with their test; every wait is bounded.
"""

import atexit
import functools
import multiprocessing
import os
import re
import signal
import sys
import time
from datetime import timedelta

import support
import torch  # before the first fork, because the import takes seconds

# Newer torch imports half of itself when the first optimizer is made.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)

RECORDS = 960
_BATCH = 24
_SILENT_SECONDS = 3.0
STEPS_PER_EPOCH = RECORDS // _BATCH


def _data():
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(RECORDS, 20, generator=generator)
    target = inputs @ torch.randn(20, 5, generator=generator) + torch.randn(RECORDS, 5, generator=generator) / 2
    return inputs, target


def train(epochs, seed, step_seconds, in_turn, wait_at_end, gather, lose_at, kill_at, noticed):
    """The training of one member.

    `lose_at`: the steps after which it gets a notice. `in_turn`: only one of the members gets it, and not always the
    same one.
    `kill_at`: the steps in which it is killed. `noticed`: it gets a notice before, too late to finish the step.
    `gather`: {step: members}; after that step the leader waits until as many are in the group or wait to join it.
    `wait_at_end`: after the last step the leader waits for a member that comes too late to join.
    """
    import swell

    job = swell.Job(backend="gloo")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = job.parallel(torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    job.learning_rate(optimizer, "none")
    sampler = swell.ResumableDistributedSampler(RECORDS, _BATCH, seed, job=job)
    inputs, target = _data()
    step = 0

    def state():
        return {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "sampler": sampler.state_dict(),
        }

    def load(state):
        nonlocal step
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])

    found = job.restore()
    if found is not None:
        load(found.state)
    print(f"begins rank {job.env.rank} of {job.env.world} at step {step}", flush=True)
    while sampler.epoch < epochs:
        for batch in sampler:
            with job.guard(state, load):
                optimizer.zero_grad()
                error = model(inputs[batch]) - target[batch]
                loss = (error**2).sum() / 5 * sampler.scale
                if step + 1 in kill_at:
                    if noticed:
                        os.kill(os.getpid(), signal.SIGTERM)
                        assert job.notice.requested
                    os.kill(os.getpid(), signal.SIGKILL)
                loss.backward()
                optimizer.step()
                lines = "".join(f"record {sampler.epoch} {record}\n" for record in batch)
                sampler.commit()
                step += 1
                print(f"{lines}step {step} rank {job.env.rank} of {job.env.world}", flush=True)
                time.sleep(step_seconds)
                if step in lose_at and (not in_turn or job.env.rank == step % job.env.world):
                    os.kill(os.getpid(), signal.SIGTERM)
                if step in gather and job.env.leader:
                    assert support.until(lambda: job.env.world + len(job._group._client.waiting) >= gather[step])
                job.step_done(step, state, records=_BATCH)
        sampler.next_epoch()
    if wait_at_end and job.env.leader:
        print("trained", flush=True)
        assert support.until(lambda: job._group._client.waiting), "nobody came"
    with torch.no_grad():
        outputs = model(inputs)
        loss = ((outputs - target) ** 2).mean().item()
        accuracy = (outputs.argmax(1) == target.argmax(1)).double().mean().item()
    weights = sum(parameter.double().sum().item() for parameter in model.parameters())
    job.save(step, state)
    print(f"ends rank {job.env.rank} of {job.env.world} step {step} loss {loss:.9f} weights {weights:.7f} "
          f"accuracy {accuracy:.6f}", flush=True)


def train_with_batches(epochs, seed, step_seconds, in_turn, wait_at_end, gather, lose_at, kill_at, noticed):
    """As `train`, as a loop of `Job.batches`; with LOOP=guard, one of the script's own.

    `noticed`: in the step it is stopped by SIGSTOP, not killed.
    `kill_at` with 0: it is killed while it loads. TIMEOUT_SECONDS: how long it waits for a replacement.
    """
    import swell

    job = swell.Job(backend="gloo", timeout=timedelta(seconds=int(os.environ.get("TIMEOUT_SECONDS", "600"))))
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = job.parallel(torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    if 0 in kill_at:
        job._newest = lambda: os.kill(os.getpid(), signal.SIGKILL)
    data = torch.utils.data.TensorDataset(torch.arange(RECORDS), *_data())
    job.join()
    print(f"begins rank {job.env.rank} of {job.env.world}", flush=True)
    def train_step(step, count, records, inputs, target, scale):
        weights = sum(parameter.double().sum().item() for parameter in model.parameters())
        print(f"before {step} weights {weights:.9f} rank {job.env.rank} of {job.env.world} at {time.monotonic():.3f} "
              f"records {' '.join(map(str, records.tolist()))}", flush=True)
        optimizer.zero_grad()
        errors = (model(inputs) - target) ** 2
        loss = errors.mean() if scale is None else errors.sum() / errors.shape[1] * scale
        if step + 1 in kill_at and count > 0:
            os.kill(os.getpid(), signal.SIGSTOP if noticed else signal.SIGKILL)
        loss.backward()
        optimizer.step()
        time.sleep(step_seconds)
        if step in lose_at:
            os.kill(os.getpid(), signal.SIGTERM)
        if step in gather and job.env.leader:
            assert support.until(lambda: job.env.world + len(job._group._client.waiting) >= gather[step])

    if os.environ.get("LOOP") == "guard":
        _guarded(job, data, epochs, seed, model, optimizer, train_step)
    else:
        kept = {"model": model, "optimizer": optimizer}
        for count, batch in enumerate(job.batches(data, _BATCH, epochs, kept, seed=seed)):
            train_step(job.step, count, *batch, None)
    print(f"ends rank {job.env.rank} of {job.env.world} step {job.step}", flush=True)


def _guarded(job, data, epochs, seed, model, optimizer, train_step):
    """The same training as a loop of the script's own."""
    import swell

    sampler = swell.ResumableDistributedSampler(RECORDS, _BATCH, seed, job=job)
    count = 0

    def state():
        return {"done": job.step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "sampler": sampler.state_dict()}

    def load(state):
        job.step = state["done"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])

    found = job.restore()
    if found is not None:
        load(found.state)
    while sampler.epoch < epochs:
        for batch in sampler:
            with job.guard(state, load):
                train_step(job.step, count, *data[batch], sampler.scale)
                count += 1
                sampler.commit()
                job.step += 1
                job.step_done(job.step, state, sampler.epoch, records=_BATCH)
        sampler.next_epoch()
    job.save(job.step, state)


class Members:
    """An elastic job with up to `most` members, in the folder of a test."""

    def __init__(self, test, most, least=1, epochs=2, seed=1, step_seconds=0.0, in_turn=False, wait_at_end=False,
                 gather=(), training=train):
        self._training = training
        self._test = test
        self._folder = test.path(f"job-{support.free_port()}")
        os.makedirs(self._folder)
        self._port = support.free_port()
        self._most, self._least = most, least
        self._options = (epochs, seed, step_seconds, in_turn, wait_at_end, dict(gather))
        self.steps = epochs * STEPS_PER_EPOCH
        self.processes = {}

    @property
    def checkpoints(self):
        return os.path.join(self._folder, "checkpoints")

    def start(self, *ordinals, lose_at=(), kill_at=(), noticed=False, **environment):
        for ordinal in ordinals:
            context = multiprocessing.get_context("fork")
            again = ordinal in self.processes
            process = context.Process(target=self._run, args=(ordinal, again, lose_at, kill_at, noticed, environment))
            process.start()
            self.processes[ordinal] = process
            self._test.addCleanup(_end, process)

    def _run(self, ordinal, again, lose_at, kill_at, noticed, environment):
        for name in [name for name in os.environ if name.startswith(("SWELL_", "PET_"))]:
            del os.environ[name]
        os.environ.update(
            RANK=str(ordinal),
            WORLD_SIZE=str(self._most),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(self._port),
            PET_NNODES=f"{self._least}:{self._most}",
            PET_RDZV_ID="job",
            SWELL_CHECKPOINT_DIR=self.checkpoints,
            SWELL_MEMORY_DIR=self._folder,
            SWELL_REPORT_FILE=os.path.join(self._folder, f"report-{ordinal}"),
            SWELL_TERMINATION_LOG=os.path.join(self._folder, f"message-{ordinal}"),
        )
        os.environ.update(environment)
        log = os.open(self.log_path(ordinal), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w")
        import swell.resize

        # A member that is stopped is found sooner than in real jobs. Not too soon for a machine that has much to do.
        swell.resize.Peers = functools.partial(swell.resize.Peers, silent=_SILENT_SECONDS)
        if again:
            # The group that trains must be able to connect before a second one forms, however slow this machine is.
            server = functools.partial(swell.resize.RendezvousServer, leader_reconnect=support.WAIT_SECONDS)
            swell.resize.RendezvousServer = server
        # A child of multiprocessing runs no exit functions. Run those that the training registers, not the parent's.
        atexit._clear()
        self._training(*self._options, lose_at, kill_at, noticed)
        atexit._run_exitfuncs()

    def notice(self, *ordinals):
        for ordinal in ordinals:
            os.kill(self.processes[ordinal].pid, signal.SIGTERM)

    def finish(self, *ordinals):
        """The members' exit codes. Waits until they have ended by themselves."""
        codes = []
        for ordinal in ordinals:
            self.processes[ordinal].join(support.WAIT_SECONDS)
            codes.append(self.processes[ordinal].exitcode)
        return codes

    def wait(self, ordinal, text):
        if not support.until(lambda: text in self.log(ordinal)):
            self._test.fail(f"no {text!r} in:\n{self.all_logs()}")

    def log(self, ordinal):
        try:
            with open(self.log_path(ordinal), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def all_logs(self):
        logs = {i: self.log(i) for i in range(self._most)}
        return "\n".join(f"--- {i}\n" + "\n".join(_without_records(log)) for i, log in logs.items())

    def sizes(self, ordinal):
        """{step: number of ranks} of the steps that this member trained in."""
        found = re.findall(r"^step (\d+) rank \d+ of (\d+)$", self.log(ordinal), re.M)
        return {int(step): int(size) for step, size in found}

    def records(self):
        """All records that members have trained, as "EPOCH RECORD", with repeats."""
        lines = (line for i in range(self._most) for line in self.log(i).splitlines())
        return [line.split(" ", 1)[1] for line in lines if line.startswith("record ")]

    def assert_each_record_once(self):
        records = self.records()
        epochs = self.steps // STEPS_PER_EPOCH
        self._test.assertEqual(len(records), epochs * RECORDS)
        self._test.assertEqual(len(set(records)), epochs * RECORDS)

    def end_of(self, ordinal):
        """The values that the member printed at its end: {"rank", "step", "loss", "weights", "accuracy"}."""
        words = [line for line in self.log(ordinal).splitlines() if line.startswith("ends ")][-1].split()
        numbers = {words[i]: float(words[i + 1]) for i in (7, 9, 11)}
        return {"rank": int(words[2]), "step": int(words[6]), **numbers}

    def log_path(self, ordinal):
        return os.path.join(self._folder, f"log-{ordinal}")


def _without_records(log):
    return [line for line in log.splitlines() if not line.startswith("record ")]


def _end(process):
    process.kill()
    process.join(support.WAIT_SECONDS)
