"""The preemption notice: this process must save and exit within its grace period.

Used by `swell.train.Job`; scripts without torch use it directly. The contract with the node agent:

* SIGTERM starts the grace period; its length is in SWELL_GRACE_SECONDS.
* Just before SIGTERM the agent creates the file named by SWELL_NOTICE_FILE:
  {"reason": "...", "by": "namespace/name", "rule": "preempt", "deadline": "RFC3339"}.
  The file does not exist when the container starts.
* A process that exits because of a notice exits with code 143 (EXIT_NOTICED) if its work is saved, and with 138
  (EXIT_NOT_SAVED) if it could not be saved. Controllers that restart by exit code restart after both.

What always holds:
* `requested` never goes back to False.
* After `hold()` no SIGTERM, however many come, ends the process.
* Before `hold()` there is nothing to save, so SIGTERM ends the process at once (by signal 15, which shells and
  containers count as 143), even if native code waits for peers that never come.
* A notice whose deadline passed before this process started was for an earlier process and is ignored.
* A process that this one forks, such as one of multiprocessing, ends on SIGTERM as usual.
* If the signal goes to the whole process group, as when a shell waits for the script, the workers of torch's loaders
  end. That ends no step of this process.
* If `torch.multiprocessing.spawn` started the process, `hold()` says on stderr that its parent waits for no save.
* A handler of SIGTERM that the script has set before is replaced, and a message says so. Those of frameworks are
  replaced without one.
"""

import functools
import json
import os
import re
import signal
import sys
import threading
import time
from datetime import datetime

EXIT_NOTICED = 128 + signal.SIGTERM
EXIT_NOT_SAVED = 138
_FRAMEWORKS = {"accelerate", "lightning", "pytorch_lightning", "swell", "torch", "transformers"}


class Notice:
    """Create it in the main thread, because only that thread may install signal handlers."""

    def __init__(self, hold=True, environ=None):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("swell.Job and swell.Notice take signals: create them in the main thread")
        environ = os.environ if environ is None else environ
        self._path = environ.get("SWELL_NOTICE_FILE") or None
        self._grace = _number(environ.get("SWELL_GRACE_SECONDS"))
        self._started = time.time()
        self._signalled = False
        self._info = None
        self._held = hold
        self._lock = threading.Lock()
        self._wake_writer = None
        _tell_of_handler()
        _forks_end_as_usual()
        if hold:
            signal.signal(signal.SIGTERM, self._on_signal)
        elif os.getpid() != 1:
            # The kernel's default action works even while torch waits for peers and holds the GIL.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        else:
            # The kernel does not apply the default action to PID 1 of a container, so a thread does it.
            self._exit_from_a_thread()
            signal.signal(signal.SIGTERM, self._on_signal)

    @property
    def requested(self):
        """True once there is a notice. Costs a comparison, and a stat of the notice file if it has a name."""
        if self._signalled:
            return True
        # The signal can get lost (PID 1 without a handler yet, a shell in between). The file cannot.
        if self._path is not None and os.path.exists(self._path) and not self._stale():
            self._signalled = True
        return self._signalled

    @property
    def info(self):
        """The notice file's content; {} if there is no notice or the file is not readable."""
        if self._info is None:
            if not self.requested:
                return {}
            self._info = self._read()
        return self._info

    @property
    def seconds_left(self):
        """Seconds until the process is killed; None if that is not known."""
        deadline = _timestamp(self.info.get("deadline"))
        if deadline is not None:
            return max(0.0, deadline - time.time())
        return self._grace

    def hold(self):
        """From now on a notice sets `requested` and does not end the process, because there is work to save."""
        with self._lock:
            self._held = True
        _tell_of_handler()
        signal.signal(signal.SIGTERM, self._on_signal)
        if _parent_ends_first():
            _tell(
                "multiprocessing started this process, and its parent ends on SIGTERM without waiting for a save. "
                "Start the ranks with python -m swell.launch --nproc-per-node=N, not with torch.multiprocessing.spawn"
            )
        if self._wake_writer is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._wake_writer)
            self._wake_writer = None

    def batches_of(self, loader):
        """A loader's batches. The loader begins again, once, if its workers got the notice, too, and died of it.

        An error of another cause comes again then.
        """
        before = self.requested
        try:
            for batch in loader:
                self._hear_of_loaders()
                yield batch
            return
        except Exception:  # of many kinds: a batch that a worker had sent may lie in its memory
            if before or not self.requested:
                raise
        yield from loader

    def note(self):
        """Records a notice. Call it in your own signal handler if the program has one."""
        self._signalled = True

    def _on_signal(self, signum, frame):
        # A handler can interrupt any bytecode, so it only sets a flag. The rest happens between two steps.
        self.note()
        self._hear_of_loaders()

    def _hear_of_loaders(self):
        # torch's handler raises an error in the main thread, wherever that is, when a worker of a loader has ended.
        handler = signal.getsignal(signal.SIGCHLD)
        own = threading.current_thread() is threading.main_thread()
        if own and getattr(handler, "__module__", None) == "torch.utils.data._utils.signal_handling":
            # Not SIG_DFL, of which Python warns if a signal is under way.
            signal.signal(signal.SIGCHLD, functools.partial(self._on_end_of_child, handler))

    def _on_end_of_child(self, handler, signum, frame):
        try:
            handler(signum, frame)
        except RuntimeError as error:
            # Where a notice goes to the whole process group, a worker may end before this process notes it.
            if not self._signalled and "by signal: Terminated" not in str(error):
                raise

    def _exit_from_a_thread(self):
        # Python runs handlers in the main thread between bytecodes, so not while native code blocks that thread.
        # The interpreter writes its wake-up descriptor in the real signal handler.
        reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        threading.Thread(target=self._exit_on_signal, args=(reader,), daemon=True).start()

    def _exit_on_signal(self, reader):
        try:
            while True:
                numbers = os.read(reader, 64)
                if not numbers:
                    return
                with self._lock:
                    if signal.SIGTERM in numbers and not self._held:
                        # os._exit, because the main thread may be blocked for good.
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


