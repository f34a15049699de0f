"""How a process of a job ends: with the exit code that says how, and with what must be done before.

Used by `swell.train` and `swell.saving`. What always holds: a process that ends because of a notice ends with the code
of that, also if the script catches SystemExit, as a bare `except:` does. A code of 0 would say that the job is done.
"""

import atexit
import os
import sys

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


def _end(code):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@atexit.register  # when this module is imported, so it runs after the exit functions of the script
def _end_as_said():
    if _code is not None:
        _end(_code)
