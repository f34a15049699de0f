"""The protocols of ElasticDL's jobs: HTTP and JSON to the job master, frames between workers and the master.

Used by master.py and worker.py. A frame is two big-endian 32-bit lengths, a JSON header and raw bytes. What always
holds: a caller gets a whole answer or an OSError; no peer can make the other side read more than FRAME_MAX bytes.
"""

import json
import socket
import struct
import threading
import time

FRAME_MAX = 1 << 30
_HEADER_MAX = 1 << 20
_LENGTHS = struct.Struct(">II")


class Refused(Exception):
    """The job master answered with an error; `code` is the HTTP status."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class JobMaster:
    """A client of the job master over one connection. Thread-safe; one call runs at a time."""

    def __init__(self, address, retry_seconds=600.0):
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._socket = self._reader = None

    def post(self, path, **document):
        return self._request("POST", path, json.dumps(document, separators=(",", ":")).encode())

    def get(self, path):
        return self._request("GET", path, b"")

    def _request(self, method, path, body):
        """Retries while the master does not answer. Every request may be repeated."""
        give_up = time.monotonic() + self.retry_seconds
        pause = 0.05
        with self._lock:
            while True:
                try:
                    return self._once(method, path, body)
                except (OSError, ValueError) as error:
                    self.close()
                    if time.monotonic() > give_up:
                        raise OSError(f"the job master at {self.address[0]}:{self.address[1]} does not answer: {error}")
                time.sleep(pause)
                pause = min(1.0, pause * 1.5)

    def _once(self, method, path, body):
        if self._socket is None:
            self._socket = socket.create_connection(self.address, timeout=30)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._reader = self._socket.makefile("rb")
        self._socket.sendall(
            b"%s %s HTTP/1.1\r\nHost: job-master\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (method.encode(), path.encode(), len(body)) + body)
        status = self._reader.readline(_HEADER_MAX).split()
        if len(status) < 2:
            raise OSError("the connection was closed")
        length = 0
        while True:
            line = self._reader.readline(_HEADER_MAX)
            if line in (b"\r\n", b""):
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        text = self._reader.read(min(length, FRAME_MAX))
        if len(text) != length:
            raise OSError("the answer is incomplete")
        answer = json.loads(text) if text else {}
        code = int(status[1])
        if code == 503:
            raise OSError(answer.get("message", "unavailable"))
        if code >= 300:
            raise Refused(code, answer.get("message", f"status {code}"))
        return answer

    def close(self):
        if self._socket is not None:
            self._reader.close()
            self._socket.close()
        self._socket = self._reader = None


def send_frame(connection, header, payload=b""):
    text = json.dumps(header, separators=(",", ":")).encode()
    connection.sendall(_LENGTHS.pack(len(text), len(payload)) + text)
    if payload:
        connection.sendall(payload)


def receive_frame(connection):
    """(header, bytes). Raises EOFError if the peer has closed the connection."""
    header_bytes, payload_bytes = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    if header_bytes > _HEADER_MAX or payload_bytes > FRAME_MAX:
        raise OSError(f"a frame of {header_bytes} + {payload_bytes} bytes is too large")
    header = json.loads(bytes(_exactly(connection, header_bytes)))
    return header, _exactly(connection, payload_bytes) if payload_bytes else b""


def _exactly(connection, count):
    # A bytearray, because torch needs writable memory.
    data = bytearray(count)
    view = memoryview(data)
    while view:
        got = connection.recv_into(view)
        if got == 0:
            raise EOFError("the peer closed the connection")
        view = view[got:]
    return data
