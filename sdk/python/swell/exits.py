"""How a process of a job ends: with the exit code that says how, and with what must be done before.

Used by `swell.train` and `swell.saving`. What always holds: a process that ends because of a notice ends with the code
of that, also if the script catches SystemExit, as a bare `except:` does. A code of 0 would say that the job is done.
Where an error says that a worker of a DataLoader was killed, the process ends as one that was killed itself: that is
no error of the script, and the job's retries count.
"""

import atexit
import functools
import os
import signal
import sys
import time

EXIT_KILLED = 128 + signal.SIGKILL
_TOLD_SECONDS = 1.0
_code = None


def leave(code, at_once=False):
    """Ends the process with that code. `at_once`: without what else is to be done at its end. Does not return."""
    global _code
    if at_once:
        _end(code)
    _code = code
    raise SystemExit(code)


def at_clean_exit(action):
    """Runs `action` when the process exits, unless an exception ends it."""
    failed = []
    report_exception = sys.excepthook

    def note(kind, value, trace):
        failed.append(kind)
        report_exception(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: failed or action())


@functools.lru_cache(maxsize=None)
def watch_loaders():
    """Called by each Job: an uncaught error that a loader's worker was killed ends this process with EXIT_KILLED."""
    report_exception = sys.excepthook

    def end_as_killed(kind, value, trace):
        global _code
        try:
            killed = _comes_of_killed_loader(value)
        except RuntimeError as told:  # torch raises it wherever this thread is when it hears of the end
            killed = _comes_of_killed_loader(told)
        report_exception(kind, value, trace)
        if _code is None and killed:
            _code = EXIT_KILLED
            sys.stderr.write(
                "swell: a process of a DataLoader was killed from outside, often because memory ran out; this process "
                f"ends with {EXIT_KILLED} as if it had been killed itself, so that the job starts it again\n"
            )

    sys.excepthook = end_as_killed


def _comes_of_killed_loader(error):
    while error is not None:
        text = str(error)
        if text.startswith("DataLoader worker (pid") and ("by signal: Killed" in text or _ended_silently(text)):
            return True
        # A worker that is killed while it hands a batch over breaks the connection, and torch says no more.
        if isinstance(error, (OSError, EOFError)) and _any_was_killed(_workers_in(error.__traceback__)):
            return True
        error = error.__cause__
    return False


def _workers_in(trace):
    """The workers of the loaders that were at work."""
    workers = []
    while trace is not None:
        workers += getattr(trace.tb_frame.f_locals.get("self"), "_workers", None) or []
        trace = trace.tb_next
    return workers


def _any_was_killed(workers):
    # The kernel closes what a process had open before it tells of the end.
    end = time.monotonic() + _TOLD_SECONDS
    while workers:
        if any(worker.exitcode == -signal.SIGKILL for worker in workers):
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return False


def _ended_silently(text):
    # torch says so where it has not heard of the signal, as on a pipe of the process that is gone.
    return "exited unexpectedly" in text and "with exit code" not in text


def _end(code):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@atexit.register  # when this module is imported, so it runs after the exit functions of the script
def _end_as_said():
    if _code is not None:
        _end(_code)
