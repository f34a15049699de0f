"""The process group of an elastic job: members come and go at step boundaries, the others keep their memory.

Used by `swell.train.Job` unless torchrun runs the script. After each step the ranks exchange in one
small all-reduce which of them must leave and whether a member waits to join. If nobody does, that is the whole cost.
Otherwise the lowest rank that stays becomes the leader. It opens a new store and broadcasts a plan over the old group.
The ranks that stay and the members that join form the new group there: the old ranks in their order, then the new ones.
New ranks get the parameters when the DDP wrapper is made, and all other state as a checkpoint over the network. No disk
is involved.

What always holds:
* All ranks change groups after the same step.
* No rank waits for a rank that leaves. A rank that is lost ends what the others wait for (`swell.peers`).
* If the group breaks in a step, the members that are left form the next one and continue from the memory of the member
  that trained furthest. A rigid job, or an elastic one below its minimum, waits for a replacement first.
* The leader's state is the one that counts.
* A member without a group waits and trains nothing.
"""

import os
import socket
import sys
import threading
import time
import traceback
from dataclasses import replace
from datetime import timedelta

from swell import abort, checkpoint
from swell.peers import Peers
from swell.rendezvous import RendezvousClient, RendezvousServer

_STORE_TIMEOUT = timedelta(seconds=20)
_STORE_CONNECT_SECONDS = 5.0
_FORMED_KEY = "swell/formed"
_DEPARTURE_SECONDS = 5.0
_END_SECONDS = 5.0
# The end of a broken group takes milliseconds, unless gloo has forgotten one of its collectives.
_RELEASE_SECONDS = 1.0
_LOOK = timedelta(seconds=0.25)
# A try fails if a member is lost while the group forms.
_TRIES = 20


class LostPeer(RuntimeError):
    """A member of the group is gone, so the step cannot be finished."""


