#!/usr/bin/env python3
"""Makes what people install without a compiler: package.py PROGRAM OUTPUT_DIR

- swell-VERSION-py3-none-manylinux_X_Y_ARCH.whl: `pip install` puts the program, its front ends and the
  Python SDK into an environment.
- swell-VERSION-linux-ARCH.tar.gz: the same below one folder.
- SHA256SUMS: of both, and of the Debian package where OUTPUT_DIR has one.

The program's shared libraries travel with it (lib/swell, found from the program by $ORIGIN), all but those
of glibc. The wheel's tag names the oldest glibc that all of them run on. The same program gives the same
bytes: times, owners and order are fixed. Called by `./dev package`.
"""
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What every Linux with glibc has, and must come from there.
GLIBC = re.compile(r"^(ld-linux|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|libresolv\.so|linux-vdso)")
FRONT_ENDS = ("arena", "runai", "elasticdl")
# What the program opens by itself when it first pulls an image (docs/adr/0021).
OPENED_LATER = ("libcurl.so.4", "libarchive.so.13", "libisal.so.2")


class PackageError(Exception):
    pass


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise PackageError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(swell VERSION ([0-9.]+)", text).group(1)


def needed_by(file):
    """Paths of the shared libraries that a file needs and a Linux may lack, by their name."""
    found = {}
    for line in run("ldd", file).splitlines():
        words = line.split()
        if "=>" not in words or GLIBC.match(words[0]):
            continue
        if words[2] == "not":
            raise PackageError(f"{file} needs {words[0]}, which is not on this machine")
        found[words[0]] = Path(words[2]).resolve()
    return found


def libraries(program):
    """Those of the program, and those that it opens later with what they need."""
    found = needed_by(program)
    # The first of a name is the one of this machine's own kind of processor.
    listed = re.findall(r"^\s*(\S+) \([^)]*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.M)
    known = dict(reversed(listed))
    for name in OPENED_LATER:
        if name not in known:
            raise PackageError(f"{name} is not on this machine: ./dev setup build")
        found[name] = Path(known[name]).resolve()
        found |= needed_by(found[name])
    return found


def glibc_of(files):
    """The newest version of glibc's symbols that any of the files asks for."""
    versions = {(2, 17)}
    for file in files:
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", file)):
            versions.add((int(major), int(minor)))
    return max(versions)


def owner_package(library):
    """The Debian package that a library came from. Its file may be named by /usr/lib or by /lib."""
    for path in (library, Path("/" + str(library).removeprefix("/usr/"))):
        done = subprocess.run(["dpkg-query", "-S", str(path)], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise PackageError(f"no Debian package owns {library}, so its licence is not known")


def stage(program, tree):
    """Lays out bin, lib/swell and share/swell below tree, as the program finds them from where it is."""
    (tree / "bin").mkdir(parents=True)
    (tree / "lib/swell").mkdir(parents=True)
    licences = tree / "share/doc/swell/licences"
    licences.mkdir(parents=True)
    needed = libraries(program)
    for name, library in needed.items():
        shutil.copyfile(library, tree / "lib/swell" / name)
        run("patchelf", "--set-rpath", "$ORIGIN", tree / "lib/swell" / name)
        package = owner_package(library)
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", licences / package)
    swell = tree / "bin/swell"
    shutil.copyfile(program, swell)
    run("strip", swell)
    run("patchelf", "--set-rpath", "$ORIGIN/../lib/swell", swell)
    for name in FRONT_ENDS:
        (tree / "bin" / name).write_text(
            f'#!/bin/sh\nexec "$(dirname -- "$(readlink -f -- "$0")")/swell" {name} "$@"\n')
    for file in sorted((ROOT / "sdk/python/swell").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            target = tree / "share/swell/python/swell" / file.relative_to(ROOT / "sdk/python/swell")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    for name in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, tree / "share/doc/swell" / name)
    return glibc_of([swell, *sorted((tree / "lib/swell").iterdir())])


def files_of(tree):
    return sorted(file for file in tree.rglob("*") if file.is_file())


def mode_of(path):
    return 0o755 if path.startswith("bin/") or "/scripts/" in path else 0o644


def write_tarball(tree, folder, target):
    """A tar without times and owners, in a gzip without a name and a time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in files_of(tree):
            path = str(file.relative_to(tree))
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mode = file.stat().st_size, mode_of(path)
            with file.open("rb") as content:
                tar.addfile(entry, content)
    with target.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(raw.getvalue())


def metadata(number):
    return (f"Metadata-Version: 2.1\nName: swell\nVersion: {number}\n"
            "Summary: Shares GPUs between training jobs: a whole cluster in one program, and its Python SDK\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
            + (ROOT / "README.md").read_text())


def write_wheel(tree, number, tag, target):
    """A wheel (PEP 427): programs as scripts, libraries and the SDK for pods as data, the SDK as a package."""
    name = f"swell-{number}"
    entries = {}
    for file in files_of(tree):
        path = str(file.relative_to(tree))
        content = file.read_bytes()
        if path.startswith("bin/"):
            entries[f"{name}.data/scripts/{path[4:]}"] = content
        else:
            entries[f"{name}.data/data/{path}"] = content
        if path.startswith("share/swell/python/"):
            entries[path.removeprefix("share/swell/python/")] = content
    info = f"{name}.dist-info"
    entries[f"{info}/METADATA"] = metadata(number).encode()
    entries[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: swell tools/package.py\n"
                                f"Root-Is-Purelib: false\nTag: py3-none-{tag}\n").encode()
    record = io.StringIO()
    for path in sorted(entries):
        digest = base64.urlsafe_b64encode(hashlib.sha256(entries[path]).digest()).decode().rstrip("=")
        record.write(f"{path},sha256={digest},{len(entries[path])}\n")
    record.write(f"{info}/RECORD,,\n")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path in [*sorted(entries), f"{info}/RECORD"]:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode_of(path)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, entries.get(path, record.getvalue().encode()))


def write_sums(out):
    kinds = (".whl", ".tar.gz", ".deb")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
             for file in sorted(out.iterdir()) if file.name.endswith(kinds)]
    (out / "SHA256SUMS").write_text("".join(lines))


def main(program, out):
    program, out = Path(program).resolve(), Path(out)
    if not os.access(program, os.X_OK):
        raise PackageError(f"{program} is not a program: build it first (./dev build)")
    out.mkdir(parents=True, exist_ok=True)
    number, machine = version(), os.uname().machine
    with tempfile.TemporaryDirectory(prefix="swell-package-") as folder:
        tree = Path(folder) / "tree"
        major, minor = stage(program, tree)
        tag = f"manylinux_{major}_{minor}_{machine}"
        wheel = out / f"swell-{number}-py3-none-{tag}.whl"
        tarball = out / f"swell-{number}-linux-{machine}.tar.gz"
        write_wheel(tree, number, tag, wheel)
        write_tarball(tree, f"swell-{number}", tarball)
    write_sums(out)
    for file in (wheel, tarball, out / "SHA256SUMS"):
        print(file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (PackageError, OSError) as error:
        sys.exit(f"package: {error}")
