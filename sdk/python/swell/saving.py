"""When and how a job saves itself: a copy in memory stops the training for a moment, and a thread writes it to disk.

Used by `swell.train.Job` on every rank. A rank that keeps a copy calls `copy`; rank 0 then writes it in the background.
`save` writes at once. When the process must end (`process_ends`), it leaves a large state in memory, if the node agent
offers to write it to disk afterwards (SWELL_PERSIST_FILE). So the GPU is free as soon as the state is copied.

What always holds:
* One checkpoint at a time is being written, and it is finished before the process exits, unless it is killed or leaves
  a newer state.
* `saved_step` is on disk, or left to the agent.
* A failure is reported once per save, to stderr and to the node agent, and never raised.
"""

import contextlib
import json
import math
import numbers
import os
import threading
import time

from swell import report, snapshot
from swell.exits import at_clean_exit
from swell.files import write_atomic
from swell.memory import Cancelled

MOST_SECONDS = 1800.0
LEAST_SECONDS = 30.0
# How often a member of a job is lost without a notice, for the interval by Young and Daly. Reboots, lack of memory and
# errors in scripts included, and pessimistic on purpose: a save costs little.
_LOSS_SECONDS_PER_MEMBER = 24 * 3600.0
# The disk takes less than that in a moment.
_LEFT_BYTES_LEAST = 64 << 20
_LEFT_BELOW = "/dev/shm"
_GIVE_UP_SECONDS = 0.2