def _is_own(handler):
    return isinstance(getattr(handler, "__self__", None), Notice)


@functools.lru_cache(maxsize=None)
def _forks_end_as_usual():
    """Else a Pool of multiprocessing, which ends its processes by this signal, would wait for ever."""
    thread = threading.local()

    def before():
        # A signal that comes before the child's own handler is set must wait for it.
        thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))

    def after():
        signal.pthread_sigmask(signal.SIG_SETMASK, thread.mask)

    def after_in_child():
        handler = signal.getsignal(signal.SIGTERM)
        if _is_own(handler):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if handler.__self__._wake_writer is not None:
                signal.set_wakeup_fd(-1)
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after_in_child)


def _tell(text):
    if os.environ.get("RANK", "0") == "0":
        sys.stderr.write(f"swell: {text}\n")
        sys.stderr.flush()


def _tell_of_handler():
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or _is_own(handler):
        return
    if str(getattr(handler, "__module__", "")).split(".")[0] in _FRAMEWORKS:
        return
    name = getattr(handler, "__name__", type(handler).__name__)
    _tell(
        f"the script's own handler of SIGTERM, {name}, is not called any more: on SIGTERM, swell saves after the step "
        "under way and exits with 143. If the handler is needed all the same, set it again after the first step, and "
        "call job.notice.note() in it"
    )


def _parent_ends_first():
    """Whether multiprocessing started this process, and its parent ends on SIGTERM: the container ends with that."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or processes.parent_process() is None:
        return False
    try:
        with open(f"/proc/{os.getppid()}/status", encoding="ascii") as file:
            masks = re.findall(r"^Sig(?:Ign|Cgt):\s*([0-9a-f]+)$", file.read(), re.MULTILINE)
    except (OSError, ValueError):
        return False
    handled = 0
    for mask in masks:
        handled |= int(mask, 16)
    return not handled >> (signal.SIGTERM - 1) & 1


def _timestamp(text):
    """An RFC 3339 time as seconds since the epoch; None if `text` is not one."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    # RFC 3339 requires a time zone; Python would read a time without one as local time.
    return moment.timestamp() if moment.tzinfo is not None else None


def _number(text):
    try:
        return float(text) if text else None
    except ValueError:
        return None
