"""Debian with Python as an image in OCI's layout, made by debootstrap from the machine's own mirror.

It takes a minute or two and is kept below ~/.cache/swell, so a machine makes it once.
"""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import uuid
from pathlib import Path

import layout

SUITE = "bookworm"
MIRROR = os.environ.get("SWELL_DEBIAN_MIRROR", "http://deb.debian.org/debian")
PACKAGES = "python3-minimal,libpython3-stdlib"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "swell" / "images" / f"debian-{SUITE}-python"
LIMIT_S = 900
# What an image has no use for: devices are the container's own, and packages are installed.
LEFT_OUT = ("./dev/", "./var/cache/apt/", "./var/lib/apt/lists/", "./usr/share/doc/", "./usr/share/man/",
            "./usr/share/locale/")


class CannotBeHad(Exception):
    """This machine cannot make the image, in words."""


def scratch():
    """Debootstrap waits for the disk after each file: in memory it is several times as fast."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    return tempfile.TemporaryDirectory(prefix="swell-debian-", dir=memory if roomy else None)


def root_layer(root):
    """The files below `root` as a tar file."""
    out = io.BytesIO()

    def kept(info):
        name = "./" + info.name.removeprefix("./")
        return None if name.startswith(LEFT_OUT) or info.ischr() or info.isblk() else info

    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(root, arcname=".", filter=kept)
    return out.getvalue()


def make(directory):
    if os.geteuid() != 0:
        raise CannotBeHad("debootstrap needs root")
    if not shutil.which("debootstrap"):
        raise CannotBeHad("debootstrap is not installed (apt install debootstrap)")
    with scratch() as folder:
        root = Path(folder) / "root"
        try:
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), MIRROR]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise CannotBeHad(f"debootstrap took longer than {LIMIT_S} s") from late
        if done.returncode != 0:
            # A machine without a mirror; the last lines say which package or address it was.
            raise CannotBeHad("debootstrap: " + " ".join(done.stdout.splitlines()[-2:]))
        layout.Image([root_layer(root)], Cmd=["/bin/bash"], Env=["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]).write(directory)


def image():
    """The directory of the layout."""
    if not (CACHE / "oci-layout").exists():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        fresh = CACHE.parent / f".{uuid.uuid4()}"
        try:
            make(fresh)
            fresh.rename(CACHE)
        except OSError:
            if not (CACHE / "oci-layout").exists():  # else another run was faster
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    json.loads((CACHE / "index.json").read_text())
    return CACHE
