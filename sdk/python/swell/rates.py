"""The learning rate when the number of ranks changes.

Used by `swell.train.Job.learning_rate`. With the effective batch constant (`ResumableDistributedSampler` shares one
batch out to however many ranks there are) the right rule is "none": the optimizer sees the very same steps. Where each
rank keeps its own batch size, the effective batch grows with the ranks, and the rate follows it: "linear" (usual for
SGD) or "sqrt" (usual for Adam and its kin).

What always holds: the rate is a function of the size alone, however many changes led there; a scheduler's own changes
of the rate are kept, since rates are multiplied and never set.
"""

RULES = ("none", "linear", "sqrt")


class Rates:
    def __init__(self, optimizer, rule, world):
        """`world`: the size that the optimizer's present rates were chosen for."""
        if rule not in RULES:
            raise ValueError(f"learning rate rule {rule!r} is not one of {', '.join(RULES)}")
        self._optimizer = optimizer
        self._rule = rule
        self._world = world

    def follow(self, world):
        factor = scale(self._rule, self._world, world)
        self._world = world
        for group in self._optimizer.param_groups:
            group["lr"] *= factor
            if "initial_lr" in group:
                group["initial_lr"] *= factor


def scale(rule, before, after):
    """What the rate is multiplied by when the job goes from `before` ranks to `after`."""
    if rule == "none":
        return 1.0
    return after / before if rule == "linear" else (after / before) ** 0.5
