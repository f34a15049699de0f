#!/usr/bin/env python3
"""Writes docs/reference from what the program itself says, so that it cannot be out of date.

  tools/reference.py --swell build/bin/swell            write the pages
  tools/reference.py --swell build/bin/swell --check    fail where a page differs from what would be written

  commands-*.md  every command with its help, asked of the program
  manifests.md   fields of Swell's kinds, from src/kube/api/schemas/crds.txt
  metrics.md     metrics, from their declarations in src
  events.md      reasons of events with meaning and remedy, from tools/event_reasons.txt; a reason that the sources
                 record and the file lacks is an error
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = os.path.join(ROOT, "docs", "reference")
GENERATED = "<!-- Written by tools/reference.py. -->\n\n"
FRONT_ENDS = ["swell", "arena", "runai", "elasticdl", "slurm"]
# What the index says of the pages that are not of commands.
CONTENTS = {
    "events.md": "the reasons of events, what they mean and what to do",
    "manifests.md": "the fields of Swell's kinds and of the jobs that it runs",
    "metrics.md": "what Prometheus can read",
}


def sources():
    """(path, text) of every source file that is not a test."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "src"))):
        for name in sorted(names):
            if name.endswith((".cc", ".h")) and not re.search(r"_(?:test|test_util|bench|fuzz|fixture)\.", name):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    yield path, f.read()


def help_of(swell, words):
    env = dict(os.environ, COLUMNS="100", HOME="/nonexistent", KUBECONFIG="", NO_COLOR="1")
    for name in ("SWELL_DATA_DIR", "SWELL_CHECKPOINT_DIR"):
        env.pop(name, None)
    run = subprocess.run([swell] + words + ["--help"], env=env, capture_output=True, text=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"reference: {' '.join([swell] + words)} --help failed: {run.stderr.strip()}")
    return run.stdout


def children(text):
    """The sub-commands that a help text lists: indented names below a heading, where it has COMMAND or [COMMAND]."""
    if not re.search(r"(?m)^  \S.* \[?COMMAND", text):
        return []
    found = []
    heading = ""
    for line in text.splitlines():
        if re.match(r"[A-Z].*:$", line):
            heading = line
        match = re.match(r"  ([a-z][a-z-]*)(?:, [a-z-]+)*  +\S", line)
        if match and "flags" not in heading.lower() and heading not in ("Usage:", "Examples:"):
            found.append(match.group(1))
    return found


def commands_page(swell, front_end):
    first = [] if front_end == "swell" else [front_end]
    out = [f"# {front_end}\n"]
    queue = [first]
    while queue:
        words = queue.pop(0)
        text = help_of(swell, words)
        name = " ".join([front_end] + words[len(first):])
        if words != first:
            out.append(f"## {name}\n")
        out.append("```\n" + text.rstrip() + "\n```\n")
        below = [words + [child] for child in children(text)]
        if front_end == "swell" and not words:
            below = [one for one in below if one[0] not in FRONT_ENDS]
        queue = below + queue
    return "\n".join(out)


def schema_types(text):
    """(name, package) of a type -> (description, [(field, type, notes, description)]) of a schema text."""
    types = {}
    package = current = None
    for line in text.splitlines():
        if line.startswith("package "):
            package = line.split()[1]
        match = re.match(r"type (\w+)([^:]*): (.*)", line)
        if match:
            other = re.search(r"\bwith=(\w+)", match.group(2))
            current = list(types[other.group(1), package][1]) if other else []
            types[match.group(1), package] = (match.group(3), current)
            continue
        match = re.match(r"  (\S+) (\[[^\]]*\]|\{[^}]*\}|\S+?)((?: [^:]*)?): (.*)", line)
        if match and current is not None:
            current.append(match.groups())
        elif line.strip() and not line.startswith(" "):
            current = None
    return types


def api_group(package):
    """training.kubedl.io of the package io.kubedl.training.v1alpha1."""
    return ".".join(reversed(package.split(".")[:-1]))


