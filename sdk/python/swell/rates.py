"""Learning rates that follow the batch.

Used by `swell.train.Job.learning_rate`. If the effective batch is constant (`ResumableDistributedSampler` divides one
batch among all ranks), the right rule is "none": the optimizer sees the same steps whatever the number of ranks. If
the batch is s times the one that the rates were chosen for, because each rank keeps its own or because it follows the
noise of gradients (`swell.batch`), so must the rate: "linear" (s, usual for SGD) or "sqrt" (usual for Adam).
"adascale" is the gain of such a step, s (φ + M0) / (φ + M): it is s while the noise is large, and 1 when more records
say nothing new (AdaScale, ICML'20). "adamscale" is its square root. Both need the noise scale φ (`swell.noise`); until
it is known they change nothing, unless the batch is smaller.

What always holds: the rate depends on the present batch only, not on the changes that led to it. Changes by a learning
rate scheduler are kept, because rates are multiplied and never set. The factor is beside the rate in the optimizer's
groups, so a state that was saved with another batch is corrected when it is loaded.
"""

import os

RULES = ("none", "linear", "sqrt", "adascale", "adamscale")
_FACTOR = "swell_rate_factor"


class Rates:
    def __init__(self, optimizer, rule, world):
        """`world`: the number of ranks that the optimizer's current rates were chosen for."""
        if rule not in RULES:
            raise ValueError(f"learning rate rule {rule!r} is not one of {', '.join(RULES)}")
        self.optimizer = optimizer
        self._rule = rule
        self._world = world
        self._factor = 1.0
        if rule == "none":
            return
        for group in optimizer.param_groups:
            group[_FACTOR] = 1.0
        if hasattr(optimizer, "load_state_dict"):
            self._load = optimizer.load_state_dict
            optimizer.load_state_dict = self._load_and_follow

    def follow(self, world, noise=None, batch=None):
        """`batch`: by what factor it differs from the script's own; None if it follows the number of ranks.

        `noise`: the noise scale, relative to the script's batch, or else to the records of one rank. None: not known.
        """
        if batch is None:
            batch = world / self._world
            noise = None if noise is None else noise / self._world
        self._factor = factor(self._rule, batch, noise)
        self._apply()

    def _apply(self):
        for group in self.optimizer.param_groups if self._rule != "none" else ():
            # A state of before this was kept has the rates of the present batch.
            change = self._factor / group.get(_FACTOR, self._factor)
            group["lr"] *= change
            if "initial_lr" in group:
                group["initial_lr"] *= change
            group[_FACTOR] = self._factor

    def _load_and_follow(self, state):
        result = self._load(state)
        self._apply()
        return result


def adapt(job, things):
    """If the job chooses its batch, gives the manifest's rule to each optimizer that has none.

    If each rank keeps its batch, only the script knows for how many ranks its rates were chosen.
    """
    if os.environ.get("SWELL_LEARNING_RATE", "none") == "none" or job.batch_size.most is None:
        return
    adapted = [rates.optimizer for rates in job._rates]
    for thing in things:
        if hasattr(thing, "param_groups") and not any(thing is one for one in adapted):
            job.learning_rate(thing)


def factor(rule, scale, noise=None):
    """The factor for a rate if the batch has `scale` times the records; `noise`: relative to the batch before."""
    if rule == "none":
        return 1.0
    if rule in ("linear", "sqrt"):
        return scale if rule == "linear" else scale**0.5
    gain = min(1.0, scale) if noise is None else scale * (noise + 1) / (noise + scale)
    return gain if rule == "adascale" else gain**0.5
