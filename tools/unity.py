#!/usr/bin/env python3
"""Which source files one compiler run may take together, for cmake/component.cmake (SWELL_UNITY).

What a file keeps to itself, in an unnamed namespace, as an alias or as a macro, is seen by the files that are compiled
with it, and so are the headers that it includes. So two files share a batch only when neither mentions, nor has from a
header, a name that the other keeps to itself: together they then mean what they mean apart. Files come in the order
given and go to the first batch that has room, so an edit moves a file only when it makes it clash.

  tools/unity.py MOST FILE...   prints the number of each file's batch, in the order given; at most MOST to a batch

Python's standard library only.
"""

import functools
import re
import sys
from pathlib import Path

_SOURCES = Path(__file__).resolve().parents[1] / "src"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_TEXT = re.compile(
    r'R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/|\[\[.*?\]\]\s*', re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ALIAS = re.compile(r"(?:using\s+(\w+)\s*=|using\s+(?:\w+::)+(\w+)\s*;|namespace\s+(\w+)\s*=|#define\s+(\w+))")
_TYPE = re.compile(r"(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)")
_NOT_A_DECLARATION = ("template", "namespace", "extern", "using namespace", "TEST", "INSTANTIATE_TEST")
# Neither a member's name nor one of another namespace or class can mean what a file keeps to itself.
_ALONE = re.compile(r"(?<!\.)(?<!->)(?<!::)\b[A-Za-z_]\w*")
_NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
_MACRO = "#define"
# Lines that a declaration's head may be spread over.
_HEAD_LINES = 6


def without_text(code):
    """Without comments, attributes and what stands in quotes; lines stay where they were."""
    return _TEXT.sub(lambda found: "\n" * found.group().count("\n"), code)


def declared(head):
    """The name that a declaration at the left margin declares, or None."""
    found = _TYPE.match(head)
    if found:
        return found.group(1)
    # What stands in angle brackets may have parentheses of its own.
    depth, kept = 0, []
    for character in head:
        depth += (character == "<") - (character == ">" and depth > 0)
        if depth == 0 and character != ">":
            kept.append(character)
    words = _WORD.findall(re.split(r"[({=;\[]", "".join(kept), maxsplit=1)[0])
    return words[-1] if words else None


def private(code):
    """{name: the alias that it is, or None} of what the file keeps to itself."""
    names, unnamed = {}, False
    lines = without_text(code).splitlines()
    for number, (line, written) in enumerate(zip(lines, code.splitlines())):
        if line.startswith("namespace {"):
            unnamed = True
        elif written == "}  // namespace":  # as clang-format closes one without a name
            unnamed = False
        elif found := _ALIAS.match(line):
            names[next(name for name in found.groups() if name)] = line
        elif (unnamed or line.startswith("static ")) and _WORD.match(line):
            if not line.startswith(_NOT_A_DECLARATION):
                name = declared("\n".join(lines[number : number + _HEAD_LINES]))
                if name:
                    names[name] = None
    return names


def at_margin(code):
    """The names that a header declares for all who include it."""
    lines = without_text(code).splitlines()
    heads = ("\n".join(lines[number : number + _HEAD_LINES]) for number, line in enumerate(lines) if _WORD.match(line))
    return {declared(head) for head in heads} | {word for found in _ALIAS.findall(code) for word in found}


@functools.cache
def header(name):
    """(namespaces, names declared, headers included) of one of Swell's headers."""
    path = _SOURCES / name
    code = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(_NAMESPACE.findall(code)), frozenset(at_margin(code) - {None, ""}), tuple(_INCLUDE.findall(code))


def from_headers(code, namespaces):
    """The names of these namespaces that a file has from Swell's headers, whichever includes which."""
    names, seen, ahead = set(), set(), _INCLUDE.findall(code)
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            spaces, declares, includes = header(name)
            names |= declares if spaces & namespaces else set()
            ahead.extend(includes)
    return names


class File:
    def __init__(self, code):
        text = without_text(code)
        namespaces = set(_NAMESPACE.findall(code))
        inner = "|".join(name.rsplit("::", 1)[-1] for name in namespaces)
        self.words = set(_WORD.findall(text))  # what a macro can change
        self.names = set(_ALONE.findall(text)) | set(re.findall(rf"\b(?:{inner})::(\w+)", text))
        self.names |= from_headers(code, namespaces)
        self.private = private(code)
        self.directives = set(re.findall(r"^using namespace .*", text, re.MULTILINE))

    def clashes(self, other):
        return self.directives != other.directives or self._shows(other) or other._shows(self)

    def _shows(self, other):
        """Whether the other mentions what is this file's own; the same alias in both does not count."""
        return any(
            name in (other.words if (alias or "").startswith(_MACRO) else other.names)
            and not (alias and alias == other.private.get(name))
            for name, alias in self.private.items()
        )


def batches(files, most):
    """The number of each file's batch."""
    rooms, numbers = [], []
    for file in files:
        for number, room in enumerate(rooms):
            if len(room) < most and not any(map(file.clashes, room)):
                room.append(file)
                break
        else:
            number = len(rooms)
            rooms.append([file])
        numbers.append(number)
    return numbers


def main():
    most, *paths = sys.argv[1:]
    files = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            files.append(File(file.read()))
    print(*batches(files, int(most)))


if __name__ == "__main__":
    main()
