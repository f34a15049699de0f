"""Images made on this machine: busybox as a root, in OCI's layout, and pushed to a registry.

Python's standard library only. Used by test_images and tools that measure.
"""

import base64
import gzip
import hashlib
import http.client
import io
import json
import os
import shutil
import tarfile
import urllib.parse
from pathlib import Path

BUSYBOX = "/bin/busybox"
TOOLS = ("sh", "cat", "echo", "env", "id", "ls", "pwd", "sleep", "true", "false", "touch")
PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar(files):
    """A tar file of {path: bytes, or (mode, bytes), or a link's target as text}; (mode, None) is a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            mode, content = content if isinstance(content, tuple) else (0o644, content)
            info.mode = mode
            if content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def base_layer():
    files = {"bin/busybox": (0o755, Path(BUSYBOX).read_bytes())}
    files.update({f"bin/{tool}": "/bin/busybox" for tool in TOOLS})
    files["etc/passwd"] = PASSWD.encode()
    files["etc/group"] = b"root:x:0:\nextra:x:44:app\n"
    return tar(files)


class Image:
    """Blobs of one image: `layers` are tar files, which are packed here."""

    def __init__(self, layers, architecture=ARCHITECTURE, level=1, **config):
        self.blobs = {}
        packed = [gzip.compress(layer, level, mtime=0) for layer in layers]
        document = {"os": "linux", "architecture": architecture, "config": config,
                    "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}
        self.layers = [self.add("application/vnd.oci.image.layer.v1.tar+gzip", data) for data in packed]
        config_blob = self.add("application/vnd.oci.image.config.v1+json", json.dumps(document).encode())
        self.manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config_blob,
                                    "layers": self.layers}).encode()
        self.digest = digest(self.manifest)

    def add(self, media_type, data):
        self.blobs[digest(data)] = data
        return {"mediaType": media_type, "digest": digest(data), "size": len(data)}

    def write(self, directory, tag="latest"):
        """As a directory in OCI's layout."""
        blobs = Path(directory) / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        for name, data in {**self.blobs, self.digest: self.manifest}.items():
            (blobs / name.partition(":")[2]).write_bytes(data)
        entry = {"mediaType": MANIFEST, "digest": self.digest, "size": len(self.manifest),
                 "annotations": {"org.opencontainers.image.ref.name": tag}}
        (Path(directory) / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        (Path(directory) / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def push(self, address, repository, tag, user=None, context=None):
        """To a registry at HOST:PORT; `user` is NAME:PASSWORD, `context` makes it TLS."""
        headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}

        def send(method, path, body=b"", **more):
            maker = http.client.HTTPSConnection if context else http.client.HTTPConnection
            connection = maker(address, timeout=60, **({"context": context} if context else {}))
            connection.request(method, path, body=body, headers={**headers, **more})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status}")
            return answer

        for name, data in self.blobs.items():
            where = send("POST", f"/v2/{repository}/blobs/uploads/").getheader("Location")
            parts = urllib.parse.urlsplit(where)
            query = f"{parts.query}&" if parts.query else ""
            send("PUT", f"{parts.path}?{query}digest={urllib.parse.quote(name)}", data,
                 **{"Content-Type": "application/octet-stream"})
        send("PUT", f"/v2/{repository}/manifests/{tag}", self.manifest, **{"Content-Type": MANIFEST})


def with_layer(directory, to, layer, env):
    """Writes to `to` the only image of a layout with one layer more; the blobs are shared, not copied."""
    blobs = Path(directory) / "blobs" / "sha256"

    def read(entry):
        return json.loads((blobs / entry["digest"].partition(":")[2]).read_text())
    manifest = read(json.loads((Path(directory) / "index.json").read_text())["manifests"][0])
    document = read(manifest["config"])
    image = Image([layer])
    document["rootfs"]["diff_ids"].append(digest(layer))
    document["config"]["Env"] = [*document["config"].get("Env", []), *env]
    config = image.add("application/vnd.oci.image.config.v1+json", json.dumps(document).encode())
    layers = [*manifest["layers"], *image.layers]
    image.manifest = json.dumps({**manifest, "config": config, "layers": layers}).encode()
    image.digest = digest(image.manifest)
    image.write(to)
    for entry in manifest["layers"]:
        name = entry["digest"].partition(":")[2]
        try:
            os.link(blobs / name, Path(to) / "blobs" / "sha256" / name)
        except OSError:  # another file system
            shutil.copyfile(blobs / name, Path(to) / "blobs" / "sha256" / name)


def busybox(*more_layers, **config):
    return Image([base_layer(), *more_layers], **config)