def manifests_page():
    with open(os.path.join(ROOT, "src/kube/api/schemas/crds.txt"), encoding="utf-8") as f:
        types = schema_types(f.read())
    out = ["# Manifests\n",
           "The fields of the kinds that Swell defines. `kubectl explain KIND.spec` says the same. Kinds of",
           "other projects (PyTorchJob, TrainJob, Volcano's Job and others) have the fields of their own",
           "documentation.",
           "A field marked * is required.\n"]
    names = [name for name, _ in types]
    for name, package in sorted(types):
        text, fields = types[name, package]
        if not fields:
            continue
        heading = name if names.count(name) == 1 else f"{name} ({api_group(package)})"
        out += [f"## {heading}\n", text + "\n", "| field | type | meaning |", "|---|---|---|"]
        for field, kind, notes, meaning in fields:
            required = "*" if field.endswith("!") else ""
            extra = notes.strip().replace("|", ", ")
            shown = f"`{kind}`" + (f"; {extra}" if extra else "")
            out.append(f"| `{field.rstrip('!')}`{required} | {shown} | {meaning.replace('|', ', ')} |")
        out.append("")
    return "\n".join(out)


METRIC = re.compile(r'"((?:swell|apiserver|workqueue|process|leader_election|store)_[a-z0-9_]+)",'
                    r'(?:\s*(?:MetricType::)?k\w+,)?\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def metrics_page():
    found = {}
    for _, text in sources():
        for name, literals in METRIC.findall(text):
            meaning = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
            if " " in meaning:
                found.setdefault(name, meaning)
    out = ["# Metrics\n", "Exported in Prometheus' format; [operations](../operations.md) says where.\n"]
    out += ["| metric | meaning |", "|---|---|"]
    out += [f"| `{name}` | {found[name]} |" for name in sorted(found)]
    return "\n".join(out) + "\n"


def events_page():
    with open(os.path.join(ROOT, "tools/event_reasons.txt"), encoding="utf-8") as f:
        lines = [line for line in f if line.strip() and not line.startswith("#")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    known = {row[0] for row in rows}
    missing = set()
    for _, text in sources():
        recorded = re.findall(r'"(?:Normal|Warning)",\s*"([A-Z]\w+)"', text)
        recorded += re.findall(r'Event\(\) const override \{ return "([A-Z]\w+)"', text)
        recorded += re.findall(r'constexpr std::string_view k\w*Event = "([A-Z]\w+)"', text)
        recorded += re.findall(r'\.Finish\(\s*"Failed",\s*"([A-Z]\w+)"', text)
        recorded += re.findall(r'\bRetry(?:Fetch)?\("([A-Z]\w+)"', text)
        missing.update(set(recorded) - known)
    if missing:
        sys.exit("reference: tools/event_reasons.txt lacks: " + ", ".join(sorted(missing)))
    out = ["# Events\n",
           "Reasons that Swell records, what they mean and what to do. `swell events JOB` shows a job's.\n",
           "| reason | on | meaning | what to do |", "|---|---|---|---|"]
    out += ["| `%s` | %s | %s | %s |" % tuple(row) for row in sorted(rows)]
    return "\n".join(out) + "\n"


def pages(swell):
    out = {f"commands-{one}.md": commands_page(swell, one) for one in FRONT_ENDS}
    out.update({"manifests.md": manifests_page(), "metrics.md": metrics_page(), "events.md": events_page()})
    index = ["# Reference\n", "Every command, field, event and metric, as the program itself names them.\n"]
    index += [f"- [{text.splitlines()[0].lstrip('# ')}]({name}): {CONTENTS.get(name, 'commands, flags and examples')}"
              for name, text in sorted(out.items())]
    out["README.md"] = "\n".join(index) + "\n"
    return {name: GENERATED + text.rstrip("\n") + "\n" for name, text in out.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swell", required=True, help="the program to ask")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    differing = []
    os.makedirs(PAGES, exist_ok=True)
    wanted = pages(os.path.abspath(arguments.swell))
    for name, text in wanted.items():
        path = os.path.join(PAGES, name)
        try:
            with open(path, encoding="utf-8") as f:
                old = f.read()
        except FileNotFoundError:
            old = None
        if old != text:
            differing.append(name)
            if not arguments.check:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
    if arguments.check and differing:
        print("docs/reference is out of date: " + ", ".join(differing))
        print("Write it again: tools/reference.py --swell build/bin/swell")
        return 1
    print(f"{len(wanted)} pages, {len(differing)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
