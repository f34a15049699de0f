"""A step of `Job.batches` that cannot be finished, because a peer was lost in it.

The body of a `for` belongs to the script: if it raised, the loop would be over. So the wrapper of the network does not
raise. It notes the loss here, what the script's body computes from then on stays in this process, and the `step` of
optimizers and schedulers does nothing. When the body has ended, `batches` forms a new group and repeats the step.

What always holds: while `active` is False nothing is hidden, and errors of collectives go to the script.
"""


class GuardedStep:
    """What `with job.guard(...) as guarded` has: whether a peer was lost in the step, and another state is loaded."""

    def __init__(self):
        self.repeats = False


class StepGuard:
    def __init__(self):
        self.active = False
        self.error = None
        # Why the group is broken, although no collective of this rank has failed yet; None while it is not.
        self.group_broken = lambda: None

    def broken(self):
        return self.active and (self.error is not None or self.group_broken() is not None)

    def begin(self):
        self.active, self.error = True, None

    def end(self):
        """The error that broke the step, or None."""
        self.active = False
        return self.error

    def note(self, error):
        self.error = self.error or error

    def hold_back(self, things):
        """While a step is broken, `step` and `update` of these objects do nothing: the step is repeated."""
        for thing in things:
            for name in ("step", "update"):
                method = getattr(thing, name, None)
                if callable(method) and hasattr(thing, "state_dict") and not hasattr(method, "swell_guard"):
                    setattr(thing, name, self._unless_broken(method))

    def _unless_broken(self, method):
        def held_back(*arguments, **named):
            return None if self.broken() else method(*arguments, **named)

        held_back.swell_guard = self
        return held_back
