"""The loop around a training step, for scripts that would rather not write it: `Job.batches`.

It restores, hands out batches, counts steps, saves, and looks for notices and changes of size between two steps. The
body of the `for` does one step:

    for images, labels in job.batches(dataset, batch_size=96, epochs=3, keep={"model": model, "optimizer": optimizer}):
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels, reduction="sum") * job.scale
        loss.backward()
        optimizer.step()

What always holds: a step counts when its body has run to the end, on all ranks; every record is trained once per epoch,
whatever happens in between. Scaled so, the gradient is that of the mean loss over the whole job's batch.
"""

from swell.sampler import ResumableDistributedSampler


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
    loader = DataLoader(dataset, batch_sampler=sampler, **loader_options)
    ahead = loader.num_workers > 0
    while sampler.epoch < epochs:
        for batch in loader:
            job.scale = sampler.scale
            yield batch
            records = sampler.step_records
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
    job.save(step, state, epoch=sampler.epoch)
