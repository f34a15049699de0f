"""How far this rank is and what it does, in 96 bytes of shared memory. The node agent reads them whenever it wants.

Used by `swell.train.Job`. The file is `progress-<RANK>` in the folder of SWELL_REPORT_FILE; without that variable
it does not exist. Nothing is sent: a change costs about a microsecond, and the record can be read while the
process hangs.

| place | bytes | field |
|---|---|---|
| 0 | 8 | `SWELLPR1` |
| 8 | 4 | sequence: odd while the record changes; read it before and after, and again if the two differ or are odd |
| 12 | 4 | phase: its place in `PHASES` |
| 16 | 8 | step: steps that are finished |
| 24 | 8 | total: steps of the whole training; 0 if not known |
| 32 | 8 | CLOCK_MONOTONIC of the last change, in nanoseconds |
| 40 | 4 | epoch, from 0 |
| 44 | 4 | epochs of the whole training; 0 if not known |
| 48 | 4 | rank now (it can change when the job changes its size) |
| 52 | 4 | world: the number of ranks |
| 56 | 4 | the process's own id, in its PID namespace |
| 60 | 4 | steps that were done twice because of a loss |
| 64 | 8 | steps of this process whose time was measured; see `swell.own_time` |
| 72 | 8 | nanoseconds of its own work in them |
| 80 | 8 | nanoseconds that they took |
| 88 | 8 | numbers in the tensors of their batches; 0 if not known |

The last four change once a second at most.

All numbers are little-endian and unsigned. Kubeflow's `progressPercentage` is 100 * step / total, and
`estimatedRemainingSeconds` follows from two readings.

SIGUSR1 writes the stacks of all threads to `stacks-<RANK>` beside it, also while native code runs. A script that has a
handler of its own for that signal keeps it.

What always holds: a new process begins with phase `init` and step 0, so nothing of an earlier one is left. A process
that multiprocessing spawns, and that imports the script for that, leaves the rank's record alone.
"""

import faulthandler
import mmap
import os
import signal
import struct
import sys
import time

from swell import report

PHASES = ("init", "step", "eval", "save", "load", "data", "done")
_stacks = []  # the open file of stacks
_MAGIC = b"SWELLPR1"
_SEQUENCE = struct.Struct("<I")
_RECORD = struct.Struct("<IQQQIIIIII")  # from place 12 on
_OWN = struct.Struct("<QQQQ")  # from place 64 on
_TRAINS = (1, 5)  # the phases of a step
SIZE = 96


class ProgressRecord:
    def __init__(self, rank, world, environ=None):
        environ = os.environ if environ is None else environ
        self._memory = None
        self._sequence = 0
        self._phase = 0
        self.step = self.total = self.epoch = self.epochs = self.repeated = 0
        self.rank, self.world = rank, world
        self.interrupted = False  # a phase since this was set to False was not part of a step
        path = environ.get("SWELL_REPORT_FILE")
        if not path or _is_imported_by_a_child():
            return
        folder = os.path.dirname(os.path.abspath(path))
        try:
            with open(os.path.join(folder, f"progress-{rank}"), "w+b") as file:
                file.truncate(SIZE)
                self._memory = mmap.mmap(file.fileno(), SIZE)
            self._memory[0:8] = _MAGIC
            _write_stacks_on_signal(os.path.join(folder, f"stacks-{rank}"))
        except (OSError, ValueError) as error:
            report.complain(f"progress cannot be shown: {error}")
        self._write()

    @property
    def phase(self):
        return PHASES[self._phase]

    def enter(self, phase, step=None):
        """Sets the phase, and the step if it is given."""
        if phase not in PHASES:
            raise ValueError(f"phase {phase!r} is not one of {', '.join(PHASES)}")
        self._phase = PHASES.index(phase)
        if self._phase not in _TRAINS:
            self.interrupted = True
        if step is not None:
            self.step = step
        self._write()

    def touch(self):
        """This rank moves, in the phase that it is in."""
        self._write()

    def _write(self):
        memory = self._memory
        if memory is None:
            return
        self._sequence = (self._sequence + 2) & 0xFFFFFFFE
        _SEQUENCE.pack_into(memory, 8, self._sequence | 1)
        _RECORD.pack_into(
            memory,
            12,
            self._phase,
            self.step,
            self.total,
            time.monotonic_ns(),
            self.epoch,
            self.epochs,
            self.rank,
            self.world,
            os.getpid(),
            self.repeated,
        )
        _SEQUENCE.pack_into(memory, 8, self._sequence)

    def note_own(self, steps, own, whole, elements):
        """The totals of `swell.own_time`."""
        if self._memory is not None:
            _SEQUENCE.pack_into(self._memory, 8, self._sequence | 1)
            _OWN.pack_into(self._memory, 64, steps, own, whole, elements)
            self._write()


def read(path):
    """The record as a dict; None if there is none or it did not hold still. For tests and tools."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ) as memory:
            for _ in range(1000):
                before = _SEQUENCE.unpack_from(memory, 8)[0]
                values = _RECORD.unpack_from(memory, 12) + _OWN.unpack_from(memory, 64)
                if memory[0:8] == _MAGIC and before % 2 == 0 and before == _SEQUENCE.unpack_from(memory, 8)[0]:
                    break
            else:
                return None
    except (OSError, ValueError):
        return None
    names = ("phase", "step", "total", "monotonic_ns", "epoch", "epochs", "rank", "world", "pid", "repeated",
             "steps_measured", "own_ns", "whole_ns", "elements")
    found = dict(zip(names, values))
    return {**found, "phase": PHASES[found["phase"]]} if found["phase"] < len(PHASES) else None


def _is_imported_by_a_child():
    """Whether multiprocessing imports the script in a process that it has spawned, such as a worker of a DataLoader."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and getattr(processes.current_process(), "_inheriting", False)


def _write_stacks_on_signal(path):
    if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL:
        return  # the script's own
    # Open as long as the process lives: the handler may not open files.
    file = open(path, "w", encoding="utf-8")
    faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
    while _stacks:
        _stacks.pop().close()
    _stacks.append(file)
