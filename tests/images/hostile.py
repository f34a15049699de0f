"""A registry that misbehaves on demand, on loopback: cut connections, errors, wrong bytes, silence."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import layout


class HostileRegistry:
    """Serves one image under every name. What it does wrong is set from outside, and counted."""

    def __init__(self, image):
        self.image = image
        self.cut_blobs = set()      # digests whose first transfer ends in the middle
        self.wrong_blobs = set()    # digests that come with other bytes of the same length
        self.silent_blobs = set()   # digests that are never answered
        self.manifest_answers = []  # statuses that come in place of the manifest; None: it comes
        self.wrong_manifest = False  # what is asked for by its digest comes with other bytes
        self.indexed = False        # names stand for an index of one manifest
        self.range_answer = None    # the status of what continues a blob
        self.retry_after = None     # seconds that go with these statuses
        self.tokens = None          # {"user:password": "token"}: asks for tokens
        self.passwords_too = False  # and offers to take passwords, which it does not
        self.ranges = []            # Range headers that came
        self.redirect = None        # the address to which manifests are moved
        self.realm = None           # the address that gives tokens, in place of this one
        self.requests = 0
        self.ended = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except ConnectionError:  # the client has heard enough
                    pass

            def do_GET(self):
                registry.requests += 1
                registry.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def send(self, handler, status, body, **headers):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def refuse(self, handler, status, code, message, **headers):
        body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self.send(handler, status, body, **headers)

    def index(self):
        own = {"digest": self.image.digest, "size": len(self.image.manifest),
               "platform": {"os": "linux", "architecture": layout.ARCHITECTURE}}
        return json.dumps({"schemaVersion": 2, "manifests": [own]}).encode()

    def trouble(self, handler, status):
        headers = {"Retry_After": str(self.retry_after)} if self.retry_after is not None else {}
        self.refuse(handler, status, "TROUBLE", f"answer {status}", **headers)

    def answer(self, handler):
        if handler.path.startswith("/token"):
            return self.give_token(handler)
        if self.tokens is not None:
            sent = handler.headers.get("Authorization", "")
            if sent.removeprefix("Bearer ") not in self.tokens.values():
                challenge = f'Bearer realm="http://{self.address}/token",service="hostile"'
                more = {"WWW-Authenticate": 'Basic realm="hostile"'} if self.passwords_too else {}
                return self.refuse(handler, 401, "UNAUTHORIZED", "who are you", WWW_Authenticate=challenge, **more)
        if self.realm is not None:
            challenge = f'Bearer realm="{self.realm}",service="hostile"'
            return self.refuse(handler, 401, "UNAUTHORIZED", "who are you", WWW_Authenticate=challenge)
        if self.redirect is not None:
            return self.send(handler, 302, b"", Location=self.redirect)
        if "/manifests/" in handler.path:
            if status := self.manifest_answers.pop(0) if self.manifest_answers else None:
                return self.trouble(handler, status)
            by_digest = handler.path.endswith(self.image.digest)
            if by_digest and self.wrong_manifest:
                return self.send(handler, 200, self.image.manifest + b" ")
            indexed = self.indexed and not by_digest
            return self.send(handler, 200, self.index() if indexed else self.image.manifest)
        return self.give_blob(handler, handler.path.rpartition("/")[2])

    def give_token(self, handler):
        import base64
        sent = handler.headers.get("Authorization", "").removeprefix("Basic ")
        token = self.tokens.get(base64.b64decode(sent).decode())
        if token is None:
            return self.refuse(handler, 401, "UNAUTHORIZED", "no such user")
        return self.send(handler, 200, json.dumps({"token": token}).encode())

    def give_blob(self, handler, name):
        data = self.image.blobs.get(name)
        if data is None:
            return self.refuse(handler, 404, "BLOB_UNKNOWN", "no such blob")
        if handler.headers.get("Range") and self.range_answer:
            return self.trouble(handler, self.range_answer)
        if name in self.silent_blobs:
            self.ended.wait()
            return None
        if name in self.wrong_blobs:
            data = bytes([data[0] ^ 1]) + data[1:]
        begin = 0
        if wanted := handler.headers.get("Range"):
            self.ranges.append(wanted)
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        rest = data[begin:]
        handler.send_response(206 if begin else 200)
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(rest)))
        handler.end_headers()
        if name in self.cut_blobs:
            self.cut_blobs.discard(name)
            rest = rest[:len(rest) // 2]
            handler.close_connection = True
        handler.wfile.write(rest)
        return None
