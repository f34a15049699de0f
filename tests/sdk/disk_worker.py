"""A training that saves in the background, for the tests of disks and kills. Prints the weights before each step."""

import os
import signal
import threading

STEPS = 40


def main():
    import swell

    job = swell.Job(backend="gloo", checkpoint_seconds=0)
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = job.parallel(torch.nn.Sequential(torch.nn.Linear(20, 256), torch.nn.Tanh(), torch.nn.Linear(256, 5)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(3)
    inputs, targets = torch.randn(480, 20, generator=generator), torch.randn(480, 5, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, targets)
    save_at, kill_at, notice_at = (int(os.environ.get(name, "0")) for name in ("SAVE_AT", "KILL_AT", "NOTICE_AT"))
    if os.environ.get("KILL_IN_THREAD"):
        _kill_in_second_save(job, os.environ["KILL_IN_THREAD"])
    killed = os.path.join(job.checkpoints.dir, "killed")
    victim = os.environ.get("RANK", "0") == os.environ.get("KILL_RANK", "0")
    loop = _guarded if os.environ.get("LOOP") == "guard" else _batches
    for batch, target in loop(job, data, model, optimizer, save_at):
        if job.step + 1 in (2 * save_at, kill_at):
            job.flush()  # earlier saves are on disk
        weights = sum(parameter.double().sum().item() for parameter in model.parameters())
        print(f"before {job.step} weights {weights:.9f} rank {job.env.rank}", flush=True)
        optimizer.zero_grad()
        ((model(batch) - target) ** 2).mean().backward()
        if job.step + 1 == kill_at and victim and not os.path.exists(killed):
            with open(killed, "w", encoding="utf-8"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        if job.step + 1 == notice_at:
            os.kill(os.getpid(), signal.SIGTERM)
        optimizer.step()


def _batches(job, data, model, optimizer, save_at):
    return job.batches(data, 24, 2, {"model": model, "optimizer": optimizer}, checkpoint_every=save_at)


def _guarded(job, data, model, optimizer, save_at):
    """The same as a loop of the script's own. Its body is between two `yield`s, so the guard is around it."""
    import swell

    sampler = swell.ResumableDistributedSampler(len(data), 24, job=job)

    def state():
        return {"step": job.step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "sampler": sampler.state_dict()}

    def load(state):
        job.step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])

    found = job.restore()
    if found is not None:
        load(found.state)
    while sampler.epoch < 2:
        for batch in sampler:
            with job.guard(state, load):
                yield data[batch]
                sampler.commit()
                job.step += 1
                if save_at and job.step % save_at == 0:
                    job.save(job.step, state, wait=False)
                job.step_done(job.step, state, sampler.epoch)
        sampler.next_epoch()
    job.save(job.step, state)


def _kill_in_second_save(job, thread):
    """The second copy to memory, or the second write to disk, ends in the middle, and the process with it."""
    from swell import pack, snapshot

    def ends_here(size):
        return size > 20000 and threading.current_thread().name == thread and job._saver.saved_step is not None

    def cut(parts):
        for part in parts:
            if ends_here(len(part)):
                yield part[: len(part) // 2]
                os.kill(os.getpid(), signal.SIGKILL)
            yield part

    copy, add_to_archive = snapshot._copy, pack.Archive.add

    def copy_half(target, source):
        if ends_here(source.numel() * source.element_size()):
            half = source.numel() // 2
            copy(target[:half], source[:half])
            os.kill(os.getpid(), signal.SIGKILL)
        copy(target, source)

    snapshot._copy = copy_half
    pack.Archive.add = lambda self, name, size, parts: add_to_archive(self, name, size, cut(parts))


if __name__ == "__main__":
    main()
