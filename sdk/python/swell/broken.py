"""A step of `Job.batches` that cannot be finished, because a peer was lost in it.

The body of a `for` belongs to the script: if it raised, the loop would be over. So the wrapper of the network does not
raise. It notes the loss here, what the script's body computes from then on stays in this process, and the `step` of
optimizers and schedulers does nothing. When the body has ended, `batches` forms a new group and repeats the step.

What always holds: while `active` is False nothing is hidden, and errors of collectives go to the script. What
`hold_back` sets on an object is not in its state.
"""

import functools
import types

# Optimizers, schedulers, GradScalers and averages of weights have them.
_COUNTING = ("step", "update", "update_parameters")
_MARK = "swell_guard"


def step_of(state, told):
    """The step of a script's own state, or else `told`, the last one that the script gave to the job."""
    return state["step"] if isinstance(state, dict) and "step" in state else told


class GuardedStep:
    """What `with job.guard(...) as guarded` has: whether a peer was lost in the step, and another state is loaded."""

    def __init__(self):
        self.repeats = False


class StepGuard:
    def __init__(self):
        self.active = False
        self.error = None
        self.held_optimizers = 0
        self.stepped = False  # an optimizer has stepped in this step
        # Why the group is broken, although no collective of this rank has failed yet; None while it is not.
        self.group_broken = lambda: None

    def broken(self):
        return self.active and (self.error is not None or self.group_broken() is not None)

    def begin(self):
        self.active, self.error, self.stepped = True, None, False

    def end(self):
        """The error that broke the step, or None."""
        self.active = False
        return self.error

    def note(self, error):
        self.error = self.error or error

    def hold_back(self, things):
        """While a step is broken, their methods that count it do nothing: the step is repeated."""
        for thing in things:
            names = [name for name in _COUNTING if self._must_hold(thing, name)]
            self.held_optimizers += "step" in names and hasattr(thing, "param_groups")
            for name in names:
                _replace(thing, name, self._unless_broken)
            if names:
                _replace(thing, "state_dict", _without_replaced)

    def keeps_gradients(self):
        """Whether a step has ended without that of an optimizer, so that its gradients wait for another batch."""
        return self.held_optimizers > 0 and not self.stepped

    def _must_hold(self, thing, name):
        method = getattr(thing, name, None)
        return callable(method) and hasattr(thing, "state_dict") and not hasattr(method, _MARK)

    def _unless_broken(self, name, method):
        def held_back(thing, *arguments, **named):
            # A GradScaler's step counts, too: it may skip its optimizer's.
            if name == "step" and (hasattr(thing, "param_groups") or hasattr(thing, "unscale_")):
                self.stepped = True
            if not self.broken():
                return method(thing, *arguments, **named)
            if name == "update" and hasattr(thing, "unscale_"):
                # A GradScaler refuses to unscale the repeated step if this one was unscaled and not updated.
                method(thing, thing.get_scale())
            return None

        return held_back


def _replace(thing, name, changed):
    """Replaces a method of one object by a bound method, so that a copy of the object has its own."""
    method = getattr(thing, name)
    if getattr(method, "__self__", None) is thing:
        function = method.__func__
    else:
        # One that was replaced before: torch's schedulers do so to an optimizer's `step`.
        def function(_, *arguments, **named):
            return method(*arguments, **named)

    # The marks of those schedulers stay on it, else they warn.
    replacement = functools.wraps(method)(changed(name, function))
    setattr(replacement, _MARK, True)
    setattr(thing, name, types.MethodType(replacement, thing))


def _without_replaced(_, state_dict):
    """The state of torch's schedulers is all that they have, so it would have these methods."""

    def own_state(thing, *arguments, **named):
        state = state_dict(thing, *arguments, **named)
        if not isinstance(state, dict) or not any(hasattr(value, _MARK) for value in state.values()):
            return state
        return {key: value for key, value in state.items() if not hasattr(value, _MARK)}

    return own_state
