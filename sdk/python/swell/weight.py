"""How much one rank's loss weighs in a step, so that ranks with unequal shares train as one rank would alone.

Used by `Job.batches` and `swell.parallel`. DDP averages the gradients of w ranks. If a rank has s of the n records of a
batch, its mean loss must weigh s * w / n for that average to be the mean over the batch. A sum of losses must weigh
w / n. Scripts usually have the mean. Its weight is applied to the gradient of the network's outputs. A script that
multiplies a sum with `Job.scale` has weighed its loss itself, and nothing more is applied.

What always holds: a share without records adds nothing.
"""


class Weight:
    def __init__(self, share=1, records=1, world=1):
        self._empty = share == 0
        self._of_mean = share * world / records
        self._of_sum = world / records
        self._script_weighs = False

    @property
    def of_mean(self):
        """The weight of this rank's mean; 1 if all shares are equal, or if the shares are not known."""
        return 0.0 if self._empty else self._of_mean

    def of_sum(self):
        """The weight of a sum of losses. From now on the script weighs its loss itself."""
        self._script_weighs = True
        return self._of_sum

    def weigh(self, result):
        """Applies the weight to the gradients of `result`, which a network returned."""
        if self._of_mean == 1.0 and not self._empty:
            return result
        for tensor in _tensors(result):
            if tensor.requires_grad:
                tensor.register_hook(self._weigh_gradient)
        return result

    def _weigh_gradient(self, gradient):
        # Decided here, because a script reads Job.scale between the forward and the backward pass.
        if self._script_weighs and not self._empty:
            return gradient
        # Multiplying by zero would not do: the mean over no records is NaN.
        return gradient * self._of_mean if not self._empty else gradient.new_zeros(gradient.shape)


def _tensors(result):
    if hasattr(result, "register_hook"):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, (list, tuple)):
        return []
    return [tensor for part in result for tensor in _tensors(part)]
