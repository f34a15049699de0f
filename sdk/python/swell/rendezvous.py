"""How the members of an elastic job find each other: a small server in the first member's process.

Used by `swell.resize` for members that have no group; those of a group find each other through `swell.peers`. The
`RendezvousServer` listens at MASTER_ADDR:MASTER_PORT in the first member, because every member knows its name and the
scheduler evicts it last. Each member connects with a `RendezvousClient`. One line of JSON per message (`swell.wire`):

    member -> server   {"join": {"job", "ordinal", "minimum", "expected", "step", "port"}}   ready to train
                       {"leader": {"job", "generation"}}            this member leads a group that trains
                       {"admit": {"<id>": plan, ...}}               sent by the leader: these members join the group
    server -> member   {"lead": [member, ...]}      form a new group with these members
                       {"waiting": [member, ...]}   sent to the leader: these members want to join
                       {"plan": {...}}              join the group as the leader planned
                       {"superseded": true}         another group of this job is newer than yours
                       {"ended": true}              the job ended without you

What always holds:
* At most one group has its leader at the server.
* A waiting member gets an answer, or its connection ends.
* The server keeps no state of members: a server that restarts loses nothing.
* Messages are not authenticated. The network must be trusted, as for torch's own stores.
"""

import select
import selectors
import socket
import threading
import time

from swell import wire

# A new group waits this long for further members after one arrived. It is short because members can join later.
LAST_CALL_SECONDS = 2.0
# After the server starts, the leader of a group that trained on without it has this long to connect.
_LEADER_RECONNECT_SECONDS = 5.0
_RETRY_SECONDS = 0.25
_LOOK_SECONDS = 1.0


