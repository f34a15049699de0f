"""Debian as an image in OCI's layout, made by debootstrap from the machine's own mirror: with Python, torch or MPI.

It takes a minute or two (with Open MPI some five; with torch some ten, and 3 GB of memory) and is kept below
~/.cache/swell, so a machine makes it once. `debian.py torch DIR` writes the image with torch, the SDK of this tree and
what the walkthroughs need to DIR.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid
from pathlib import Path

import layout

SUITE = "bookworm"
MIRROR = os.environ.get("SWELL_DEBIAN_MIRROR", "http://deb.debian.org/debian")
PACKAGES = {"base": "apt", "python": "python3-minimal,libpython3-stdlib",
            "torch": "python3-torch,dataset-fashion-mnist", "mpi": "openssh-server,openssh-client,openmpi-bin"}
IMAGES = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "swell" / "images"
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 1800
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


def make(directory, what):
    if os.geteuid() != 0:
        raise CannotBeHad("debootstrap needs root")
    if not shutil.which("debootstrap"):
        raise CannotBeHad("debootstrap is not installed (apt install debootstrap)")
    with scratch() as folder:
        root = Path(folder) / "root"
        try:
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES[what]}", SUITE, str(root), MIRROR]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise CannotBeHad(f"debootstrap took longer than {LIMIT_S} s") from late
        if done.returncode != 0:
            # A machine without a mirror; the last lines say which package or address it was.
            raise CannotBeHad("debootstrap: " + " ".join(done.stdout.splitlines()[-2:]))
        layout.Image([root_layer(root)], Cmd=["/bin/bash"], Env=["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]).write(directory)


def cached(what):
    return IMAGES / f"debian-{SUITE}-{what}"


def image(what="python"):
    """The directory of the layout."""
    cache = cached(what)
    if not (cache / "oci-layout").exists():
        IMAGES.mkdir(parents=True, exist_ok=True)
        fresh = IMAGES / f".{uuid.uuid4()}"
        try:
            make(fresh, what)
            fresh.rename(cache)
        except OSError:
            if not (cache / "oci-layout").exists():  # else another run was faster
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    json.loads((cache / "index.json").read_text())
    return cache


def sdk_layer():
    """The SDK of this tree where Debian's Python finds it, and `python` as training scripts call it."""
    sdk = ROOT / "sdk" / "python"
    files = {f"usr/lib/python3/dist-packages/{path.relative_to(sdk)}": path.read_bytes()
             for path in sorted((sdk / "swell").rglob("*.py"))}
    return layout.tar({**files, "usr/bin/python": "/usr/bin/python3"})


def walkthrough_image(directory):
    """The image with torch and this tree's SDK, as a layout; its large layer is the cached one."""
    # As walkthrough 1 sets them for a demonstration.
    env = ["PYTHONUNBUFFERED=1", "SWELL_MNIST_SAMPLES=576", "SWELL_MNIST_STEP_SECONDS=0.025"]
    layout.with_layer(image("torch"), directory, sdk_layer(), env)
    return directory


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "torch":
        sys.exit("usage: debian.py torch DIR")
    try:
        print(walkthrough_image(sys.argv[2]))
    except CannotBeHad as why:
        sys.exit(str(why))
