"""What a training process tells the node agent, through files: no client, no credentials, no network.

Used by `swell.checkpoint` and `swell.train`. The contract:

* SWELL_REPORT_FILE names a file that is replaced at each checkpoint by
  {"step": N, "checkpointTime": "RFC3339 UTC, microseconds", "epoch": E, "metrics": {...}};
  the agent publishes it on the pod, and the scheduler reads how much work stopping the pod would lose.
* SWELL_TERMINATION_LOG (default /dev/termination-log where it exists) gets {"checkpoint": {"step": N}} when the
  process leaves because of a notice.

What always holds: a report never ends a training run: what cannot be written is said on stderr and forgotten.
"""

import json
import os
import sys
from datetime import datetime, timezone

from swell.files import write_atomic

_DEFAULT_TERMINATION_LOG = "/dev/termination-log"


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def report_checkpoint(step, time, epoch=None, metrics=None, environ=None):
    path = _environ(environ).get("SWELL_REPORT_FILE")
    if not path:
        return
    content = {"step": step, "checkpointTime": time, "epoch": epoch, "metrics": metrics or {}}
    try:
        # Not durable on purpose: after a power cut the checkpoint itself is the truth.
        write_atomic(path, json.dumps(content).encode(), durable=False)
    except (OSError, TypeError, ValueError) as error:
        _complain(f"cannot report the checkpoint of step {step}: {error}")


def report_termination(step, environ=None):
    path = _environ(environ).get("SWELL_TERMINATION_LOG")
    if not path:
        if not os.path.exists(_DEFAULT_TERMINATION_LOG):
            return
        path = _DEFAULT_TERMINATION_LOG
    try:
        # Written in place: the container's file is a bind mount and cannot be replaced.
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"checkpoint": {"step": step}}, file)
    except OSError as error:
        _complain(f"cannot write the termination message: {error}")


def _environ(environ):
    return os.environ if environ is None else environ


def _complain(text):
    print(f"swell: {text}", file=sys.stderr, flush=True)
