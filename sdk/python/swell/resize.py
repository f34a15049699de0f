"""The process group of an elastic job: members come and go at step boundaries, the others keep their memory.

Used by `swell.train.Job` if the job is elastic and torchrun does not run it. After each step the ranks exchange in one
small all-reduce which of them must leave and whether a member waits to join. If nobody does, that is the whole cost.
Otherwise the lowest rank that stays becomes the leader. It opens a new store and broadcasts a plan over the old group.
The ranks that stay and the members that join form the new group there: the old ranks in their order, then the new ones.
New ranks get the parameters when the DDP wrapper is made, and all other state as a checkpoint over the network. No disk
is involved.

What always holds:
* All ranks change groups after the same step.
* No rank waits for a rank that leaves.
* The leader's state is the one that counts.
* A member without a group waits and trains nothing.
"""

import socket
import sys
from dataclasses import replace
from datetime import timedelta

from swell import checkpoint
from swell.rendezvous import RendezvousClient, RendezvousServer

_STORE_TIMEOUT = timedelta(seconds=60)
_FORMED_KEY = "swell/formed"
_DEPARTURE_SECONDS = 5.0


class Group:
    def __init__(self, env, backend, timeout):
        self.env = env
        self.generation = 0
        self._backend = backend
        self._timeout = timeout
        self._on_first_member = env.rank == 0
        self._server = RendezvousServer(env.master_port, env.job_id) if self._on_first_member else None
        self._next_store = None
        self._client_arguments = (
            self._first_member_host(),
            env.master_port,
            env.job_id,
            env.rank,
            env.least,
        )
        self._client = RendezvousClient(*self._client_arguments, env.world)
        self._flags = None
        self._store = None

    def join(self, wrappers, step=None, state=None):
        """Waits for the other members and forms a group with them.

        `step` and `state`: what this member has in memory after it lost its peers; None at the start. Returns the state
        to continue from, or None if the member's own memory or a checkpoint has it.
        """
        role, answer = self._client.join(step)
        if role == "leader":
            self._store, host, port = self._open_store()
            plan = {"generation": self.generation + 1, "host": host, "port": port, "world": 1 + len(answer)}
            plan["fresh"] = step is None
            plan["first_joined"] = 1
            self._client.admit({member["id"]: {**plan, "rank": 1 + i} for i, member in enumerate(answer)})
            self.env = replace(self.env, rank=0, world=plan["world"])
        else:
            plan = answer
            self.env = replace(self.env, rank=plan["rank"], world=plan["world"])
            self._store = self._connect_store(plan)
        return self._form(plan, wrappers, state)

    def agree(self, leaving, step, save=False):
        """What all ranks agree on after a step: (ranks that leave, member waits, group must give up, save is due)."""
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
            flags[world] = 1 if self._client.waiting else 0
            flags[world + 1] = 1 if self._client.superseded or self._client.member_ahead(step) else 0
            flags[world + 2] = 1 if save else 0
        if world > 1:
            dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        if not flags.any():
            return (), False, False, False
        values = flags.tolist()
        joining, giving_up, save = map(bool, values[world:])
        return tuple(i for i in range(world) if values[i]), joining, giving_up, save

    def change(self, leaving, wrappers, state):
        """Forms the next group without the ranks in `leaving` and with the members that wait.

        Returns False on a rank that leaves.
        """
        staying = [rank for rank in range(self.env.world) if rank not in leaving]
        leader = staying[0]
        rank = self.env.rank
        plan = None
        if rank == leader:
            self._next_store, host, port = self._open_store()
            # A new leader does not know yet which members wait. They join at a later boundary.
            waiting = list(self._client.waiting) if rank == 0 else []
            plan = {"generation": self.generation + 1, "host": host, "port": port}
            plan["world"] = len(staying) + len(waiting)
            plan["fresh"] = False
            plan["first_joined"] = len(staying)
            waiting.sort(key=lambda member: member["ordinal"])
            plans = {member["id"]: {**plan, "rank": len(staying) + i} for i, member in enumerate(waiting)}
            self._client.admit(plans)
        plan = self._broadcast(plan, leader)
        if rank in leaving:
            self._wait_until_formed(plan)
            return False
        destroy_group(wrappers)
        self._store = self._next_store if rank == leader else self._connect_store(plan)
        self.env = replace(self.env, rank=staying.index(rank), world=plan["world"])
        self._form(plan, wrappers, state)
        return True

    def rejoin(self, wrappers, step, state):
        """Forms a group anew after peers were lost. Returns the state to continue from, None for this member's own."""
        self._client.close()
        destroy_group(wrappers)
        self._store = None
        self._client = RendezvousClient(*self._client_arguments, self.env.world)
        return self.join(wrappers, step, state)

    def close(self, done):
        """`done`: the job succeeded, so members that still wait to join are told to exit."""
        if self._server is not None:
            self._server.close(done)

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
            self._client.lead(self.generation)
        for wrapper in wrappers:
            wrapper.rebuild(world)
        first = plan["first_joined"]
        if plan["fresh"] or first == world:
            return None
        # Only to the new ranks: the others have the state, and a second copy would cost memory.
        ranks = [0, *range(first, world)]
        group = dist.new_group(ranks)
        if rank in ranks:
            received = _broadcast_state(state, rank == 0, group)
            dist.destroy_process_group(group)
            return None if rank == 0 else received
        return None

    def _open_store(self):
        import torch.distributed as dist

        # "": at the first member, which each member knows by a name of its own.
        host = "" if self._on_first_member else self._own_address()
        store = dist.TCPStore("127.0.0.1", 0, None, True, _STORE_TIMEOUT, False)
        return store, host, store.port

    def _own_address(self):
        # The source address of packets to the first member. Connecting a datagram socket sends none.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((self.env.master_addr, self.env.master_port))
                return probe.getsockname()[0]
            except OSError:
                return socket.gethostbyname(socket.gethostname())

    def _connect_store(self, plan):
        import torch.distributed as dist

        host = plan["host"] or self._first_member_host()
        return dist.TCPStore(host, plan["port"], None, False, _STORE_TIMEOUT, False)

    def _first_member_host(self):
        return "127.0.0.1" if self._on_first_member else self.env.master_addr

    def _broadcast(self, plan, source):
        if self.env.world == 1:
            return plan
        import torch.distributed as dist

        box = [plan]
        dist.broadcast_object_list(box, src=source)
        return box[0]

    def _wait_until_formed(self, plan):
        """Waits on a rank that leaves: until the new group is formed, gloo may route messages through this process."""
        try:
            store = self._connect_store(plan)
            store.wait([_FORMED_KEY], timedelta(seconds=_DEPARTURE_SECONDS))
        except Exception as error:
            print(f"swell: the other members may not have formed their group yet: {error}", file=sys.stderr, flush=True)


def destroy_group(wrappers):
    """Ends the process group of this process, if there is one. The DDP wrappers in it are released first."""
    import torch.distributed as dist

    for wrapper in wrappers:
        wrapper.release()
    if dist.is_initialized():
        dist.destroy_process_group()


def _broadcast_state(state, sends, group):
    """Sends what `state()` returns, encoded as a checkpoint is. Returns it on the receiving ranks."""
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
