"""A client of the pages' server: what a browser does, with the standard library alone."""

import base64
import http.client
import json
import os
import socket
import struct


class Pages:
    """A browser at one address: it keeps the session's cookie."""

    def __init__(self, url):
        self.host = url.split("//")[1].rstrip("/")
        self.cookie = None
        self.csrf = None

    def ask(self, method, path, body=None, headers=None, csrf=True):
        """(status, headers, body as text)"""
        sent = {"Accept-Encoding": "gzip", **(headers or {})}
        if method != "GET":
            sent.setdefault("Origin", f"http://{self.host}")
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        if self.csrf and csrf and method != "GET":
            sent.setdefault("X-Swell-CSRF", self.csrf)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        sent = {name: value for name, value in sent.items() if value is not None}
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, **more):
        """(status, document)"""
        status, _, text = self.ask(method, path, body, **more)
        return status, json.loads(text)

    def login(self, **how):
        """With code=… or token=…; the session's document."""
        status, headers, text = self.ask("POST", "/ui/api/login", how)
        document = json.loads(text)
        if status == 200:
            self.cookie = headers["Set-Cookie"].split(";")[0]
            self.csrf = document["csrf"]
        return status, document

    def view(self, view, **params):
        """Its data."""
        query = "&".join(f"{key}={value}" for key, value in params.items())
        status, document = self.json("GET", f"/ui/api/views/{view}?{query}")
        if status != 200:
            raise RuntimeError(f"{view}: {status} {document}")
        return document["data"]

    def live(self, origin=None):
        return Live(self, origin if origin is not None else f"http://{self.host}")


class Live:
    """The WebSocket of a tab."""

    def __init__(self, pages, origin):
        host, port = pages.host.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET /ui/api/live HTTP/1.1", f"Host: {pages.host}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", f"Cookie: {pages.cookie}"]
        if origin:
            lines.append(f"Origin: {origin}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.buffer = b""
        head = self._until(b"\r\n\r\n")
        self.status = int(head.split()[1])

    def _more(self):
        got = self.socket.recv(65536)
        if not got:
            raise EOFError("the server has closed the connection")
        self.buffer += got

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, message):
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        mask = os.urandom(4)
        length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(b"\x81" + length + mask + masked)

    def frame(self):
        """(opcode, payload) of the next frame."""
        first, second = self._take(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._take(8))[0]
        return first & 0x0F, self._take(size)

    def message(self):
        """The next message as a document."""
        opcode, payload = self.frame()
        if opcode == 8:
            raise EOFError(payload[2:].decode())
        return json.loads(payload)

    def until(self, holds, most=200):
        """The first message for which it holds."""
        for _ in range(most):
            message = self.message()
            if holds(message):
                return message
        raise RuntimeError("the message has not come")

    def __del__(self):
        self.socket.close()
