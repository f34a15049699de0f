"""How much one rank's loss weighs in a step, so that ranks with unequal shares train as one would alone.

Used by `Job.batches` and `swell.parallel`. Ranks average their gradients. A mean loss over a share of s records of a
batch of n, trained by w ranks, must weigh s * w / n for that average to be the mean over the batch; a sum of losses,
1 * w / n. The mean is what scripts have, and its weight is put into the gradient where it enters the network. A script
that multiplies a sum with `Job.scale` weighs by itself, and nothing is added.

What always holds: a share without records adds nothing.
"""


class Weight:
    def __init__(self, share=1, records=1, world=1):
        self._empty = share == 0
        self._of_mean = share * world / records
        self._of_sum = world / records
        self._by_hand = False

    def of_sum(self):
        self._by_hand = True
        return self._of_sum

    def weigh(self, result):
        """`result`: what a network returned; its gradients are weighed on their way back."""
        if self._of_mean == 1.0 and not self._empty:
            return result
        for tensor in _tensors(result):
            if tensor.requires_grad:
                tensor.register_hook(self._weigh_gradient)
        return result

    def _weigh_gradient(self, gradient):
        # Known only now: a script reads Job.scale between the network and the way back.
        if self._by_hand and not self._empty:
            return gradient
        # Not times zero: a mean over nothing is no number.
        return gradient * self._of_mean if not self._empty else gradient.new_zeros(gradient.shape)


def _tensors(result):
    if hasattr(result, "register_hook"):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, (list, tuple)):
        return []
    return [tensor for part in result for tensor in _tensors(part)]
