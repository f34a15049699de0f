"""The preemption notice: someone else needs the place, this process has a grace period to save and leave.

Used by `swell.train.Job`; scripts without torch use it directly. The contract with the node agent:

* SIGTERM starts the grace period; its length is in SWELL_GRACE_SECONDS.
* Just before SIGTERM the agent creates the file named by SWELL_NOTICE_FILE:
  {"reason": "...", "by": "namespace/name", "rule": "preempt", "deadline": "RFC3339"}.
  The file does not exist when the container starts.
* A process that leaves because of a notice exits with code 143 (EXIT_NOTICED).

What always holds: `requested` never goes back to False; after `hold()` no SIGTERM, however many, ends the
process; before `hold()` there is nothing to save, so SIGTERM ends the process at once (by signal 15, which shells
and containers count as 143), even while native code waits for peers that will never come. A notice whose
deadline passed before this process started was meant for an earlier one and is ignored.
"""

import json
import os
import signal
import sys
import threading
import time
from datetime import datetime

EXIT_NOTICED = 128 + signal.SIGTERM


class Notice:
    """Listens from construction on. Make it in the main thread: only that one may install signal handlers."""

    def __init__(self, hold=True, environ=None):
        environ = os.environ if environ is None else environ
        self._path = environ.get("SWELL_NOTICE_FILE") or None
        self._grace = _number(environ.get("SWELL_GRACE_SECONDS"))
        self._started = time.time()
        self._signalled = False
        self._info = None
        self._held = hold
        self._lock = threading.Lock()
        self._wake_writer = None
        if hold:
            signal.signal(signal.SIGTERM, self._on_signal)
        elif os.getpid() != 1:
            # The kernel's own action needs no thread of ours to be free; torch waits for peers holding the GIL.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        else:
            # The kernel spares PID 1 of a container; the best that is left is a thread.
            self._watch_from_a_thread()
            signal.signal(signal.SIGTERM, self._on_signal)

    @property
    def requested(self):
        """True from the notice on. Costs a comparison, and one stat of the notice file when there is one."""
        if self._signalled:
            return True
        # The signal can be lost (PID 1 without a handler yet, a shell in between); the file cannot.
        if self._path is not None and os.path.exists(self._path) and not self._stale():
            self._signalled = True
        return self._signalled

    @property
    def info(self):
        """The notice file's content; {} when there is no notice or the file says nothing readable."""
        if self._info is None:
            if not self.requested:
                return {}
            self._info = self._read()
        return self._info

    @property
    def seconds_left(self):
        """Until the process is killed; None when nobody said."""
        deadline = _timestamp(self.info.get("deadline"))
        if deadline is not None:
            return max(0.0, deadline - time.time())
        return self._grace

    def hold(self):
        """From now on there is work to save: a notice is remembered instead of ending the process."""
        with self._lock:
            self._held = True
        signal.signal(signal.SIGTERM, self._on_signal)
        if self._wake_writer is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._wake_writer)
            self._wake_writer = None

    def note(self):
        """For programs with a signal handler of their own: call it there."""
        self._signalled = True

    def _on_signal(self, signum, frame):
        # A handler interrupts any bytecode: it sets one flag and leaves the rest to the step boundary.
        self.note()

    def _watch_from_a_thread(self):
        # Python runs handlers in the main thread between bytecodes, so one blocked in native code never sees
        # them. The interpreter's wake-up descriptor is written from the real signal handler instead.
        reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        threading.Thread(target=self._leave_at_once, args=(reader,), daemon=True).start()

    def _leave_at_once(self, reader):
        try:
            while True:
                numbers = os.read(reader, 64)
                if not numbers:
                    return
                with self._lock:
                    if signal.SIGTERM in numbers and not self._held:
                        # os._exit: the main thread may never come back to run anything else.
                        sys.stderr.write("swell: notice before the first step; nothing to save\n")
                        sys.stderr.flush()
                        os._exit(EXIT_NOTICED)
        finally:
            os.close(reader)

    def _stale(self):
        deadline = _timestamp(self._read().get("deadline"))
        return deadline is not None and deadline < self._started

    def _read(self):
        if self._path is None:
            return {}
        try:
            with open(self._path, encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def _timestamp(text):
    """Seconds since the epoch of an RFC 3339 time, None when it is not one."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    # A naive time would be read in the local zone; RFC 3339 always names one.
    return moment.timestamp() if moment.tzinfo is not None else None


def _number(text):
    try:
        return float(text) if text else None
    except ValueError:
        return None
