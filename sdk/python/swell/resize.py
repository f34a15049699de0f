"""The process group of an elastic job: members come and go at step boundaries, the others keep their memory.

Used by `swell.train.Job` where a job is elastic and torchrun does not run it. At a boundary all ranks add up who must
leave and whether somebody waits to join; when that is nobody, one small all-reduce was the whole cost. Otherwise the
lowest rank that stays, the head, opens a new store and tells the others over the old group; those that stay and those
that join form the new one there, ranks in the old order and the new ones last. Joining ranks get parameters from the
head by the wrapper made anew, and all other state as a checkpoint over the wire; no disk is involved.

What always holds: all ranks change groups at the very same step; a rank that leaves is waited for by nobody; the head
is the one whose state counts; without anybody to meet, a member waits and trains nothing.
"""

import socket
import sys
from dataclasses import replace
from datetime import timedelta

from swell import checkpoint
from swell.meeting import Meeting, Seat

_STORE_TIMEOUT = timedelta(seconds=60)
_FORMED_KEY = "swell/formed"
_FAREWELL_SECONDS = 5.0


class Group:
    def __init__(self, env, backend, timeout):
        self.env = env
        self.generation = 0
        self._backend = backend
        self._timeout = timeout
        self._meeting = None
        if env.rank == 0:
            self._meeting = Meeting(env.master_port, env.job_id)
        self._on_first_member = env.rank == 0
        self._next_store = None
        self._place = (
            "127.0.0.1" if self._on_first_member else env.master_addr,
            env.master_port,
            env.job_id,
            env.rank,
            env.least,
        )
        self._seat = Seat(*self._place, env.world)
        self._flags = None
        self._store = None

    def join(self, wrappers, step=None, state=None):
        """Waits for the others. The state to go on with, or None where a checkpoint is to be looked for.

        `step` and `state`: what this member has in memory, after a loss of peers; None at the start.
        """
        role, told = self._seat.wait(step)
        if role == "lead":
            self._store, host, port = self._open_store()
            plan = {"generation": self.generation + 1, "host": host, "port": port, "world": 1 + len(told)}
            plan["fresh"] = step is None
            plan["first_joined"] = 1
            self._seat.take({card["id"]: {**plan, "rank": 1 + i} for i, card in enumerate(told)})
            self.env = replace(self.env, rank=0, world=plan["world"])
        else:
            plan = told
            self.env = replace(self.env, rank=plan["rank"], world=plan["world"])
            self._store = self._reach_store(plan)
        return self._form(plan, wrappers, state)

    def agree(self, leaving, step, save=False):
        """After a step: (ranks that leave, does anybody wait to join, must this group give up, is it time to save)."""
        import torch
        import torch.distributed as dist

        world = self.env.world
        if self._flags is None:
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flags = torch.zeros(world + 3, dtype=torch.uint8, device=device)
        flags = self._flags
        flags.zero_()
        flags[self.env.rank] = 1 if leaving else 0
        if self.env.rank == 0:
            flags[world] = 1 if self._seat.waiting else 0
            flags[world + 1] = 1 if self._seat.yielded or self._seat.behind(step) else 0
            flags[world + 2] = 1 if save else 0
        if world > 1:
            dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        if not flags.any():
            return (), False, False, False
        values = flags.tolist()
        joining, giving_up, save = map(bool, values[world:])
        return tuple(i for i in range(world) if values[i]), joining, giving_up, save

    def change(self, leaving, wrappers, state):
        """Forms the next group without the ranks in `leaving` and with those that wait. False on a rank that leaves."""
        staying = [rank for rank in range(self.env.world) if rank not in leaving]
        head = staying[0]
        rank = self.env.rank
        plan = None
        if rank == head:
            self._next_store, host, port = self._open_store()
            # A head that was not the head before does not know who waits; they come at a later boundary.
            waiting = list(self._seat.waiting) if rank == 0 else []
            plan = {"generation": self.generation + 1, "host": host, "port": port}
            plan["world"] = len(staying) + len(waiting)
            plan["fresh"] = False
            plan["first_joined"] = len(staying)
            waiting.sort(key=lambda card: card["ordinal"])
            plans = {card["id"]: {**plan, "rank": len(staying) + i} for i, card in enumerate(waiting)}
            self._seat.take(plans)
        plan = self._tell(plan, head)
        if rank in leaving:
            self._farewell(plan)
            return False
        destroy_group(wrappers)
        self._store = self._next_store if rank == head else self._reach_store(plan)
        self.env = replace(self.env, rank=staying.index(rank), world=plan["world"])
        self._form(plan, wrappers, state)
        return True

    def rejoin(self, wrappers, step, state):
        """After a loss of peers: what is left of the group meets anew. The state to go on with, None for one's own."""
        self._seat.leave()
        destroy_group(wrappers)
        self._store = None
        self._seat = Seat(*self._place, self.env.world)
        return self.join(wrappers, step, state)

    def close(self, done):
        if self._meeting is not None:
            self._meeting.close(done)

    def _form(self, plan, wrappers, state):
        import torch.distributed as dist

        self.generation = plan["generation"]
        self._flags = None
        rank, world = self.env.rank, self.env.world
        dist.init_process_group(
            self._backend,
            store=dist.PrefixStore(f"swell/{self.generation}", self._store),
            rank=rank,
            world_size=world,
            timeout=self._timeout,
        )
        if rank == 0:
            self._store.set(_FORMED_KEY, "1")
            self._seat.lead(self.generation)
        for wrapper in wrappers:
            wrapper.rebuild(world)
        first = plan["first_joined"]
        if plan["fresh"] or first == world:
            return None
        # Among the head and those that join alone: the others have it, and need no second copy for a moment.
        ranks = [0, *range(first, world)]
        group = dist.new_group(ranks)
        if rank in ranks:
            received = _broadcast_state(state, rank == 0, group)
            dist.destroy_process_group(group)
            return None if rank == 0 else received
        return None

    def _open_store(self):
        import torch.distributed as dist

        # Empty: under the name by which everybody knows the first member.
        host = "" if self._on_first_member else self._own_address()
        store = dist.TCPStore("127.0.0.1", 0, None, True, _STORE_TIMEOUT, False)
        return store, host, store.port

    def _own_address(self):
        # The source address of packets to the first member; no packet is sent for a datagram socket's connect.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((self.env.master_addr, self.env.master_port))
                return probe.getsockname()[0]
            except OSError:
                return socket.gethostbyname(socket.gethostname())

    def _reach_store(self, plan):
        import torch.distributed as dist

        host = plan["host"] or self._first_member()
        return dist.TCPStore(host, plan["port"], None, False, _STORE_TIMEOUT, False)

    def _first_member(self):
        return "127.0.0.1" if self._on_first_member else self.env.master_addr

    def _tell(self, plan, source):
        if self.env.world == 1:
            return plan
        import torch.distributed as dist

        box = [plan]
        dist.broadcast_object_list(box, src=source)
        return box[0]

    def _farewell(self, plan):
        """Stays until the others have met: until then their messages may still pass through this process."""
        try:
            store = self._reach_store(plan)
            store.wait([_FORMED_KEY], timedelta(seconds=_FAREWELL_SECONDS))
        except Exception as error:
            print(f"swell: the others may not have re-formed yet: {error}", file=sys.stderr, flush=True)


def destroy_group(wrappers):
    import torch.distributed as dist

    for wrapper in wrappers:
        wrapper.release()
    if dist.is_initialized():
        dist.destroy_process_group()


def _broadcast_state(state, sends, group):
    """What `state()` returns on the sender, as a checkpoint would hold it."""
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    if sends:
        content = state() if callable(state) else state
        codec, data = checkpoint.encode(content)
        header = torch.tensor([len(data), checkpoint.CODECS.index(codec)], dtype=torch.long, device=device)
        payload = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device)
    else:
        header = torch.zeros(2, dtype=torch.long, device=device)
    dist.broadcast(header, src=0, group=group)
    if not sends:
        payload = torch.empty(int(header[0]), dtype=torch.uint8, device=device)
    dist.broadcast(payload, src=0, group=group)
    if sends:
        return None
    return checkpoint.decode(checkpoint.CODECS[int(header[1])], payload.cpu().numpy().tobytes())
