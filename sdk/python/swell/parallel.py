"""A DistributedDataParallel that outlives its process group.

Used by `swell.train.Job.parallel`. The network and its parameters stay the same objects for the whole run, so an
optimizer made over them stays right; what is made anew with the group is the wrapper that adds gradients up. A wrapper
made anew sends rank 0's parameters and buffers to everybody, which is how a joining rank gets them.
"""

import contextlib

import torch
from torch import nn


class Parallel(nn.Module):
    def __init__(self, network, example, options, weight):
        """`weight`: gives the `swell.weight.Weight` of the step being trained."""
        super().__init__()
        self.module = network
        self._example = [example]
        self._options = options
        self._weight = weight
        # In a list: as an attribute it would be a submodule, and its parameters would be listed twice.
        self._wrapper = [None]

    def release(self):
        """Lets go of the wrapper, and only then of its process group, which the script may have destroyed already.

        The group's destructor waits for threads that may need the interpreter for what they let go of; torch gives it
        up for them when Python lets go of the group, and not when a wrapper does (seen with 1.13).
        """
        wrapper, self._wrapper[0] = self._wrapper[0], None
        group = getattr(wrapper, "process_group", None)
        del wrapper
        del group

    def rebuild(self, world):
        self.release()
        if world > 1:
            self._wrapper[0] = nn.parallel.DistributedDataParallel(self.module, **self._options)
            self._settle()

    def _settle(self):
        """DDP lays gradients out anew after its first pass, and the layout decides in which order ranks are summed.

        That pass happens here, on nothing, so that a resumed run sums as an undisturbed one does.
        """
        if self._example[0] is None:
            return
        generator = torch.get_rng_state()
        result = self._wrapper[0](self._example[0])
        (result if torch.is_tensor(result) else result[0]).sum().backward()
        for parameter in self.module.parameters():
            parameter.grad = None
        torch.set_rng_state(generator)

    def forward(self, *arguments, **named):
        return self._weight().weigh((self._wrapper[0] or self.module)(*arguments, **named))

    def train(self, mode=True):
        super().train(mode)
        if self._wrapper[0] is not None:
            self._wrapper[0].training = mode
        return self

    def no_sync(self):
        """Gradients of passes in here stay with this rank, to be added up by the next pass outside."""
        return self._wrapper[0].no_sync() if self._wrapper[0] is not None else contextlib.nullcontext()
