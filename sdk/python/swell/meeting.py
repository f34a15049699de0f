"""Where the members of an elastic job find each other: a small server in the first member's process.

Used by `swell.resize`. A `Meeting` listens at MASTER_ADDR:MASTER_PORT, on the member that everybody knows by name and
that the scheduler gives up last. Others take a `Seat` there. One line of JSON per message:

    member -> meeting   {"hello": {"job", "ordinal", "least", "wanted", "step"}}   I am ready to train
                        {"head": {"job", "generation"}}                            I speak for a group that trains
                        {"take": {"<id>": plan, ...}}                              (head) these may come in
    meeting -> member   {"lead": [waiting, ...]}      begin a group, and take these
                        {"waiting": [waiting, ...]}   (to the head) who is ready to join
                        {"plan": {...}}               come in, as the head says
                        {"yield": true}               another group of this job is ahead of yours
                        {"done": true}                the job has ended without you

What always holds: at most one group has its head here; whoever waits is told something or the connection ends; no
member's state lives here, so a meeting that is lost and comes back loses nothing. It trusts its network, as torch's
own stores do.
"""

import json
import selectors
import socket
import threading
import time

# Growing later costs little, so a beginning group waits only long enough not to begin as a handful of ones.
LAST_CALL_SECONDS = 2.0
# A group that trains without the first member has this long to speak up when that member is back.
_CLAIM_SECONDS = 5.0
_LINE_BYTES_MAX = 1 << 20
_RETRY_SECONDS = 0.25


class Meeting:
    """The server. `close(done=True)` when the job has ended well: whoever still waits is sent home."""

    def __init__(self, port, job, last_call=LAST_CALL_SECONDS, claim=_CLAIM_SECONDS):
        self._job = job
        self._last_call = last_call
        self._claim = claim
        self._claim_until = time.monotonic() + claim
        self._head = None
        self._waiting = {}
        self._arrival = 0.0
        self._ids = 0
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("", port), backlog=1024)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.port = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._serve, name="swell-meeting", daemon=True).start()

    def close(self, done=False):
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if done:
                for member in self._waiting.values():
                    member.send({"done": True})
            for key in list(self._selector.get_map().values()):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()

    def _serve(self):
        while True:
            try:
                events = self._selector.select(0.05 if self._waiting and self._head is None else 0.5)
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
                self._begin_if_due()

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        self._ids += 1
        member = _Member(str(self._ids), connection)
        self._selector.register(connection, selectors.EVENT_READ, member)

    def _read(self, member):
        lines = member.lines()
        for line in lines or ():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict) or not self._hear(member, message):
                lines = None
                break
        if lines is None:
            self._drop(member)

    def _drop(self, member):
        self._selector.unregister(member.connection)
        member.end()
        if self._head is member:
            # Its successor, if there is one, has the same time to speak up as after a restart.
            self._head = None
            self._claim_until = time.monotonic() + self._claim
        if self._waiting.pop(member.id, None) is not None:
            self._tell_head()

    def _hear(self, member, message):
        """False when the connection is to end."""
        if "hello" in message:
            return self._hear_hello(member, message["hello"])
        if "head" in message:
            return self._hear_head(member, message["head"])
        if "take" in message and member is self._head:
            for number, plan in message["take"].items():
                taken = self._waiting.pop(number, None)
                if taken is not None:
                    taken.send({"plan": plan})
            return True
        return False

    def _hear_hello(self, member, hello):
        if not isinstance(hello, dict) or hello.get("job") != self._job:
            return False
        member.hello = hello
        self._waiting[member.id] = member
        self._arrival = time.monotonic()
        self._tell_head()
        return True

    def _hear_head(self, member, head):
        if not isinstance(head, dict) or head.get("job") != self._job:
            return False
        member.generation = int(head.get("generation") or 0)
        other = self._head
        if other is not None and other is not member and other.generation >= member.generation:
            member.send({"yield": True})
            return True
        if other is not None and other is not member:
            other.send({"yield": True})
        self._head = member
        self._tell_head()
        return True

    def _tell_head(self):
        if self._head is not None:
            self._head.send({"waiting": [member.card() for member in self._waiting.values()]})

    def _begin_if_due(self):
        if self._head is not None or not self._waiting:
            return
        members = sorted(self._waiting.values(), key=_Member.seniority)
        now = time.monotonic()
        wanted = max(member.hello["wanted"] for member in members)
        least = max(member.hello["least"] for member in members)
        if len(members) < wanted:
            quiet_until = self._arrival + self._last_call
            if all(member.hello.get("step") is None for member in members):
                # Those who come back may find that a group trains on without them, whose head is to be heard first.
                quiet_until = max(quiet_until, min(self._claim_until, self._arrival + self._claim))
            if len(members) < least or now < quiet_until:
                return
        first = members[0]
        del self._waiting[first.id]
        self._head = first
        first.send({"lead": [member.card() for member in members[1:]]})


