"""How long this rank's own part of a step takes: a step less the time in which it waits for other ranks.

Used by `swell.train.Job`; `swell.parallel` and `watch_collectives` say when the rank waits. Ranks that sum gradients
have one speed, so only this time shows which of them the others wait for. The node agent reads the totals in the
progress record (`swell.progress`) and compares them.

A step is what lies between two meetings, in which the ranks agree whether to stop. What the rank does there until it
arrives at the next meeting is its own, except waits for sums of gradients and for other collectives. On a GPU the
processor only hands out work, so there everything but the waits counts, and events on the GPU measure these.

What always holds: a step with an evaluation, a save or a change of the group in it does not count. A rank alone
measures nothing. Steps cost a few microseconds.
"""

import functools
import sys
import threading
import time

_WRITE_SECONDS = 1.0
_EVENTS_MAX = 256  # on a GPU, of waits that are not over
# The names of all versions of torch; FSDP calls those of its own.
_COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "all_gather_single",
                "_all_gather_base", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single",
                "_reduce_scatter_base", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier")


class OwnTime:
    def __init__(self, record, clock=time.perf_counter_ns):
        self._record = record
        self._clock = clock
        self._begin = None  # of the step; None: it does not count
        self._own = None  # until it arrived at the meeting
        self._waited = 0
        self._asked, self._answered = None, 0  # the sums of gradients that a backward pass waits for
        self._on_gpu = False
        self._events = []  # (begin, end) of waits on a GPU
        self._event = None
        self._written = 0
        self.elements = 0  # of the step's data
        self.steps = self.own_total = self.whole_total = self.elements_total = 0

    def arrive(self):
        """The rank has done its part of the step, and meets the others."""
        if self._begin is None:
            return
        self._take_answer()
        if self._on_gpu:
            self._take_events()
        self._own = self._clock() - self._begin - self._waited

    def leave(self):
        """The meeting is over, and the next step begins."""
        now = self._clock()
        if self._own is not None and not self._record.interrupted:
            self.steps += 1
            whole = now - self._begin
            self.own_total += max(0, whole - self._waited if self._on_gpu else self._own)
            self.whole_total += whole
            self.elements_total += self.elements
            if now - self._written >= _WRITE_SECONDS * 1e9:
                self._written = now
                self._record.note_own(self.steps, self.own_total, self.whole_total, self.elements_total)
        self._begin, self._own, self._waited, self.elements = now, None, 0, 0
        self._asked = None
        self._record.interrupted = False

    def forget(self):
        """The step does not count: the group has changed."""
        self._begin = self._own = self._asked = None
        self._events = []

    def ask(self, tensor):
        """The last gradients of a backward pass are ready to be summed: what follows is waiting."""
        if tensor.is_cuda:
            self._event = _gpu_event()
            return
        self._take_answer()
        self._asked, self._answered = self._clock(), 0

    def answered(self, tensor):
        """A sum is there. Called by torch's threads."""
        if not tensor.is_cuda:
            self._answered = self._clock()
        elif self._event is not None:
            self._note_events(self._event, _gpu_event())

    def wait(self, call):
        """What `call` returns. The time that it takes counts as waiting."""
        if self._begin is None:
            return call()
        if _on_gpu():
            event = _gpu_event()
            result = call()
            self._note_events(event, _gpu_event())
            return result
        begin = self._clock()
        try:
            return call()
        finally:
            self._waited += self._clock() - begin

    def _take_answer(self):
        if self._asked is not None and self._answered > self._asked:
            self._waited += self._answered - self._asked
        self._asked = None

    def _note_events(self, begin, end):
        self._on_gpu = True
        if self._events and self._events[-1][0] is begin:
            self._events.pop()  # the sums of one pass: until the last of them
        if len(self._events) < _EVENTS_MAX:
            self._events.append((begin, end))

    def _take_events(self):
        # Those that the GPU has not reached belong to a later step, which is all the same for a mean.
        while self._events and self._events[0][1].query():
            begin, end = self._events.pop(0)
            self._waited += int(begin.elapsed_time(end) * 1e6)


def elements_of(batch, depth=4):
    """How many numbers the tensors of a batch have: a rank with more of them may take longer."""
    if hasattr(batch, "numel"):
        return batch.numel()
    if depth == 0 or not isinstance(batch, (dict, list, tuple)):
        return 0
    return sum(elements_of(part, depth - 1) for part in (batch.values() if isinstance(batch, dict) else batch))


def watch_collectives(own):
    """From now on the collectives that the script or FSDP calls count as waiting, unless they return at once."""
    import torch.distributed as dist

    within = threading.local()  # some collectives are made of others
    for name in _COLLECTIVES:
        function = getattr(dist, name, None)
        if function is None:
            continue
        function = getattr(function, "swell_unwatched", function)
        watched = _watched(function, own, within)
        setattr(dist, name, watched)
        # FSDP and torch's own modules read them there.
        if getattr(dist.distributed_c10d, name, None) is not None:
            setattr(dist.distributed_c10d, name, watched)


def _watched(function, own, within):
    @functools.wraps(function)
    def watched(*arguments, **named):
        if named.get("async_op") or getattr(within, "one", False) or _is_compiling():
            return function(*arguments, **named)
        within.one = True
        try:
            return own.wait(lambda: function(*arguments, **named))
        finally:
            within.one = False

    watched.swell_unwatched = function
    return watched


def _is_compiling():
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return bool(getattr(compiler, "is_compiling", bool)())


def _on_gpu():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch.cuda.is_available()


def _gpu_event():
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
