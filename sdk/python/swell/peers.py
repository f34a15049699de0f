"""Which members of a group are alive, and how the rest meet again when a member is lost.

Used by `swell.resize`. Every member listens at a port of its own, which the plan of the group names ("peers": [host,
port] by rank). The lowest rank that is alive is the host. The others connect to it, and both sides send a beat each
second. A side whose connection ends, or that is silent for `SILENT_SECONDS`, is lost. The host tells all others. If
the host is lost, the next rank is the host. Everybody knows where it listens, so members find each other without the
first one.

A loss breaks the step: `on_loss` is called, which ends the group's collectives. Then the members call `reunite` with
the step that they have in memory. Once every rank has done so or is lost, the host makes the plan of the next group.
One line of JSON per message (`swell.wire`):

    member -> host   {"member": {"job", "generation", "rank"}}   the first message
                     {"ready": step}             wants the next group; -1: has no state
                     {"done": true}              has done all its work, and waits for the others
    both             {"beat": 1}
                     {"lost": [[rank, how], ...]}   these ranks do not belong to the group any more
                     {"left": true}              exits on purpose
                     {"moved": true}             has a plan for the next group, and so will you
    host -> member   {"broken": true}            a member's collectives failed; meet again
                     {"plan": {...}}             the next group
                     {"out": true}               go to the rendezvous

What always holds:
* A member that was declared lost and lives after all (it was stopped) leaves the group and joins as a new one.
* If members fall silent together, only a half or more of those that may live continues.
* The thread never waits for a member: sends are short and bounded, and silence counts as loss.
"""

import os
import selectors
import socket
import threading
import time

from swell import wire

BEAT_SECONDS = 1.0
SILENT_SECONDS = 6.0
_TICK_SECONDS = 0.25
_CONNECT_SECONDS = 1.0
# A host that cannot be reached counts as lost after this part of the silent seconds, if nothing was heard from it yet:
# it may have left when the job was done, which others learn a moment later.
_UNHEARD_PART = 1 / 3
_STRANGERS_MAX = 1024


