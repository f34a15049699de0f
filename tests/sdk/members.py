"""Members of an elastic job as forked processes: they begin within milliseconds, so tests can come and go often.

Used by the tests of resizing. The training is a linear map learnt from noise: small, deterministic, and sensitive to a
lost or doubled record. What always holds: members end with their test; every wait is bounded.
"""

import atexit
import functools
import multiprocessing
import os
import re
import signal
import sys
import time

import support
import torch  # before the first fork: importing it is what takes seconds

RECORDS = 960
_BATCH = 24
STEPS_PER_EPOCH = RECORDS // _BATCH


def _data():
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(RECORDS, 20, generator=generator)
    target = inputs @ torch.randn(20, 5, generator=generator) + torch.randn(RECORDS, 5, generator=generator) / 2
    return inputs, target


def train(epochs, seed, step_seconds, in_turn, until_one_waits, gather, lose_at, kill_at, noticed):
    """One member's whole life. `lose_at`: after which steps it gets a notice; `kill_at`: in which it dies.

    `noticed`: it dies of a notice whose time is over before the step is.

    `in_turn`: of all members that have the step in `lose_at`, one is hit, and not always the same.
    `gather`: {step: members}; after that step the head waits until as many are in the group or ready to join it.
    `until_one_waits`: after the last step the head stays until somebody has come who can not join any more.
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
                    assert support.until(lambda: job.env.world + len(job._group._seat.waiting) >= gather[step])
                job.step_done(step, state, records=_BATCH)
        sampler.next_epoch()
    if until_one_waits and job.env.leader:
        print("trained", flush=True)
        assert support.until(lambda: job._group._seat.waiting), "nobody came"
    with torch.no_grad():
        outputs = model(inputs)
        loss = ((outputs - target) ** 2).mean().item()
        # How often the output that should be the largest is.
        accuracy = (outputs.argmax(1) == target.argmax(1)).double().mean().item()
    weights = sum(parameter.double().sum().item() for parameter in model.parameters())
    job.save(step, state)
    print(f"ends rank {job.env.rank} of {job.env.world} step {step} loss {loss:.9f} weights {weights:.7f} "
          f"accuracy {accuracy:.6f}", flush=True)


class Members:
    """An elastic job of up to `most` members, in the folder of a test."""

    def __init__(self, test, most, least=1, epochs=2, seed=1, step_seconds=0.0, in_turn=False, until_one_waits=False,
                 gather=()):
        self._test = test
        self._folder = test.path(f"job-{support.free_port()}")
        os.makedirs(self._folder)
        self._port = support.free_port()
        self._most, self._least = most, least
        self._options = (epochs, seed, step_seconds, in_turn, until_one_waits, dict(gather))
        self.steps = epochs * STEPS_PER_EPOCH
        self.processes = {}

    @property
    def checkpoints(self):
        return os.path.join(self._folder, "checkpoints")

    def start(self, *ordinals, lose_at=(), kill_at=(), noticed=False, **environment):
        for ordinal in ordinals:
            context = multiprocessing.get_context("fork")
            again = ordinal in self.processes
            process = context.Process(target=self._live, args=(ordinal, again, lose_at, kill_at, noticed, environment))
            process.start()
            self.processes[ordinal] = process
            self._test.addCleanup(_end, process)

    def _live(self, ordinal, again, lose_at, kill_at, noticed, environment):
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
            SWELL_REPORT_FILE=os.path.join(self._folder, f"report-{ordinal}"),
            SWELL_TERMINATION_LOG=os.path.join(self._folder, f"message-{ordinal}"),
        )
        os.environ.update(environment)
        log = os.open(self._log(ordinal), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w")
        if again:
            # However slow this machine is, those that train are heard before a second group begins.
            import swell.resize

            swell.resize.Meeting = functools.partial(swell.resize.Meeting, claim=support.WAIT_SECONDS)
        # What a process does at its end, which multiprocessing's children leave out; not what its parent would.
        atexit._clear()
        train(*self._options, lose_at, kill_at, noticed)
        atexit._run_exitfuncs()

    def notice(self, *ordinals):
        for ordinal in ordinals:
            os.kill(self.processes[ordinal].pid, signal.SIGTERM)

    def finish(self, *ordinals):
        """Exit codes, once these have ended by themselves."""
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
            with open(self._log(ordinal), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def all_logs(self):
        logs = {i: self.log(i) for i in range(self._most)}
        return "\n".join(f"--- {i}\n" + "\n".join(_without_records(log)) for i, log in logs.items())

    def sizes(self, ordinal):
        """{step: how many members did it}, of the steps that this member had part in."""
        found = re.findall(r"^step (\d+) rank \d+ of (\d+)$", self.log(ordinal), re.M)
        return {int(step): int(size) for step, size in found}

    def records(self):
        """Every record that any member has trained, as "EPOCH RECORD", with repeats."""
        lines = (line for i in range(self._most) for line in self.log(i).splitlines())
        return [line.split(" ", 1)[1] for line in lines if line.startswith("record ")]

    def assert_each_record_once(self):
        records = self.records()
        epochs = self.steps // STEPS_PER_EPOCH
        self._test.assertEqual(len(records), epochs * RECORDS)
        self._test.assertEqual(len(set(records)), epochs * RECORDS)

    def end_of(self, ordinal):
        """{"rank", "step", "loss", "weights", "accuracy"} that the member ended with."""
        words = [line for line in self.log(ordinal).splitlines() if line.startswith("ends ")][-1].split()
        numbers = {words[i]: float(words[i + 1]) for i in (7, 9, 11)}
        return {"rank": int(words[2]), "step": int(words[6]), **numbers}

    def _log(self, ordinal):
        return os.path.join(self._folder, f"log-{ordinal}")


def _without_records(log):
    return [line for line in log.splitlines() if not line.startswith("record ")]


def _end(process):
    process.kill()
    process.join(support.WAIT_SECONDS)
