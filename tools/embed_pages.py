#!/usr/bin/env python3
"""Lays the built pages (web/dist) into the program: one C++ file with each of them gzip'd.

  tools/embed_pages.py DIST OUT.cc     a folder that is missing or empty makes a program without pages

The same input gives the same output, byte for byte. Python's standard library only.
"""

import gzip
import hashlib
import os
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
BYTES_A_LINE = 24


def files_of(folder):
    """(path, content) of what is served, in order. Source maps are for developers and stay outside."""
    found = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            if name.startswith(".") or name.endswith(".map"):
                continue
            full = os.path.join(at, name)
            with open(full, "rb") as f:
                found.append(("/" + os.path.relpath(full, folder), f.read()))
    return sorted(found)


def literal(content):
    """A C++ string literal in pieces. Octal escapes of three digits end by themselves."""
    pieces = []
    for begin in range(0, len(content), BYTES_A_LINE):
        escaped = "".join(f"\\{byte:03o}" for byte in content[begin:begin + BYTES_A_LINE])
        pieces.append(f'    "{escaped}"')
    return "\n".join(pieces) or '    ""'


def main():
    """Writes the file only when it changes, so that nothing is compiled for nothing."""
    folder, out = sys.argv[1:]
    lines = ['// Made by tools/embed_pages.py.', '#include "ui/static_files.h"', "",
             "namespace swell::ui {", "", "const StaticFiles& EmbeddedPages() {",
             "  static const StaticFiles files = {"]
    for path, content in files_of(folder):
        packed = gzip.compress(content, 9, mtime=0)
        tag = hashlib.sha256(content).hexdigest()[:16]
        kind = TYPES.get(os.path.splitext(path)[1], "application/octet-stream")
        lines += [f'      {{"{path}", "{kind}", "\\"{tag}\\"",', "       std::string_view(",
                  f"{literal(packed)}, {len(packed)})}},"]
    lines += ["  };", "  return files;", "}", "", "}  // namespace swell::ui", ""]
    text = "\n".join(lines)
    try:
        with open(out, encoding="utf-8") as f:
            if f.read() == text:
                os.utime(out)
                return
    except OSError:
        pass
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
