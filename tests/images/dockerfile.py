"""What deploy/container/Dockerfile makes, without a container engine: its steps in a root that debootstrap made.

It knows the instructions that this file uses, and refuses others. `dockerfile.py CONTEXT DIR` writes the image to DIR
in OCI's layout; CONTEXT has the package that `tools/deb` makes.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import debian
import layout

DOCKERFILE = debian.ROOT / "deploy" / "container" / "Dockerfile"
BASE = "debian:12-slim"


class Failed(Exception):
    """A step of the Dockerfile failed."""


def instructions(text):
    """(WORD, the rest), with lines joined that end with a backslash."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines()]


def unpack_base(root):
    folder = debian.image("base")
    blobs = folder / "blobs" / "sha256"

    def blob(entry):
        return blobs / entry["digest"].partition(":")[2]
    manifest = json.loads(blob(json.loads((folder / "index.json").read_text())["manifests"][0]).read_text())
    for entry in manifest["layers"]:
        with tarfile.open(blob(entry)) as archive:
            archive.extractall(root, numeric_owner=True)  # made here
    for name in ("dev", "proc"):
        (root / name).mkdir(exist_ok=True)


def copy(root, context, words):
    *sources, target = words.split()
    for pattern in sources:
        found = sorted(context.glob(pattern))
        if not found:
            raise Failed(f"COPY {pattern}: {context} has none")
        for path in found:
            shutil.copy(path, root / target.lstrip("/"))


def run_in(root, script):
    """As `docker build` does: with devices and /proc, which do not become part of the image."""
    place = shlex.quote(str(root))
    inner = (f"mount --make-rprivate / && mount -t tmpfs none {place}/dev && mkdir -p {place}/dev/shm && "
             + " && ".join(f"touch {place}/dev/{name} && mount --bind /dev/{name} {place}/dev/{name}"
                           for name in ("null", "zero", "full", "random", "urandom", "tty"))
             + f" && mount -t proc proc {place}/proc && cp /etc/resolv.conf {place}/etc/resolv.conf"
             f" && exec chroot {place} /bin/sh -c {shlex.quote(script)}")
    env = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", inner], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=debian.LIMIT_S, check=False)
    if done.returncode != 0:
        raise Failed(f"RUN {script}: exit status {done.returncode}\n{done.stdout[-2000:]}")


def build(context, directory):
    """Writes the image to `directory`; its layer is the whole root."""
    config = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    with debian.scratch() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        for word, rest in instructions(DOCKERFILE.read_text()):
            if word == "FROM" and rest == BASE:
                unpack_base(root)
            elif word == "COPY":
                copy(root, Path(context), rest)
            elif word == "RUN":
                run_in(root, rest)
            elif word == "ENV":
                config["Env"] += shlex.split(rest)
            elif word == "USER":
                config["User"] = rest
            elif word == "EXPOSE":
                config.setdefault("ExposedPorts", {})[f"{rest}/tcp"] = {}
            elif word in ("ENTRYPOINT", "CMD"):
                config["Cmd" if word == "CMD" else "Entrypoint"] = json.loads(rest)
            else:
                raise Failed(f"{DOCKERFILE}: {word} {rest} is not known here")
        layout.Image([debian.root_layer(root)], **config).write(directory)
    return directory


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: dockerfile.py CONTEXT DIR")
    try:
        print(build(*sys.argv[1:]))
    except (debian.CannotBeHad, Failed) as why:
        sys.exit(str(why))