class RendezvousServer:
    """The server. Runs in a thread of its own."""

    def __init__(self, port, job, last_call=LAST_CALL_SECONDS, leader_reconnect=_LEADER_RECONNECT_SECONDS):
        self._job = job
        self._last_call = last_call
        self._leader_reconnect = leader_reconnect
        self._leader_deadline = time.monotonic() + leader_reconnect
        self._leader = None
        self._waiting = {}
        self._last_arrival = 0.0
        self._connection_count = 0
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("", port), backlog=1024)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.port = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._serve, name="swell-rendezvous", daemon=True).start()

    def close(self, done=False):
        """Ends all connections. `done`: the job succeeded, so members that still wait are told to exit."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if done:
                for member in self._waiting.values():
                    member.send({"ended": True})
            for key in list(self._selector.get_map().values()):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()

    def sockets(self):
        with self._lock:
            return [] if self._closed else [key.fileobj for key in self._selector.get_map().values()]

    def _serve(self):
        while True:
            try:
                events = self._selector.select(0.05 if self._waiting and self._leader is None else 0.5)
            except (OSError, ValueError):
                return  # closed meanwhile
            with self._lock:
                if self._closed:
                    return
                for key, _ in events:
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._read(key.data)
                self._form_group_if_due()

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        self._connection_count += 1
        member = _Member(str(self._connection_count), connection)
        self._selector.register(connection, selectors.EVENT_READ, member)

    def _read(self, member):
        messages = member.messages()
        if messages is None or not all(self._handle(member, message) for message in messages):
            self._drop(member)

    def _drop(self, member):
        self._selector.unregister(member.connection)
        member.close()
        if self._leader is member:
            # The next leader of its group has as long to connect as after a restart of the server.
            self._leader = None
            self._leader_deadline = time.monotonic() + self._leader_reconnect
        if self._waiting.pop(member.id, None) is not None:
            self._send_waiting()

    def _handle(self, member, message):
        """False if the connection must be closed."""
        if "join" in message:
            return self._handle_join(member, message["join"])
        if "leader" in message:
            return self._handle_leader(member, message["leader"])
        if "admit" in message and member is self._leader:
            for number, plan in message["admit"].items():
                admitted = self._waiting.pop(number, None)
                if admitted is not None:
                    admitted.send({"plan": plan})
            return True
        return False

    def _handle_join(self, member, request):
        if not isinstance(request, dict) or request.get("job") != self._job:
            return False
        member.request = request
        self._waiting[member.id] = member
        self._last_arrival = time.monotonic()
        self._send_waiting()
        return True

    def _handle_leader(self, member, request):
        if not isinstance(request, dict) or request.get("job") != self._job:
            return False
        member.generation = int(request.get("generation") or 0)
        other = self._leader
        if other is not None and other is not member and other.generation >= member.generation:
            member.send({"superseded": True})
            return True
        if other is not None and other is not member:
            other.send({"superseded": True})
        self._leader = member
        self._send_waiting()
        return True

    def _send_waiting(self):
        if self._leader is not None:
            self._leader.send({"waiting": [member.describe() for member in self._waiting.values()]})

    def _form_group_if_due(self):
        if self._leader is not None or not self._waiting:
            return
        members = sorted(self._waiting.values(), key=_Member.leader_order)
        now = time.monotonic()
        expected = max(member.request["expected"] for member in members)
        minimum = max(member.request["minimum"] for member in members)
        if len(members) < expected:
            wait_until = self._last_arrival + self._last_call
            if all(member.request.get("step") is None for member in members):
                # A group may train without them. Its leader must be able to connect first.
                wait_until = max(wait_until, min(self._leader_deadline, self._last_arrival + self._leader_reconnect))
            if len(members) < minimum or now < wait_until:
                return
        first = members[0]
        del self._waiting[first.id]
        self._leader = first
        first.send({"lead": [member.describe() for member in members[1:]]})


class _Member(wire.Line):
    """One connection to the server."""

    def __init__(self, number, connection):
        super().__init__(connection)
        self.id = number
        self.request = None
        self.generation = 0

    def leader_order(self):
        """Sort key: the member that trained furthest leads, because all others continue from its state."""
        step = self.request.get("step")
        return (-1 if step is None else step) * -1, self.request["ordinal"]

    def describe(self):
        """What a leader must know of it. "host": where it can be reached; "" is the first member itself."""
        request = self.request
        host = "" if request["ordinal"] == 0 else self.connection.getpeername()[0]
        peer = [host, request.get("port")]
        return {"id": self.id, "ordinal": request["ordinal"], "step": request.get("step"), "peer": peer}


class JobEnded(Exception):
    """The job ended while this member waited to join."""


class RendezvousClient:
    """One member's connection to the server.

    `join` blocks and runs in the main thread. A leader then gets news from the server in a thread.
    """

    def __init__(self, host, port, job, ordinal, minimum, expected, peer_port=0):
        """`ordinal`: the member's number in the job. `minimum`, `expected`: how many members a new group needs to start
        after the last call, and to start at once. `peer_port`: where this member's `swell.peers.Peers` listens."""
        self._address = (host, port)
        self._request = {"job": job, "ordinal": ordinal, "minimum": minimum, "expected": expected, "port": peer_port}
        self._connection = None
        self._lock = threading.Lock()
        self._waiting = []
        # Ids of members that this leader has admitted. A message that was sent before may still list them.
        self._admitted = set()
        self._leading = None
        self._closed = False
        self.superseded = False

    def close(self):
        """Stops leading. Call it before another client is made for the same member."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                # A shutdown wakes the thread that reads; a close would not.
                wire.shut_down(self._connection)
                if self._leading is None:
                    self._connection.close()

    def sockets(self):
        connection = self._connection
        return [] if connection is None else [connection]

    @property
    def waiting(self):
        """The members that want to join the group that this member leads."""
        return [member for member in self._waiting if member["id"] not in self._admitted]

    def member_ahead(self, step):
        """True if a waiting member has trained further than `step`."""
        return any(member["step"] is not None and member["step"] > step for member in self.waiting)

    def join(self, step=None, look=lambda: None):
        """Waits for a group. Raises JobEnded.

        Returns ("leader", the other members) or ("member", the leader's plan). `step`: the step of the state in memory;
        None if there is no state yet. `look` is called about once a second while it waits; it may raise.
        """
        while True:
            look()
            connection = self._connect()
            if connection is not None:
                wire.send(connection, {"join": {**self._request, "step": step}})
                message = self._read_answer(connection, look)
                if message is not None and "lead" in message:
                    self._connection = connection
                    return "leader", message["lead"]
                connection.close()
                if message is not None and "ended" in message:
                    raise JobEnded()
                if message is not None and "plan" in message:
                    return "member", message["plan"]
            time.sleep(_RETRY_SECONDS)

    def _read_answer(self, connection, look):
        try:
            with connection.makefile("rb") as stream:
                while not select.select([connection], [], [], _LOOK_SECONDS)[0]:
                    look()
                return wire.read(stream)
        except BaseException:
            connection.close()
            raise

    def lead(self, generation):
        """From now on this member leads the group of that generation."""
        with self._lock:
            first_time = self._leading is None
            self._leading = generation
            if not first_time:
                self._send({"leader": {"job": self._request["job"], "generation": generation}})
        if first_time:
            threading.Thread(target=self._listen, name="swell-rendezvous-leader", daemon=True).start()

    def admit(self, plans):
        """Sends waiting members their plans: {id: plan}."""
        with self._lock:
            self._admitted.update(plans)
            self._send({"admit": plans})

    def _send(self, message):
        if self._connection is not None:
            wire.send(self._connection, message)  # if it has ended, the listening thread makes a new one

    def _listen(self):
        while not self._closed:
            # Not in the lock, which the training takes: where the first member is gone, its name may take long.
            connection = self._connection or self._connect()
            with self._lock:
                if self._closed:
                    if connection is not None:
                        connection.close()
                    return
                self._connection = connection
                if connection is not None:
                    self._send({"leader": {"job": self._request["job"], "generation": self._leading}})
            if connection is None:
                time.sleep(_RETRY_SECONDS)
                continue
            with connection.makefile("rb") as stream:
                while (message := wire.read(stream)) is not None:
                    if "waiting" in message:
                        self._waiting = message["waiting"]
                    self.superseded = self.superseded or "superseded" in message
            with self._lock:
                self._connection = None
                self._waiting = []
                self._admitted = set()
            connection.close()
            time.sleep(_RETRY_SECONDS)

    def _connect(self):
        return wire.connect(self._address)