class Group:
    def __init__(self, env, backend, timeout):
        self.env = env
        self.generation = 0
        # Why this group cannot train on; None while it can. Set by a thread.
        self.broken = None
        # Called when the group is broken, by a thread, again and again. It must end waits that `_break` does not reach.
        self.at_break = lambda: None
        self._backend = backend
        self._timeout = timeout
        # A rigid job trains with all its members or not at all.
        self._least = env.least if env.elastic else env.world
        self._ordinal = env.rank
        self._on_first_member = env.rank == 0
        self._server = RendezvousServer(env.master_port, env.job_id) if self._on_first_member else None
        self._peers = Peers(env.job_id, self._break)
        self._roster = []
        self._next_store = None
        self._client = self._new_client()
        self._flags = None
        self._store = None
        # torch's sockets for this group. None while it is being formed: those that were not there before.
        self._sockets = set()
        self._sockets_before = set()

    def _new_client(self):
        env = self.env
        first = (self._first_member_host(), env.master_port, env.job_id)
        return RendezvousClient(*first, self._ordinal, self._least, env.world, self._peers.port)

    def join(self, wrappers, step=None, state=None, look=lambda: None):
        """Waits for the other members and forms a group with them.

        `step` and `state`: what this member has in memory after it lost its peers; None at the start. Returns the state
        to continue from, or None if the member's own memory or a checkpoint has it.
        """
        def form():
            self._peers.leave()
            return self._join(wrappers, step, state, look)

        return self._until_formed(wrappers, look, form)

    def rejoin(self, wrappers, step, state, look=lambda: None):
        """Forms a group anew after peers were lost. Returns the state to continue from, None for this member's own.

        The members that are left meet without the rendezvous if they are enough. Otherwise they wait there for others.
        """
        return self._until_formed(wrappers, look, lambda: self._rejoin(wrappers, step, state, look))

    def _until_formed(self, wrappers, look, form):
        for _ in range(_TRIES):
            try:
                return form()
            except RuntimeError as error:
                if not is_lost_peer(error) and self.broken is None:
                    raise
                print(f"swell: a group could not form: {_first_line(error)}", file=sys.stderr, flush=True)
                # Frames of the failure would keep wrappers alive, and with them their group.
                traceback.clear_frames(error.__traceback__)
            self._destroy(wrappers)
            self._sockets = set()
            self._client.close()
            self._client = self._new_client()
            look()
        raise LostPeer(f"no group of this job could form in {_TRIES} tries")

    def _join(self, wrappers, step, state, look):
        role, answer = self._client.join(step, look)
        self._sockets_before = abort.sockets()
        if role == "leader":
            self._store, host, port = self._open_store()
            plan = {"generation": self.generation + 1, "host": host, "port": port, "world": 1 + len(answer)}
            plan["fresh"] = step is None
            plan["first_joined"] = 1
            plan["peers"] = [[host, self._peers.port], *(member["peer"] for member in answer)]
            self._client.admit({member["id"]: {**plan, "rank": 1 + i} for i, member in enumerate(answer)})
            plan["rank"] = 0
        else:
            plan = answer
        return self._form(plan, wrappers, state)

    def _rejoin(self, wrappers, step, state, look):
        sockets = self._group_sockets()
        self._client.close()
        abort.shut_down(sockets)
        self._destroy(wrappers)
        self._client = self._new_client()
        met = self._peers.reunite(step, look)
        if met is None:
            # The generation is over for this member. A failure from here on is one of the rendezvous.
            self._peers.leave()
            return self._join(wrappers, step, state, look)
        self._sockets_before = abort.sockets()
        role, answer = met
        if role == "host":
            plan = self._plan_reunion(answer)
            self._peers.send_plan(plan)
        else:
            plan = answer
        return self._form({**plan, "rank": plan["order"].index(self.env.rank)}, wrappers, state)

    def _plan_reunion(self, steps):
        """The rank that trained furthest leads, since all others continue from its state."""
        furthest = max(steps.values())
        order = sorted(steps, key=lambda rank: (-steps[rank], rank))
        self._store, host, port = self._open_store()
        return {
            "generation": self.generation + 1,
            "host": host,
            "port": port,
            "world": len(order),
            "fresh": furthest < 0,
            "first_joined": sum(step == furthest for step in steps.values()),
            "order": order,
            "peers": [self._roster[rank] for rank in order],
        }

    def _destroy(self, wrappers):
        destroy_group(wrappers, _RELEASE_SECONDS)
        self._store = None

    def _break(self, text):
        """Called by the thread of `Peers`, again and again until there is a new group."""
        self.broken = text
        try:
            sockets = self._group_sockets()
            if self._sockets is None and "gloo" in self._backend:
                store = {self._store.port} if self._store is not None and self.env.rank == 0 else set()
                abort.end_waits(sockets, self.env.world, store)
            abort.shut_down(sockets)
            abort.abort_device_groups()
            self.at_break()
        except Exception as error:
            # The thread must live: it finds the next loss. It tries again in a moment.
            print(f"swell: the group could not be ended: {_first_line(error)}", file=sys.stderr, flush=True)

    def _group_sockets(self):
        """Those of the group, or of one that is being formed."""
        return self._sockets if self._sockets is not None else self._torch_sockets()

    def _torch_sockets(self):
        """The sockets since the last group, without those of this package."""
        own = self._peers.sockets() + self._client.sockets() + (self._server.sockets() if self._server else [])
        return abort.sockets() - self._sockets_before - abort.inodes(own)

    def agree(self, leaving, step, save=False, proposal=(0, 0)):
        """What all ranks agree on after a step: (ranks that leave, member waits, group must give up, save is due).

        `proposal`: two bytes, of which those of rank 0 count. All ranks find them in `self.proposal`.
        """
        import torch
        import torch.distributed as dist

        if self.broken is not None:
            raise LostPeer(self.broken)
        world = self.env.world
        if self._flags is None:
            device = "cuda" if dist.get_backend() == "nccl" else "cpu"
            self._flags = torch.zeros(world + 5, dtype=torch.uint8, device=device)
        flags = self._flags
        flags.zero_()
        flags[self.env.rank] = 1 if leaving else 0
        if self.env.rank == 0:
            # A rigid group is complete.
            flags[world] = 1 if self.env.elastic and self._client.waiting else 0
            flags[world + 1] = 1 if self._client.superseded or self._client.member_ahead(step) else 0
            flags[world + 2] = 1 if save else 0
            flags[world + 3], flags[world + 4] = proposal
        if world > 1:
            finish(dist.all_reduce(flags, op=dist.ReduceOp.MAX, async_op=True), flags, lambda: self.broken)
        self.proposal = (0, 0)
        if not flags.any():
            return (), False, False, False
        values = flags.tolist()
        joining, giving_up, save = map(bool, values[world : world + 3])
        self.proposal = tuple(values[world + 3 :])
        return tuple(i for i in range(world) if values[i]), joining, giving_up, save

    def change(self, leaving, wrappers, state):
        """Forms the next group without the ranks in `leaving` and with the members that wait.

        Returns False on a rank that leaves.
        """
        staying = [rank for rank in range(self.env.world) if rank not in leaving]
        leader = staying[0]
        rank = self.env.rank
        if rank in leaving:
            # Its peers may be in the next group before this rank knows. Nothing is lost by that.
            self._peers.leave()
        self._sockets_before = abort.sockets()
        plan = self._plan_change(staying) if rank == leader else None
        plan = self._broadcast(plan, leader)
        if rank in leaving:
            self._wait_until_formed(plan)
            return False
        destroy_group(wrappers)
        self._store, self._next_store = (self._next_store if rank == leader else None), None
        self._form({**plan, "rank": staying.index(rank)}, wrappers, state)
        return True

    def _plan_change(self, staying):
        self._next_store, host, port = self._open_store()
        # A new leader does not know yet which members wait. They join at a later boundary.
        waiting = list(self._client.waiting) if self.env.rank == 0 else []
        waiting.sort(key=lambda member: member["ordinal"])
        plan = {"generation": self.generation + 1, "host": host, "port": port}
        plan["world"] = len(staying) + len(waiting)
        plan["fresh"] = False
        plan["first_joined"] = len(staying)
        plan["peers"] = [*(self._roster[rank] for rank in staying), *(member["peer"] for member in waiting)]
        self._client.admit({member["id"]: {**plan, "rank": len(staying) + i} for i, member in enumerate(waiting)})
        return plan

    def another_machine(self):
        """The lowest rank on another machine than rank 0's; rank 1 if all are on one."""
        hosts = [host for host, _ in self._roster]
        return next((rank for rank, host in enumerate(hosts) if host != hosts[0]), 1)

    def close(self, done):
        """`done`: the job succeeded, so members that still wait to join are told to exit.

        The last exchange of the training may not have reached all others yet. One of them may also do work of its own,
        so the wait is short.
        """
        if done:
            self._peers.wait_for_all(_END_SECONDS)
        self._peers.leave()
        if self._server is not None:
            self._server.close(done)

    def _form(self, plan, wrappers, state):
        import torch.distributed as dist

        self.generation = plan["generation"]
        self._flags = None
        rank, world = plan["rank"], plan["world"]
        self.env = replace(self.env, rank=rank, world=world)
        self._roster = plan["peers"]
        # From now on a peer that is lost ends whatever this member waits for, so torch's long time-outs do not count.
        self._peers.begin(self.generation, rank, self._addresses(), self._least)
        self._sockets, self.broken = None, None
        if self._store is None:
            self._store = self._connect_store(plan)
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
        received = None
        if not plan["fresh"] and first < world:
            received = self._send_state(state, [0, *range(first, world)])
        self._sockets = self._torch_sockets()
        return received

    def _send_state(self, state, ranks):
        """Only to the new ranks: the others have the state, and a second copy would cost memory."""
        import torch.distributed as dist

        group = dist.new_group(ranks)
        if self.env.rank not in ranks:
            return None
        received = _broadcast_state(state, self.env.rank == 0, group)
        dist.destroy_process_group(group)
        return received

    def _addresses(self):
        return [(host or self._first_member_host(), port) for host, port in self._roster]

    def _open_store(self):
        import torch.distributed as dist

        # "": at the first member, which each member knows by a name of its own.
        host = "" if self._on_first_member else self._own_address()
        store = dist.TCPStore("127.0.0.1", 0, None, True, _STORE_TIMEOUT, False)
        return store, host, store.port

    def _own_address(self):
        known = self._roster[self.env.rank][0] if self._roster else ""
        if known:
            # The first member may be gone, and looking for the name of a pod that is gone can take ten seconds.
            return known
        # The source address of packets to the first member. Connecting a datagram socket sends none.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((self.env.master_addr, self.env.master_port))
                return probe.getsockname()[0]
            except OSError:
                return socket.gethostbyname(socket.gethostname())

    def _connect_store(self, plan, timeout=_STORE_TIMEOUT):
        import torch.distributed as dist

        host = plan["host"] or self._first_member_host()
        return dist.TCPStore(host, plan["port"], None, False, timeout, False)

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
        """Waits on a rank that leaves: until the new group is formed, gloo may route messages through this process.

        Not for a leader that has ended meanwhile, since it got the notice a moment later: its store would be looked for
        until the grace is over.
        """
        end = time.monotonic() + _DEPARTURE_SECONDS
        address = (plan["host"] or self._first_member_host(), plan["port"])
        try:
            socket.create_connection(address, timeout=_DEPARTURE_SECONDS).close()
            store = self._connect_store(plan, timedelta(seconds=_DEPARTURE_SECONDS))
            store.wait([_FORMED_KEY], timedelta(seconds=max(0.1, end - time.monotonic())))
        except Exception as error:
            print(f"swell: the other members may not have formed their group yet: {error}", file=sys.stderr, flush=True)


