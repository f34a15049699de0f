"""Debian's docker-registry on loopback, for test_images and tools/bench."""

import crypt
import json
import subprocess
from pathlib import Path

from ports import free_port
from waiting import until


class DockerRegistry:
    """Debian's docker-registry on loopback; `user` is NAME:PASSWORD, `pair` the files of a certificate and its key."""

    def __init__(self, folder, user=None, pair=None):
        folder = Path(folder)
        folder.mkdir()
        self.address = f"localhost:{free_port()}"
        config = {"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
                  "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
                  "http": {"addr": self.address}}
        if user:
            name, _, password = user.partition(":")
            salt = crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)
            (folder / "htpasswd").write_text(f"{name}:{crypt.crypt(password, salt)}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        if pair:
            config["http"]["tls"] = {"certificate": str(pair[0]), "key": str(pair[1])}
        (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML
        with open(folder / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", str(folder / "config.yml")], stdout=log,
                                            stderr=log)

    def push(self, image, repository, tag, **more):
        def pushed():
            try:
                image.push(self.address, repository, tag, **more)
            except OSError:
                return False
            return True
        if not until(pushed, pause=0.1):
            raise RuntimeError("docker-registry does not answer")
        return f"{self.address}/{repository}:{tag}"

    def close(self):
        self.process.terminate()
        self.process.wait()
