"""What a training process reports to the node agent, through files: no client, no credentials, no network.

Used by `swell.checkpoint` and `swell.train`. The contract:

* SWELL_REPORT_FILE names a file. Each checkpoint replaces it with
  {"step": N, "checkpointTime": "RFC 3339 UTC, microseconds", "epoch": E, "metrics": {...}}.
  The agent publishes it on the pod, and the scheduler computes from it how much work a preemption would lose.
* Every two seconds rank 0 updates the metrics in it: "training_step", "world", "steps_per_second" and, if known,
  "records_per_second", "batch_records" (records of a step), "gradient_noise_records" (the noise scale of the gradient,
  swell.noise), "sync_seconds" (how long a step waits for gradients) and, after a change of size,
  "last_resize_seconds". Numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity", as JSON has no
  such numbers; "not_finite_since" is the step at which the first one came. From these the controller learns what more
  members are worth (docs/elastic.md). A member of an elastic job that waits for a group reports "world": 0.
* A checkpoint that could not be written adds {"saveError": {"step", "reason", "time"}}. The next checkpoint removes it.
* SWELL_TERMINATION_LOG (default /dev/termination-log where it exists) gets {"checkpoint": {"step": N}} when the
  process exits because of a notice, or {"notSaved": {"step": N}} if that step could not be saved.

What always holds: a report never ends a training run. If it cannot be written, the reason goes to stderr.
"""

import json
import math
import os
import sys
import time
from datetime import datetime, timezone

from swell.files import write_atomic

_PROGRESS_SECONDS = 2.0
_DEFAULT_TERMINATION_LOG = "/dev/termination-log"
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def report_checkpoint(step, time, epoch=None, metrics=None, environ=None):
    path = _environ(environ).get("SWELL_REPORT_FILE")
    if not path:
        return
    content = {"step": step, "checkpointTime": time, "epoch": epoch, "metrics": for_json(metrics or {})}
    try:
        # Not durable on purpose: after a power cut the checkpoint itself counts.
        write_atomic(path, json.dumps(content).encode(), durable=False)
    except (OSError, TypeError, ValueError) as error:
        complain(f"cannot report the checkpoint of step {step}: {error}")


def report_failed_save(step, reason, folder=None, ends=False, environ=None):
    """On stderr, and to the node agent: the checkpoint that the report names stays the newest one.

    `folder`: of checkpoints, if the reason does not name it. `ends`: the process ends without that checkpoint.
    """
    then = "and the process ends" if ends else "training continues"
    place = f" ({folder})" if folder else ""
    complain(f"checkpoint of step {step} not saved, {then}: {reason}{place}")
    whole = f"{folder}: {reason}" if folder else reason
    _update({"saveError": {"step": step, "reason": whole, "time": now()}}, environ)


def report_termination(step, saved=True, environ=None):
    path = _environ(environ).get("SWELL_TERMINATION_LOG")
    if not path:
        if not os.path.exists(_DEFAULT_TERMINATION_LOG):
            return
        path = _DEFAULT_TERMINATION_LOG
    try:
        # Written in place: the container's file is a bind mount and cannot be replaced.
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"checkpoint" if saved else "notSaved": {"step": step}}, file)
    except OSError as error:
        complain(f"cannot write the termination message: {error}")


class Progress:
    """Reports the speed of training. Used on rank 0, once a step; costs one clock reading if no report is due."""

    def __init__(self, environ=None, clock=time.monotonic):
        self._environ = environ
        self._clock = clock
        self._since = None
        self._steps = self._records = 0
        self._waits = []  # seconds that the steps waited for gradients, where that is known
        self._last_resize = None

    def step(self, step, world, records=None, more=None, waited=None, noise=None):
        """Returns what it reported; None if no report was due.

        `more`: the script's own numbers. `waited`: the seconds that the step waited for gradients, if known. `noise`:
        the noise scale of the gradient in records, if known.
        """
        now = self._clock()
        if self._since is None:
            self._since = now
            return None
        self._steps += 1
        if waited is not None:
            self._waits.append(waited)
        self._records += records or 0
        seconds = now - self._since
        if seconds < _PROGRESS_SECONDS:
            return None
        speed = round(self._steps / seconds, 3)
        metrics = {**(more or {}), "training_step": step, "world": world, "steps_per_second": speed}
        if self._records:
            metrics["records_per_second"] = round(self._records / seconds, 2)
            metrics["batch_records"] = round(self._records / self._steps, 2)
        if noise is not None:
            metrics["gradient_noise_records"] = float(f"{noise:.4g}")
        if self._waits:
            metrics["sync_seconds"] = round(sum(self._waits) / len(self._waits), 6)
        if self._last_resize is not None:
            metrics["last_resize_seconds"] = self._last_resize
        self._since, self._steps, self._records, self._waits = now, 0, 0, []
        report_progress(metrics, self._environ)
        return metrics

    def resized(self, seconds):
        self._since, self._steps, self._records, self._waits = None, 0, 0, []
        self._last_resize = round(seconds, 4)


def report_progress(metrics, environ=None):
    _update({"metrics": for_json(metrics)}, environ)


def for_json(metrics):
    """Numbers that are not finite as texts, since JSON has none."""
    return {name: value if _finite(value) else _NOT_FINITE[str(float(value))] for name, value in metrics.items()}


def _finite(value):
    return not isinstance(value, float) or math.isfinite(value)


def _update(changes, environ):
    path = _environ(environ).get("SWELL_REPORT_FILE")
    if not path:
        return
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        content = {}
    try:
        metrics = {**(content.get("metrics") or {}), **changes.get("metrics", {})}
        write_atomic(path, json.dumps({**content, **changes, "metrics": metrics}).encode(), durable=False)
    except (OSError, TypeError, ValueError, AttributeError) as error:
        complain(f"cannot write the report: {error}")


def _environ(environ):
    return os.environ if environ is None else environ


def complain(text):
    print(f"swell: {text}", file=sys.stderr, flush=True)