class _Member:
    """One connection to the meeting."""

    def __init__(self, number, connection):
        self.id = number
        self.connection = connection
        self.hello = None
        self.generation = 0
        self._buffer = b""
        # A member that does not read is cut off rather than waited for.
        connection.settimeout(1.0)

    def seniority(self):
        """Who has trained furthest leads, for its state is the one to go on from."""
        step = self.hello.get("step")
        return (-1 if step is None else step) * -1, self.hello["ordinal"]

    def card(self):
        return {"id": self.id, "ordinal": self.hello["ordinal"], "step": self.hello.get("step")}

    def lines(self):
        """Whole lines that have come; None when the connection is over."""
        try:
            data = self.connection.recv(65536)
        except OSError:
            return None
        if not data or len(self._buffer) + len(data) > _LINE_BYTES_MAX:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return lines

    def send(self, message):
        _send(self.connection, message)  # one that is gone shows as the end of its lines

    def end(self):
        self.connection.close()


class Done(Exception):
    """The job ended while this member waited to join."""


class Seat:
    """One member's place at the meeting. `wait` in the main thread; as a head, a thread listens for news."""

    def __init__(self, host, port, job, ordinal, least, wanted):
        self._address = (host, port)
        self._hello = {"job": job, "ordinal": ordinal, "least": least, "wanted": wanted}
        self._connection = None
        self._lock = threading.Lock()
        self._waiting = []
        # Ids at one meeting; news that was on its way may still name them.
        self._taken = set()
        self._leading = None
        self._left = False
        self.yielded = False

    def leave(self):
        """Speaks for no group any more; to be done before a seat is taken anew."""
        with self._lock:
            self._left = True
            if self._connection is not None:
                # The thread that reads from it wakes up by this, and not by a close.
                _shut(self._connection)
                if self._leading is None:
                    self._connection.close()

    @property
    def waiting(self):
        """Who is ready to join the group that this member is the head of."""
        return [card for card in self._waiting if card["id"] not in self._taken]

    def behind(self, step):
        """Whether somebody who waits has trained further than the group that this member is the head of."""
        return any(card["step"] is not None and card["step"] > step for card in self.waiting)

    def wait(self, step=None):
        """("lead", [card, ...]) or ("plan", {...}). `step`: how far the state in memory has come, None without one."""
        while True:
            connection = self._connect()
            if connection is not None:
                with connection.makefile("rb") as lines:
                    _send(connection, {"hello": {**self._hello, "step": step}})
                    message = _read_message(lines)
                if message is not None and "done" in message:
                    connection.close()
                    raise Done()
                if message is not None and "plan" in message:
                    # The group's head speaks for it from now on.
                    connection.close()
                    return "plan", message["plan"]
                if message is not None and "lead" in message:
                    self._connection = connection
                    return "lead", message["lead"]
                connection.close()
            time.sleep(_RETRY_SECONDS)

    def lead(self, generation):
        """This member is the head of the group of that generation, until the process ends."""
        with self._lock:
            fresh = self._leading is None
            self._leading = generation
            if not fresh:
                self._say({"head": {"job": self._hello["job"], "generation": generation}})
        if fresh:
            threading.Thread(target=self._listen, name="swell-seat", daemon=True).start()

    def take(self, plans):
        with self._lock:
            self._taken.update(plans)
            self._say({"take": plans})

    def _say(self, message):
        if self._connection is not None:
            _send(self._connection, message)  # the listening thread sees an end and connects anew

    def _listen(self):
        while not self._left:
            with self._lock:
                if self._connection is None:
                    self._connection = self._connect()
                connection = self._connection
                if connection is not None:
                    self._say({"head": {"job": self._hello["job"], "generation": self._leading}})
            if connection is None:
                time.sleep(_RETRY_SECONDS)
                continue
            with connection.makefile("rb") as lines:
                while (message := _read_message(lines)) is not None:
                    if "waiting" in message:
                        self._waiting = message["waiting"]
                    self.yielded = self.yielded or "yield" in message
            with self._lock:
                self._connection = None
                self._waiting = []
                self._taken = set()
            connection.close()
            time.sleep(_RETRY_SECONDS)

    def _connect(self):
        try:
            connection = socket.create_connection(self._address, timeout=5)
        except OSError:
            return None
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def _send(connection, message):
    """Tells the other side, unless the connection has ended: whoever reads from it finds that out."""
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def _read_message(lines):
    """The next message, None when the connection has ended or speaks something else."""
    try:
        line = lines.readline(_LINE_BYTES_MAX)
        message = json.loads(line) if line.endswith(b"\n") else None
    except (OSError, ValueError):
        return None
    return message if isinstance(message, dict) else None