class Peers:
    def __init__(self, job, on_loss, silent=SILENT_SECONDS):
        """`on_loss(text)` runs in the thread, again and again until `begin`. It must end waits for other members."""
        self._job = job
        self._on_loss = on_loss
        self._silent = silent
        self._lock = threading.Condition()
        self._generation = 0
        self._left = 0  # the generation that this member has left on purpose
        self._strangers = {}  # connections that do not belong to this generation yet: {line: since}
        self._reset(0, [], 1)
        self._listener = socket.create_server(("", 0), backlog=1024)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        os.register_at_fork(after_in_child=self._close_in_child)
        threading.Thread(target=self._run, name="swell-peers", daemon=True).start()

    # Called by the main thread.

    def begin(self, generation, rank, roster, least):
        """This member is `rank` in the group of that generation. `roster`: (host, port) of every rank."""
        with self._lock:
            self._part({"moved": True})
            self._generation = generation
            self._reset(rank, roster, least)
        self._wake()

    def leave(self):
        """This member leaves its group on purpose; the others need not meet again."""
        with self._lock:
            self._part({"left": True})
            self._left = self._generation or self._left
            self._generation = 0
            self._reset(0, [], 1)

    def reunite(self, step, look=lambda: None):
        """Meets the others after a loss. `step`: what this member has in memory, or None.

        Returns ("host", {rank: step}): make a plan and call `send_plan`; or ("member", plan); or None: this member is
        out and must go to the rendezvous. `look` is called while it waits; it may raise.
        """
        with self._lock:
            if self._generation == 0:
                return None
            self._ready[self._rank] = -1 if step is None else step
            self._break("its collectives failed")
            self._wake()
            while self._outcome is None and not self._out:
                self._lock.wait(_TICK_SECONDS)
                look()
            return None if self._out else self._outcome

    def wait_for_all(self, seconds):
        """This member has done all its work. Waits until all others have, too, or are gone; at most so long.

        One that left at once would close connections over which the others may still hear the end of an exchange, and
        those that had not heard of it would take it for lost.
        """
        end = time.monotonic() + seconds
        with self._lock:
            self._done.add(self._rank)
            self._wake()
            while self._awaits_others() and (left := end - time.monotonic()) > 0:
                self._lock.wait(left)

    def _awaits_others(self):
        if self._generation == 0 or self._out or self._broken is not None:
            return False
        if any(how == "left" and rank < self._rank for rank, how in self._lost.items()):
            return False  # it was the host, and knew that all had done their work, or waited long enough
        return len(self._done | self._lost.keys()) < len(self._roster)

    def sockets(self):
        with self._lock:
            lines = [*self._strangers, *self._members.values(), *([self._to_host] if self._to_host else [])]
            return [self._listener, self._waker, self._woken, *(line.connection for line in lines)]

    def send_plan(self, plan):
        with self._lock:
            for line in self._members.values():
                line.send({"plan": plan})

    def _close_in_child(self):
        # A copy in a loader's process would keep a connection open after this process was killed. Without unregister:
        # the child shares the selector's kernel object.
        for line in [*self._strangers, *self._members.values(), self._to_host]:
            if line is not None:
                line.close()
        self._listener.close()

    # Everything below runs in the thread, or under the lock.

    def _reset(self, rank, roster, least):
        self._rank, self._roster, self._least = rank, roster, least
        self._lost = {}  # {rank: "ended", "silent" or "left"}
        self._members = {}  # as the host: {rank: line}
        self._to_host = None
        self._told = set()  # what this member has told its host
        self._done = set()  # ranks that wait for all others to end; the host knows of all
        self._host_since = time.monotonic()
        self._moving_since = None
        self._ready = {}
        self._broken = None
        self._out = False
        self._outcome = None

    def _part(self, message):
        lines = [*self._members.values()] + ([self._to_host] if self._to_host else [])
        for line in lines:
            line.send(message)
            self._drop(line)
        self._members, self._to_host = {}, None

    def _wake(self):
        try:
            self._waker.send(b"x")
        except OSError:
            pass  # it is awake

    def _run(self):
        last = beat = time.monotonic()
        while True:
            events = self._selector.select(_TICK_SECONDS)
            with self._lock:
                now = time.monotonic()
                if now - last > max(self._silent / 2, 1.0):
                    # This process was stopped. The others may have spoken meanwhile, so their silence starts anew.
                    self._forgive(now)
                last = now
                for key, _ in events:
                    self._read(key, now)
                if now - beat >= BEAT_SECONDS:
                    beat = now
                    for line in [*self._members.values(), self._to_host]:
                        if line is not None:
                            line.send({"beat": 1})
                self._look_after(now)
                self._lock.notify_all()

    def _forgive(self, now):
        self._host_since = now
        for line in [*self._members.values(), self._to_host]:
            if line is not None:
                line.heard = now

    def _read(self, key, now):
        if key.fileobj is self._woken:
            self._woken.recv(4096)
        elif key.fileobj is self._listener:
            self._accept(now)
        elif key.data.connection.fileno() >= 0:  # it may have been dropped in this round
            line = key.data
            line.heard = now
            messages = line.messages()
            line.spoke = line.spoke or bool(messages)
            for message in messages or ():
                if line.connection.fileno() >= 0:  # an earlier message may have ended it
                    self._handle(line, message)
            if messages is None:
                self._ended(line)

    def _accept(self, now):
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if len(self._strangers) >= _STRANGERS_MAX:
            connection.close()
            return
        self._strangers[self._watch(connection, now)] = now

    def _watch(self, connection, now):
        line = wire.Line(connection)
        line.rank, line.generation, line.heard, line.spoke = None, None, now, False
        line.ready, line.done = None, False
        self._selector.register(connection, selectors.EVENT_READ, line)
        return line

    def _drop(self, line):
        self._strangers.pop(line, None)
        if line.connection.fileno() >= 0:
            self._selector.unregister(line.connection)
            line.close()

    def _ended(self, line):
        if line.connection.fileno() < 0:
            return
        self._drop(line)
        if line is self._to_host:
            self._to_host = None
            if line.spoke:
                self._lose(self._host(), "ended")
            else:
                self._miss_host(time.monotonic())
        elif self._members.get(line.rank) is line:
            del self._members[line.rank]
            self._lose(line.rank, "ended")

    def _handle(self, line, message):
        if "member" in message and line in self._strangers:
            request = message["member"] if isinstance(message["member"], dict) else {}
            rank, generation = request.get("rank"), request.get("generation")
            if request.get("job") != self._job or not isinstance(rank, int) or not isinstance(generation, int):
                self._drop(line)
                return
            line.rank, line.generation = rank, generation
        elif line is self._to_host:
            self._handle_host(message)
        elif self._members.get(line.rank) is line:
            self._handle_member(line, message)
        elif "ready" in message and isinstance(message["ready"], int):
            line.ready = message["ready"]
        elif "done" in message:
            line.done = True

    def _handle_host(self, message):
        if "out" in message:
            self._exclude()
        elif "moved" in message or "left" in message:
            host = self._host()
            self._drop(self._to_host)
            self._to_host = None
            if "moved" in message:
                self._moving_since = time.monotonic()
            else:
                self._lost[host] = "left"
                self._host_since = time.monotonic()
        elif "lost" in message:
            self._take_losses(message["lost"])
        elif "broken" in message:
            self._break("a member's collectives failed")
        elif "plan" in message and self._outcome is None:
            self._outcome = ("member", message["plan"])

    def _handle_member(self, line, message):
        if "lost" in message:
            self._take_losses(message["lost"])
        elif "left" in message or "moved" in message:
            self._drop(line)
            del self._members[line.rank]
            if "left" in message:
                self._lost[line.rank] = "left"
            else:
                self._moving_since = time.monotonic()
        elif isinstance(message.get("ready"), int):
            self._take_ready(line.rank, message["ready"])
        elif "done" in message:
            self._done.add(line.rank)

    def _take_losses(self, losses):
        for loss in losses if isinstance(losses, list) else ():
            if isinstance(loss, list) and len(loss) == 2 and loss[0] in range(len(self._roster)):
                self._lose(loss[0], "silent" if loss[1] == "silent" else "ended")

    def _take_ready(self, rank, step):
        self._ready[rank] = step
        self._break("a member's collectives failed")

    def _host(self):
        """The lowest rank that is not lost."""
        return min((rank for rank in range(len(self._roster)) if rank not in self._lost), default=None)

    def _lose(self, rank, how):
        if rank == self._rank:
            self._exclude()
            return
        if rank in self._lost or self._moving_since is not None:
            return
        was_host = self._host() == rank
        self._lost[rank] = how
        self._ready.pop(rank, None)
        line = self._members.pop(rank, None) if rank in self._members else None
        if was_host:
            line, self._to_host = self._to_host, None
            self._told.clear()
            self._host_since = time.monotonic()
        if line is not None:
            # If it lives after all, it must know that it is out.
            line.send({"lost": [[rank, how]]})
            self._drop(line)
        for other in self._members.values():
            other.send({"lost": [[rank, how]]})
        self._break(f"rank {rank} {'does not answer' if how == 'silent' else 'has ended'}")

    def _break(self, text):
        if self._broken is None:
            self._broken = text
            for line in self._members.values():
                line.send({"broken": True})

    def _exclude(self):
        self._out = True
        self._broken = self._broken or "the others continue without this member"

    def _look_after(self, now):
        if self._generation and not self._out and self._moving_since is None:
            if self._host() == self._rank:
                self._be_host(now)
            else:
                self._follow_host(now)
        if self._moving_since is not None and now - self._moving_since > 2 * self._silent:
            self._exclude()  # the plan for the next group never came
        self._sort_strangers(now)
        if self._broken is not None:
            self._on_loss(self._broken)

    def _be_host(self, now):
        for line in list(self._strangers):
            rank = line.rank
            known = rank == self._rank or rank in self._lost or rank in self._members
            if line.generation == self._generation and rank in range(len(self._roster)) and not known:
                del self._strangers[line]
                self._members[rank] = line
                line.heard = now
                if self._lost:
                    line.send({"lost": [[rank, how] for rank, how in self._lost.items()]})
                if self._broken is not None:
                    line.send({"broken": True})
                if line.ready is not None:
                    self._take_ready(rank, line.ready)
                if line.done:
                    self._done.add(rank)
        for rank in range(len(self._roster)):
            if rank == self._rank or rank in self._lost:
                continue
            line = self._members.get(rank)
            if now - (line.heard if line is not None else self._host_since) > self._silent:
                self._lose(rank, "silent")
        self._decide()

    def _decide(self):
        if self._outcome is not None or self._rank not in self._ready:
            return
        live = [rank for rank in range(len(self._roster)) if rank in self._ready]
        if len(live) + len(self._lost) < len(self._roster):
            return
        silent = sum(how == "silent" for how in self._lost.values())
        if len(live) < max(self._least, silent):
            for line in self._members.values():
                line.send({"out": True})
            self._exclude()
            return
        self._outcome = ("host", {rank: self._ready[rank] for rank in live})

    def _follow_host(self, now):
        host = self._host()
        if self._to_host is None:
            try:
                connection = socket.create_connection(tuple(self._roster[host]), timeout=_CONNECT_SECONDS)
            except (ConnectionRefusedError, ConnectionResetError):
                # Its process listened before its address was in the plan.
                self._miss_host(now)
                return
            except OSError:
                if now - self._host_since > self._silent:
                    self._lose(host, "silent")
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._to_host = self._watch(connection, time.monotonic())
            self._to_host.send({"member": {"job": self._job, "generation": self._generation, "rank": self._rank}})
            self._told.clear()
        elif now - self._to_host.heard > self._silent:
            self._lose(host, "silent")
            return
        if self._rank in self._ready:
            self._tell_host("ready", self._ready[self._rank])
        if self._rank in self._done:
            self._tell_host("done", True)

    def _tell_host(self, name, value):
        if name not in self._told:
            self._told.add(name)
            self._to_host.send({name: value})

    def _miss_host(self, now):
        if now - self._host_since > self._silent * _UNHEARD_PART:
            self._lose(self._host(), "ended")

    def _sort_strangers(self, now):
        """Those of an earlier generation, those that are lost, and those that nobody made a member in time are out."""
        for line, since in list(self._strangers.items()):
            if self._generation == 0 and line.generation is not None and line.generation == self._left:
                line.send({"left": True})
                self._drop(line)
                continue
            past = line.generation is not None and line.generation < self._generation
            lost = line.generation == self._generation and line.rank in self._lost
            if past or lost or now - since > 2 * self._silent:
                line.send({"out": True})
                self._drop(line)
