"""Learning rates that follow the number of ranks.

Used by `swell.train.Job.learning_rate`. If the effective batch is constant (`ResumableDistributedSampler` divides one
batch among all ranks), the right rule is "none": the optimizer sees the same steps whatever the number of ranks. If
each rank keeps its own batch size, the effective batch grows with the ranks, and so must the rate: "linear" (usual for
SGD) or "sqrt" (usual for Adam).

What always holds: the rate depends on the current number of ranks only, not on the changes that led to it. Changes by a
learning rate scheduler are kept, because rates are multiplied and never set.
"""

RULES = ("none", "linear", "sqrt")


class Rates:
    def __init__(self, optimizer, rule, world):
        """`world`: the number of ranks that the optimizer's current rates were chosen for."""
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
    """The factor for the rate when the number of ranks changes from `before` to `after`."""
    if rule == "none":
        return 1.0
    return after / before if rule == "linear" else (after / before) ** 0.5
