"""Sums of gradients under way, each with a future that is sure to be done once the group is broken.

Used by `swell.parallel`, whose backward passes wait for them. gloo's own future is not: when a connection ends, gloo
forgets a send that waited for room and what it had received in part, and the sum ends with torch's time-out.

What always holds: a sum that ends after its future was done changes nothing any more.
"""

import torch


class Answers:
    def __init__(self):
        self._open = {}  # a dict, whose `pop` lets one thread alone answer

    def of(self, work, take):
        """A future of what `take` makes of the sum's tensors. `take` gets a function that returns them, or raises
        RuntimeError if the sum failed or was given up."""
        summed = work.get_future()
        done = torch.futures.Future()
        answer = done.then(lambda _: take(lambda: _value(summed)))
        self._open[done] = True
        summed.add_done_callback(lambda _: self._answer(done))
        return answer

    def give_up(self):
        """The sums under way are not waited for any longer."""
        for done in list(self._open):
            self._answer(done)

    def _answer(self, done):
        if self._open.pop(done, False):
            done.set_result(None)


def _value(summed):
    if not summed.done():
        raise RuntimeError("gloo has forgotten a sum of gradients whose peer is gone")
    return summed.value()
