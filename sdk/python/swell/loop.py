"""The loop around a training step, for scripts that would rather not write it: `Job.batches`.

It restores, hands out batches, counts steps, saves, and looks for notices and changes of size between two steps. The
body of the `for` does one step:

    for images, labels in job.batches(dataset, batch_size=96, epochs=3, keep={"model": model, "optimizer": optimizer}):
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

What always holds: a step counts when its body has run to the end, on all ranks; every record is trained once per epoch,
whatever happens in between. The gradient is that of the mean loss over the whole job's batch, also where ranks have
unequal shares of it: `Job.parallel` weighs them.
"""

from collections import deque

from swell.sampler import ResumableDistributedSampler
from swell.weight import Weight


def batches(job, dataset, batch_size, epochs, keep, seed, checkpoint_every, loader_options):
    """`keep`: name -> whatever has state_dict and load_state_dict."""
    from torch.utils.data import DataLoader

    sampler = ResumableDistributedSampler(len(dataset), batch_size, seed, job=job)
    step = 0

    def state():
        kept = {name: thing.state_dict() for name, thing in keep.items()}
        return {"step": step, "sampler": sampler.state_dict(), "keep": kept}

    found = job.restore()
    if found is not None:
        step = found.state["step"]
        sampler.load_state_dict(found.state["sampler"])
        for name, thing in keep.items():
            thing.load_state_dict(found.state["keep"][name])
    shares = _Shares(sampler)
    loader = DataLoader(dataset, batch_sampler=shares, **loader_options)
    ahead = loader.num_workers > 0
    while sampler.epoch < epochs:
        for batch in loader:
            records = sampler.step_records
            job.weight = Weight(shares.take(), records, job.env.world)
            yield batch
            sampler.commit()
            step += 1
            if checkpoint_every and step % checkpoint_every == 0:
                job.save(step, state, epoch=sampler.epoch)
            changed = job.step_done(step, state, epoch=sampler.epoch, records=records)
            if changed and ahead:
                # Shares that its processes have taken ahead were cut for another number of ranks.
                break
        if sampler.done:
            sampler.next_epoch()
    job.weight = Weight()
    job.save(step, state, epoch=sampler.epoch)


class _Shares:
    """The sampler's shares, for a loader: one without records gets any, which then weighs nothing."""

    def __init__(self, sampler):
        self._sampler = sampler
        self._sizes = deque()

    def __len__(self):
        return len(self._sampler)

    def __iter__(self):
        self._sizes.clear()
        for share in self._sampler:
            self._sizes.append(len(share))
            yield share or [0]

    def take(self):
        """How many records the oldest share has that is not yet taken."""
        return self._sizes.popleft()