def finish(work, tensor, broken):
    """Waits for a collective over `tensor`; raises `LostPeer` if `broken()` says meanwhile why the group is broken.

    gloo forgets a send that waited for room when its connection ended, and what it had received in part. Such a
    collective ends with torch's time-out.
    """
    if tensor.is_cuda:
        work.wait()
        return
    ended = False
    while not ended:
        try:
            work.wait(_LOOK)
            return
        except RuntimeError:
            # It failed, or ran out of this time and may have ended since.
            ended = work.is_completed()
        if not ended and broken() is not None:
            raise LostPeer(broken())
    work.wait()


def destroy_group(wrappers, seconds=None):
    """Ends the process group of this process, if there is one. The DDP wrappers in it are released first.

    `seconds`: how long it waits for the group's collectives; None: until they have ended, which takes torch's time-out
    if gloo has forgotten one (`finish`). What is left of the group then ends in a thread.
    """
    import torch.distributed as dist

    for wrapper in wrappers:
        wrapper.release()
    if dist.is_initialized():
        last = [dist.group.WORLD]
        dist.destroy_process_group()
        if seconds is None:
            last.clear()
            return
        # Dropping the last reference waits for the group's threads, without the GIL.
        thread = threading.Thread(target=last.clear, name="swell-old-group", daemon=True)
        thread.start()
        thread.join(seconds)
    else:
        # torch counts groups, also those that could not form, and their keys in the store begin with that count: a
        # member that failed once would wait for others under names of its own.
        dist.distributed_c10d._group_count = 0


