"""The noise of gradients, which says how much a larger batch is worth. Measured by `swell.parallel`, kept by `Job`.

A gradient of n records is the true gradient G and noise: E|g|² = |G|² + S/n, with S the variance of the gradient of one
record. The noise scale S/|G|² is the batch at which both are equal (McCandlish et al. 2018, appendix A). A step with
far fewer records than that profits in full from a larger batch; one with far more hardly profits.

Two batches give both unknowns, and data-parallel training has two in each step: the share of a rank and that of all.
In every tenth exchange each rank sums the square of its gradient before the exchange and of the mean after it. A mean
over ranks of two numbers is all that is sent, and no gradient is copied. If rank i has s_i of the n records of W
ranks, DDP averages g_i = (s_i W/n) times the mean over its share, so with a = the mean of (s_i W/n)²:

    mean of |g_i|² = a |G|² + S W/n            |mean of g_i|² = |G|² + S/n

A rank alone has one batch only, and measures nothing.

What always holds:
* All ranks measure in the same step and find the same numbers.
* |G|² and S are averaged apart: a single step says little of either, and less of their ratio.
* A step counts only if it is known which records its gradients are of. A measurement never ends a training run.
"""

import math

EVERY = 10  # exchanges
_MEMORY = 0.99  # of what was known, what a new measurement leaves; so they reach back a hundred of them
_FEWEST = 10  # measurements, before a mean of them says anything
# A noise scale of many times the batch cannot be told from one of infinity, nor need it be.
_MOST_BATCHES = 1000


class GradientNoise:
    def __init__(self):
        self._sqr = self._var = 0.0  # means, but for a factor that both have
        self._measured = 0
        self._batch = 0.0  # records of the last step that was measured
        self.begin_group()

    def begin_group(self):
        """What the group before had not finished is dropped, and all ranks count exchanges from here."""
        self._exchanges = 0
        self._records, self._counted = 0.0, True
        self._end_exchange()

    def _end_exchange(self):
        self._before, self._after, self._sum = [], [], None
        self._passes = 0

    @property
    def due(self):
        """Whether the exchange under way is measured. All ranks find the same, for all its buckets."""
        # A second pass of a step has the gradients of the first one in it, averaged already.
        return self._exchanges % EVERY == EVERY - 1 and self._passes == 0

    def before(self, gradients):
        """A bucket of this rank's gradients, divided by the number of ranks, is about to be summed."""
        self._before.append(_norm(gradients))

    def after(self, gradients):
        """The sum is there. Called from any thread."""
        self._after.append((_norm(gradients), _event(gradients)))

    def end_pass(self, weight, reduce):
        """All buckets of a backward pass were handed over.

        `weight`: how much the mean over this rank's share weighs. `reduce`: begins to sum a tensor over all ranks, and
        returns a function that waits for it.
        """
        import torch

        if self.due:
            # A network may have several types of numbers, and be on several devices.
            device = self._before[0].device
            square = torch.stack([norm.to(device, torch.float64) for norm in self._before]).square().sum()
            numbers = torch.stack((square, square.new_tensor(weight * weight)))
            self._sum = numbers, reduce(numbers)
        self._exchanges += 1
        self._passes += 1

    def end_step(self, world, records):
        """All ranks have done a step. `records`: of all ranks; None if the script does not count them."""
        self._records += records or 0
        self._counted &= bool(records)
        if self._passes == 0:
            return  # it kept its gradients, so the next exchange is about its records, too
        if self._passes == 1 and self._sum is not None and self._counted:
            try:
                self._take(world)
            except RuntimeError:
                pass  # a peer is lost, which the ranks find where they meet
        self._end_exchange()
        self._records, self._counted = 0.0, True

    def _take(self, world):
        numbers, wait = self._sum
        wait()
        square, weights = numbers.tolist()
        of_all = 0.0
        for norm, event in self._after:
            if event is not None:
                event.synchronize()
            of_all += float(norm) ** 2
        # The gradients of each rank were divided by the number of ranks before.
        self.add(world, self._records, square * world, of_all, weights / world)

    def add(self, world, records, of_ranks, of_all, spread=1.0):
        """One measurement: the mean of |g_i|², the square of the mean g_i, and `spread`, which is a above."""
        apart = world - spread
        if apart < 0.5 or not (math.isfinite(of_ranks) and math.isfinite(of_all)):
            return  # nearly all records are one rank's, or the gradients overflow
        self._sqr += (1 - _MEMORY) * ((world * of_all - of_ranks) / apart - self._sqr)
        self._var += (1 - _MEMORY) * (records * (of_ranks - spread * of_all) / apart - self._var)
        self._measured += 1
        self._batch = records

    @property
    def scale(self):
        """The noise scale in records; None if it is not known yet."""
        if self._measured < _FEWEST or self._var <= 0:
            return None
        most = _MOST_BATCHES * self._batch
        return most if self._var >= most * self._sqr else self._var / self._sqr

    def numbers(self):
        """What another process needs to continue."""
        return [self._sqr, self._var, float(self._measured), self._batch]

    def load_numbers(self, numbers):
        self._sqr, self._var, measured, self._batch = numbers
        self._measured = int(measured)


def _norm(gradients):
    import torch

    # Squares of halves overflow.
    kind = torch.float32 if gradients.dtype in (torch.float16, torch.bfloat16) else None
    return torch.linalg.vector_norm(gradients, dtype=kind)


def _event(tensor):
    """On a GPU, what says that `tensor` is computed: torch's callbacks have streams of their own."""
    if not tensor.is_cuda:
        return None
    import torch

    event = torch.cuda.Event()
    event.record()
    return event
