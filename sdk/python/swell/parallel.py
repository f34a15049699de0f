"""A DistributedDataParallel that outlives its process group.

Used by `swell.train.Job.parallel`. The network and its parameters stay the same objects for the whole run, so
optimizers over them stay valid. Only the DDP wrapper, which sums the gradients, is made again for each process group. A
new wrapper sends rank 0's parameters and buffers to all ranks; ranks that join get them that way.
"""

import contextlib

import torch
import torch.distributed as dist

# Before there is a group: its functions keep the group of that moment as a default, and DDP imports it too late. The
# group's threads would then live until the interpreter's end, and abort the process there.
import torch.distributed.nn
from torch import nn

from swell.answers import Answers
from swell.broken import StepGuard
from swell.exchange import Exchange
from swell.own_time import OwnTime
from swell.progress import ProgressRecord
from swell.resize import finish, is_lost_peer


class Parallel(nn.Module):
    def __init__(self, network, example, options, weight, guard=None, own_time=None, exchange=None, noise=None,
                 formed=lambda: None):
        """`weight`: a function that returns the `swell.weight.Weight` of the current step. `guard`: a `StepGuard`.

        `own_time`: the `swell.own_time.OwnTime` that learns when this rank waits for others. `exchange`: a
        `swell.exchange.Exchange` that measures how long steps wait for gradients. `noise`: a
        `swell.noise.GradientNoise` that measures their noise; None for none. `formed`: called on all ranks of a group
        when its wrapper is made.
        """
        super().__init__()
        self.module = network
        self._example = [example]
        self._options = options
        self._weight = weight
        self._guard = guard or StepGuard()
        self._own_time = own_time or OwnTime(ProgressRecord(0, 1, {}))
        self._exchange = exchange or Exchange()
        self._noise = noise
        self._formed = formed
        self._answers = Answers()
        # In a list, because as an attribute it would be a submodule, and its parameters would be listed twice.
        self._wrapper = [None]

    def release(self):
        """Releases the wrapper, and after it its process group, which the script may have destroyed already.

        The order matters. The group's destructor waits for threads that may need the GIL. torch releases the GIL if
        Python drops the last reference to the group, but not if a wrapper does (seen with torch 1.13).
        """
        self.give_up()
        wrapper, self._wrapper[0] = self._wrapper[0], None
        group = getattr(wrapper, "process_group", None)
        del wrapper
        del group

    def give_up(self):
        """Ends the wait for sums of gradients. Called from any thread when the group is broken."""
        self._answers.give_up()

    def rebuild(self, world):
        """Makes the wrapper for the current process group of `world` ranks."""
        self.release()
        if self._noise is not None:
            self._noise.begin_group()
        if world > 1:
            self._wrapper[0] = nn.parallel.DistributedDataParallel(self.module, **self._options)
            state = (self._guard, self._own_time, self._exchange, self._noise, self._weight, self._answers, world)
            self._wrapper[0].register_comm_hook(state, _average)
            self._formed()
            self._run_first_pass()

    def _run_first_pass(self):
        """Runs DDP's first pass on the example.

        DDP changes the layout of its gradient buckets after the first pass, and the layout decides the order of sums.
        With the pass done here, a resumed run sums in the same order as an undisturbed one.
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
        return self._weight().weigh(self._run(arguments, named))

    def _run(self, arguments, named):
        guard = self._guard
        if self._wrapper[0] is None or guard.broken():
            return self.module(*arguments, **named)
        try:
            return self._wrapper[0](*arguments, **named)
        except RuntimeError as error:
            if not guard.active or not (is_lost_peer(error) or guard.broken()):
                raise
            guard.note(error)
        return self.module(*arguments, **named)

    def train(self, mode=True):
        super().train(mode)
        if self._wrapper[0] is not None:
            self._wrapper[0].training = mode
        return self

    def no_sync(self):
        """As DDP's: passes in this context keep their gradients on this rank, and the next pass outside sums them."""
        return self._wrapper[0].no_sync() if self._wrapper[0] is not None else contextlib.nullcontext()


def _average(state, bucket):
    """DDP's own sum, except that a lost peer is noted by the guard while it is active, and not raised."""
    guard, own_time, exchange, noise, weight, answers, world = state
    gradients = bucket.buffer().div_(world)
    measured = not gradients.is_cuda
    if guard.broken():
        return _finished(gradients)
    noise_due = noise is not None and noise.due
    if noise_due:
        noise.before(gradients)
    if bucket.is_last():
        own_time.ask(gradients)
    if measured:
        exchange.sent()
    try:
        work = dist.all_reduce(gradients, async_op=True)
        if noise is not None and bucket.is_last():
            noise.end_pass(weight().of_mean, lambda numbers: _begin_sum(numbers, guard.group_broken))
    except RuntimeError as error:
        if not guard.active:
            raise
        guard.note(error)
        return _finished(gradients)

    def take(value):
        own_time.answered(gradients)
        if measured:
            exchange.came()
        try:
            total = value()[0]
        except RuntimeError as error:
            if not guard.active:
                raise
            guard.note(error)
            return gradients
        if noise_due:
            noise.after(total)
        return total

    if gradients.is_cuda:
        # torch's own future runs `take` on the stream of the sum, and ends when the group is aborted.
        return work.get_future().then(lambda summed: take(summed.value))
    return answers.of(work, take)


def _begin_sum(numbers, broken):
    work = dist.all_reduce(numbers, async_op=True)
    return lambda: finish(work, numbers, broken)


def _finished(gradients):
    future = torch.futures.Future()
    future.set_result(gradients)
    return future