def is_lost_peer(error):
    """True if a collective failed because a peer is gone, and not because of this process, as with a wrong shape."""
    if isinstance(error, LostPeer) or type(error).__name__ in ("DistNetworkError", "DistStoreError"):
        return True
    text = str(error).lower()
    signs = ("gloo", "nccl", "connection closed", "connection reset", "broken pipe", "socket timeout")
    return isinstance(error, RuntimeError) and any(sign in text for sign in signs)


def _first_line(error):
    return (str(error) or type(error).__name__).splitlines()[0]


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


def bounded(timeout, look=lambda: None):
    """A function that calls `look`, and raises TimeoutError once `timeout` has passed."""
    end = time.monotonic() + timeout.total_seconds()

    def look_until_then():
        look()
        if time.monotonic() > end:
            seconds = round(timeout.total_seconds())
            raise TimeoutError(f"lost members were not replaced within {seconds} s (Job(timeout=))")

    return look_until_then


def check_group(env):
    if not initialized():
        raise RuntimeError(
            f"this job has {env.world} ranks and no process group: wrap the model with job.parallel(model) before "
            "job.batches or job.restore, or call torch.distributed.init_process_group"
        )


def default_backend():
    import torch

    return "nccl" if torch.cuda.is_available() else "gloo"


def init_group(env, backend, timeout):
    """torch's own group, for ranks that their launcher starts again if one of them is lost."""
    import torch.distributed as dist

    if env.under_agent and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        _check_store(env)
    dist.init_process_group(backend, timeout=timeout)


def _check_store(env):
    # The launcher's store is there before its workers. torch would wait for another one until its time-out.
    try:
        socket.create_connection((env.master_addr, env.master_port), _STORE_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        raise RuntimeError(
            f"nobody listens at MASTER_ADDR:MASTER_PORT, {env.master_addr}:{env.master_port}: the launcher sets both "
            "variables, so delete the script's lines that do"
        ) from None
    except OSError:
        pass  # the other machine is slow, or its name is not known yet: torch tries again


def initialized():
    torch = sys.modules.get("torch")
    return torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
