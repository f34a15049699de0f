"""How long steps wait for the exchange of gradients. Measured by `swell.parallel`, reported by `swell.report`.

DDP hands its gradients over in buckets while the backward pass still computes. When the last bucket is handed over,
nothing is left to compute, and the step waits until the last sum is there. That wait is what more ranks cost; what
overlaps with computing costs nothing. It takes two clock readings per bucket.

On a GPU the host does not wait where the device does, so nothing is measured there.

What always holds: a measurement never ends a training run, and without one `take` says None.
"""

import time


class Exchange:
    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._sent = self._came = None

    def sent(self):
        """A bucket was handed over; of a step's buckets the last one counts."""
        self._sent, self._came = self._clock(), None

    def came(self):
        """A sum is there. Called from any thread."""
        self._came = self._clock()

    def take(self):
        """The seconds that the last step waited; None if it was not measured. The next call is about the next step."""
        sent, came = self._sent, self._came
        self._sent = self._came = None
        return None if sent is None or came is None else max(0.0, came - sent)
