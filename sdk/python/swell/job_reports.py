"""What a job tells of its training: numbers, curves, phases and lines on stdout.

The base of `swell.train.Job`, whose records it writes to. What always holds: a number that is not finite is told once,
and only rank 0 writes what is of the whole job.
"""

import contextlib
import math

from swell import report


class JobReports:
    def log(self, **metrics):
        """Numbers to report with the next checkpoint of `batches`, and every two seconds: `job.log(loss=loss)`."""
        for name, value in metrics.items():
            try:
                number = float(value)
            except (TypeError, ValueError):
                what = type(value).__name__
                raise TypeError(f"job.log({name}=...) is a {what}, {value!r:.80}: expected a number") from None
            if not math.isfinite(number) and self.env.leader and math.isfinite(self.metrics.get(name, 0.0)):
                report.complain(f"{name} is not a finite number at step {self.progress.step} ({number})")
                if self._not_finite_since is None:
                    self._not_finite_since = self.progress.step
            self.metrics[name] = number
        if all(map(math.isfinite, self.metrics.values())):
            self._not_finite_since = None

    def scalar(self, name, value, step=None):
        """A point of a curve for TensorBoard, if the job has a `log_dir`. Ranks other than 0 may call it in vain.

        `step`: by default the one under way, and within `phase("eval")` the last one that is done.
        """
        if not self.env.leader or not self._scalars.enabled:
            return
        if step is None:
            step = self.progress.step + (1 if self.progress.phase == "step" else 0)
        self._scalars.add(step, {name: value})

    def show_rates(self, things):
        """The learning rates of those of `things` that are optimizers become curves."""
        known = [id(optimizer) for optimizer in self._optimizers]
        self._optimizers += [thing for thing in things if hasattr(thing, "param_groups") and id(thing) not in known]

    @contextlib.contextmanager
    def phase(self, name):
        """What this rank does in the context, if that is not a step: "eval", "save", "load" or "data".

        The node agent allows each phase its own time, so an evaluation is not taken for a rank that hangs.
        """
        before = self.progress.phase
        self.progress.enter(name)
        try:
            yield
        finally:
            self.progress.enter(before)

    def note_step(self, step, records=None):
        """Reports the speed and what `log` was given, and adds both to curves. `step_done` and `batches` call it."""
        if not self.env.leader:
            return
        # One rank alone measures no noise, so it reports none.
        noise = self._noise.scale if self.env.world > 1 else None
        own = self.metrics
        if self._not_finite_since is not None:
            own = {**own, "not_finite_since": self._not_finite_since}
        speed = self._speed.step(step, self.env.world, records, own, self._exchange.take(), noise)
        self._scalars.add_step(step, self.metrics, self._optimizers, speed)

    def note_restore(self, step):
        """The script has restored the state after that step; 0: it starts. The curves continue there."""
        self.progress.step = step
        self._scalars.begin(step + 1)
        if step > 0:
            self._say(f"continues from step {step}")

    def _say(self, text):
        if self.env.leader:
            print(f"swell: {text}", flush=True)
