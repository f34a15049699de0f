"""Messages between members: one line of JSON each, over TCP. Used by `swell.rendezvous` and `swell.peers`.

What always holds: a message has a bounded size, and sending never raises: if the other side has gone, the reader of the
connection finds out.
"""

import json
import socket

_LINE_BYTES_MAX = 1 << 20


class Line:
    """One connection whose messages a selector loop reads."""

    def __init__(self, connection, timeout=1.0):
        self.connection = connection
        self._buffer = b""
        # Nobody waits for a member that stops reading; it is dropped.
        connection.settimeout(timeout)

    def messages(self):
        """The whole messages received so far, or None if the connection has ended or sent something else."""
        try:
            data = self.connection.recv(65536)
        except OSError:
            return None
        if not data or len(self._buffer) + len(data) > _LINE_BYTES_MAX:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        messages = [_parse(line) for line in lines]
        return None if None in messages else messages

    def send(self, message):
        return send(self.connection, message)

    def close(self):
        self.connection.close()


def connect(address, timeout=5.0):
    """A connection, or None if there is none to be had."""
    try:
        connection = socket.create_connection(address, timeout=timeout)
    except OSError:
        return None
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def send(connection, message):
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def shut_down(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def read(lines):
    """The next message of a file of lines, or None if the connection has ended or the line is not a message."""
    try:
        line = lines.readline(_LINE_BYTES_MAX)
    except (OSError, ValueError):
        return None
    return _parse(line) if line.endswith(b"\n") else None


def _parse(line):
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
