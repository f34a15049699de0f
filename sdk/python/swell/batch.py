"""A batch that follows the noise of gradients (`spec.batch: {effective: Goodput, max: N}`).

Used by `swell.train.Job`, which asks it after each step; samplers and streams ask it for the records of a step.

Rank 0 chooses the batch that makes most goodput: records per second times what a record is worth, (φ + M0) / (φ + M)
for a batch M, the script's own batch M0 and the noise scale φ (`swell.noise`). How long a step takes is measured at
each batch that was used; the time of others is on a line through these. Until two are measured, a batch of twice the
size is taken to cost nothing, so that it is tried. A batch is at most twice the largest that was measured, and changes
only for 5 % more goodput.

What always holds:
* The batch is between the script's own and the maximum.
* All ranks change it between the same two steps. It is a level in one byte, which travels with what the ranks agree on
  after each step, so it costs no message of its own. The noise by which learning rates follow travels beside it.
"""

import math
import os

_PER_DOUBLING = 4  # levels
_LEVEL_MAX = 200
_NOISE_ONE = 100  # the level at which the noise is as many records as the base
_WARM_STEPS = 2  # of a new batch, which say little
_FEWEST_STEPS = 16
_OUTLIER = 4
_MEMORY = 64  # a new step counts as one of at most this number
_WORTH_CHANGING = 1.05


class BatchSize:
    def __init__(self, environ=None):
        environ = os.environ if environ is None else environ
        self.most = None  # None: the batch is not chosen here
        if environ.get("SWELL_BATCH_OF") == "goodput":
            self.most = int(environ.get("SWELL_BATCH_MAX") or 0)
        self.level = self.noise_level = 0
        self._initial = None
        self.begin_group()

    def begin_group(self):
        """The number of ranks has changed: steps take another time."""
        self._times = {}  # by level: [steps, mean seconds]
        self._records_of_rank = 0.0  # of a whole batch: the last one of an epoch may have fewer
        self._begin_level()

    def _begin_level(self):
        self._fresh = 0

    def of(self, initial):
        """The records of a step, for a script whose own batch has `initial`."""
        self._initial = initial
        return initial if self.most is None else self._at(self.level)

    def _at(self, level):
        return max(self._initial, min(self.most, round(self._initial * 2 ** (level / _PER_DOUBLING))))

    @property
    def scale(self):
        """By what factor the batch differs from the script's own; None if it is not chosen here."""
        if self.most is None:
            return None
        return self._at(self.level) / self._initial if self._initial else 1.0

    @property
    def noise(self):
        """The noise scale as all ranks know it, relative to the script's batch, or to the records of one rank if the
        batch is not chosen here. None if it is not known."""
        return None if self.noise_level == 0 else 2 ** ((self.noise_level - _NOISE_ONE) / _PER_DOUBLING)

    def proposal(self, world, records, seconds, noise):
        """What rank 0 proposes after a step, as two bytes. (0, 0): nothing changes.

        `seconds`: of the step, None if not known. `noise`: the noise scale in records, None if not known.
        """
        self._observe(records, seconds)
        if not records or noise is None:
            return 0, 0
        level = self.level if self.most is None or not self._initial else self._best(noise)
        self._records_of_rank = max(self._records_of_rank, records / world)
        base = self._initial if self.most is not None else self._records_of_rank
        noise_level = self._noise_level(noise / base) if base else self.noise_level
        return (0, 0) if (level, noise_level) == (self.level, self.noise_level) else (level + 1, noise_level)

    def take(self, proposal):
        """All ranks take what rank 0 proposed. True if the batch changes."""
        level, noise_level = proposal
        if level == 0:
            return False
        changed = level - 1 != self.level
        self.level, self.noise_level = level - 1, noise_level
        if changed:
            self._begin_level()
        return changed

    def numbers(self):
        return [float(self.level), float(self.noise_level)]

    def load_numbers(self, numbers):
        self.level, self.noise_level = (int(number) for number in numbers)

    def _noise_level(self, ratio):
        exact = _NOISE_ONE + _PER_DOUBLING * math.log2(max(ratio, 1e-9))
        if self.noise_level and abs(exact - self.noise_level) <= 0.75:
            return self.noise_level
        return max(1, min(254, round(exact)))

    def _observe(self, records, seconds):
        if self.most is None or not self._initial or seconds is None or records != self._at(self.level):
            return  # the last step of an epoch
        self._fresh += 1
        if self._fresh <= _WARM_STEPS:
            return
        time = self._times.setdefault(self.level, [0, 0.0])
        if time[0] >= _FEWEST_STEPS and seconds > _OUTLIER * time[1]:
            return  # an evaluation, or a save
        time[0] = min(time[0] + 1, _MEMORY)
        time[1] += (seconds - time[1]) / time[0]

    def _best(self, noise):
        if self._fresh < _WARM_STEPS + _FEWEST_STEPS or self.most <= self._initial:
            return self.level
        known = {level: time[1] for level, time in self._times.items() if time[0] >= _FEWEST_STEPS}
        if self.level not in known:
            return self.level
        fixed, of_record = _line([(self._at(level), seconds) for level, seconds in known.items()])

        def goodput(level):
            batch = self._at(level)
            seconds = known.get(level) or max(fixed + of_record * batch, 1e-9)
            return batch / seconds * (noise + self._initial) / (noise + batch)

        top = math.ceil(_PER_DOUBLING * math.log2(self.most / self._initial))
        top = min(top, max(known) + _PER_DOUBLING, _LEVEL_MAX)
        best = max(range(top + 1), key=goodput)
        return best if goodput(best) > _WORTH_CHANGING * goodput(self.level) else self.level


def _line(points):
    """(seconds at no records, seconds of a record) by least squares; neither is negative."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    square = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square > 0 else 0.0
    slope = min(max(slope, 0.0), mean_y / mean_x)
    return mean_y - slope * mean_x, slope