class Saver:
    def __init__(self, checkpoints, memory, environ=None):
        self._checkpoints = checkpoints
        self._memory = memory
        self._persist_file = _persist_file(checkpoints, memory, os.environ if environ is None else environ)
        # The process before this one in the pod left its state. The request stands until the disk has a state: this
        # process may end before, with its pod.
        self._found_left = self._persist_file is not None and os.path.exists(self._persist_file)
        self._request = threading.Lock()
        self._thread = None
        self._writing = None
        self.process_ends = False
        self.left = False
        self._has_copies = False
        self._holds_last = False  # the copies are what is left of a state that the disk did not take
        self._write_seconds = 0.0
        self._stall_seconds = None
        self.saved_step = None

    def interval(self, members):
        """Seconds between two saves, so that saving and repeating cost least together; within bounds."""
        if self._stall_seconds is None:
            return LEAST_SECONDS
        best = math.sqrt(2 * self._stall_seconds * _LOSS_SECONDS_PER_MEMBER / members)
        # The disk, which others use too, is busy a fourth of the time at most.
        return min(MOST_SECONDS, max(LEAST_SECONDS, best, 4 * self._write_seconds))

    def note_stall(self, seconds):
        """How long the training has waited for a save that was not made here."""
        self._stall_seconds = seconds

    @property
    def busy(self):
        return self._thread is not None and self._thread.is_alive()

    def copy(self, step, state, stamp, epoch=None, metrics=None, on_disk=False):
        """Copies the state to memory. `on_disk`: it is then written to disk in the background. False if that failed."""
        begin = time.monotonic()
        self.flush()
        alone = contextlib.ExitStack()
        try:
            alone.enter_context(self._memory.alone())
            begun = self._memory.begin(step, state, stamp, epoch, metrics)
        except OSError as error:
            alone.close()
            if not on_disk:
                return False
            self._explain_once(error)
            saved = self.save(step, state, epoch, metrics)
            self._stall_seconds = time.monotonic() - begin
            return saved
        except BaseException:
            alone.close()
            raise
        self._stall_seconds = time.monotonic() - begin
        # Not a daemon: the interpreter waits for it at its end.
        arguments = (step, begun, alone, on_disk)
        self._thread = threading.Thread(target=self._finish_copy, args=arguments, name="swell-saving")
        self._thread.start()
        return True

    def prepare(self, size):
        """Makes memory ready for copies of so many bytes, in the background."""
        threading.Thread(target=self._prepare, args=(size,), name="swell-preparing", daemon=True).start()

    def _prepare(self, size):
        _yield_to_the_training()
        with contextlib.suppress(OSError):
            # If there is no room, the first save says so.
            self._memory.prepare(size)

    def copy_for_restart(self, step, state, stamp):
        """What a rank does that must fail although its state is good: the next process on this machine finds it."""
        with contextlib.suppress(OSError), self._memory.alone():
            newest = self._memory.newest()
            if newest is None or newest.index["step"] < step:
                self._memory.write(step, state, stamp)

    def save(self, step, state, epoch=None, metrics=None):
        """Writes the state to disk at once, or leaves it to the agent if the process ends. False if that failed."""
        if self.process_ends and self._leave(step, state, epoch, metrics):
            return True
        self.flush()
        if self.saved_step == step:
            return True
        saved = self._try(step, lambda: self._checkpoints.save(step, state, epoch=epoch, metrics=metrics))
        if saved and self._memory is not None:
            self._memory.drop_after(step)
        self._holds_last = self.process_ends and not saved
        return saved

    def flush(self):
        """Waits until nothing is being written. A checkpoint before the state that is left is given up."""
        if self._thread is not None:
            self._thread.join(_GIVE_UP_SECONDS if self.left else None)
            if not self._thread.is_alive():
                self._thread = None

    def close(self):
        """Another one takes over, with folders of its own."""
        self.flush()
        if self._has_copies:
            self.remove_copies()

    def keep(self, copy):
        """The training continues from the copy, which goes to disk if the process before had left that to the agent."""
        self.remove_copies_at_the_end()
        if self._found_left and not self.busy:
            self._thread = threading.Thread(target=self._write_copy, args=(copy,), name="swell-saving")
            self._thread.start()

    def remove_copies_at_the_end(self):
        if not self._has_copies:
            self._has_copies = True
            at_clean_exit(self.remove_copies)

    def remove_copies(self):
        if not self.left and not self._holds_last:
            self._withdraw()
            self._memory.remove()

    def _leave(self, step, state, epoch, metrics):
        """Leaves the state in memory, and tells the agent where. False if it must be written to disk."""
        if self._persist_file is None or snapshot.size_of(state) < _LEFT_BYTES_LEAST:
            return False
        stamp = report.now()
        try:
            with self._memory.alone():
                copy = self._memory.write(step, state, stamp, epoch, report.for_json(metrics or {}))
            place = os.path.relpath(copy.path, _LEFT_BELOW)
            with self._request:
                write_atomic(self._persist_file, json.dumps({"copy": place}).encode(), durable=False)
                self._found_left = False
        except OSError as error:
            report.complain(f"the state is written to disk while the GPU waits: {error.strerror or error}")
            return False
        self.left = True
        if self._writing is not None:
            self._writing.cancel()
        self.saved_step = step
        report.report_checkpoint(step, stamp, epoch, metrics)
        return True

    def _finish_copy(self, step, begun, alone, on_disk):
        _yield_to_the_training()
        try:
            with alone:
                copy = begun.finish()
        except OSError as error:
            self._report(step, error)
            return
        if on_disk:
            self._write_copy(copy)

    def _write_copy(self, copy):
        begin = time.monotonic()
        self._writing = copy
        with contextlib.suppress(Cancelled):
            self._try(copy.index["step"], lambda: self._checkpoints.save_copy(copy))
        self._writing = None
        self._write_seconds = time.monotonic() - begin

    def _try(self, step, write):
        try:
            write()
        except OSError as error:
            self._report(step, error)
            return False
        self.saved_step = step
        self._withdraw()
        return True

    def _withdraw(self):
        """Takes back the request of the process before this one. The request of this process stays."""
        with self._request:
            if self._found_left:
                self._found_left = False
                with contextlib.suppress(OSError):
                    os.remove(self._persist_file)

    def _report(self, step, error):
        report.report_failed_save(step, error.strerror or str(error), self._checkpoints.dir, self.process_ends)

    def _explain_once(self, error):
        if self._stall_seconds is None:
            report.complain(f"no copy in memory, so the training waits for each checkpoint: {error.strerror or error}")


def _persist_file(checkpoints, memory, environ):
    """The file that offers to write a copy to this folder of checkpoints; None: nobody does."""
    path = environ.get("SWELL_PERSIST_FILE")
    if not path or memory is None or not memory.dir.startswith(_LEFT_BELOW + "/"):
        return None
    if checkpoints.dir != os.path.abspath(environ.get("SWELL_CHECKPOINT_DIR") or ""):
        return None
    return path


def save_seconds(given):
    """`given`, or the manifest's interval; None if it has none."""
    if given is not None:
        if not isinstance(given, numbers.Real) or not given >= 0:
            raise ValueError(f"checkpoint_seconds={given!r:.80}: expected a number of seconds, 0 or more")
        return given
    try:
        return max(0.0, float(os.environ.get("SWELL_CHECKPOINT_SECONDS", "")))
    except ValueError:
        return None


def _yield_to_the_training():
    with contextlib.suppress(OSError):
        # On Linux a thread has a priority of its own.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
