"""Plays a walkthrough against a cluster as a person would type it, and checks every step of the story.

A Stage prints each command with its real output, waits for what the story says happens next (with a line of live
progress on a terminal), and ends the run with exit status 1 at the first difference. Used by the walkthroughs'
`demo` scripts; standard library only.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from waiting import LIMIT_S, watched  # noqa: E402


class Difference(Exception):
    """The cluster did something else than the story says."""


class Stage:
    def __init__(self, environment):
        self.environment = environment
        self.live = sys.stdout.isatty() and "CI" not in os.environ
        self.started = time.monotonic()
        colour = self.live and "NO_COLOR" not in os.environ
        self.bold, self.dim, self.green, self.off = (
            ("\033[1m", "\033[2m", "\033[32m", "\033[0m") if colour else ("", "", "", "")
        )

    def say(self, text):
        print(f"\n{self.bold}{text}{self.off}", flush=True)

    def note(self, text):
        print(f"{self.dim}{text}{self.off}", flush=True)

    def type(self, command, quiet=False, expect_failure=False, shown=None):
        """Runs a command line through the shell; prints it and what it printed. Returns its output."""
        if not quiet:
            print(f"\n{self.green}➜{self.off} {self.bold}{shown or command}{self.off}", flush=True)
        done = subprocess.run(
            command, shell=True, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=LIMIT_S, executable="/bin/bash",
        )
        if not quiet:
            print(done.stdout, end="", flush=True)
        if (done.returncode != 0) != expect_failure:
            if quiet:
                print(done.stdout, end="")
            raise Difference(f"exit status {done.returncode} of: {command}")
        return done.stdout

    def ask(self, *command):
        """A command's output without showing it; empty when it failed."""
        done = subprocess.run(command, env=self.environment, text=True, capture_output=True, timeout=LIMIT_S)
        return done.stdout if done.returncode == 0 else ""

    def wait(self, what, condition, seconds=300, progress=None):
        """Asks `condition` until it answers something true, and returns that."""
        answer, took = watched(what, condition, seconds, self.live, progress, (self.dim, self.off))
        if not answer:
            last = f"\n  {progress()}" if progress else ""
            raise Difference(f"waited {seconds} s in vain for: {what}{last}")
        self.note(f"  {what}: after {took:.1f} s")
        return answer

    def check(self, what, holds, detail=""):
        if not holds:
            raise Difference(f"{what}" + (f"\n{detail}" if detail else ""))
        self.note(f"  ✓ {what}")

    def elapsed(self):
        return time.monotonic() - self.started


def same_shape(text, pattern, what, stage):
    """Checks an output against the document's, line by line; a pattern line is a regular expression."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    wanted = pattern.strip("\n").split("\n")
    for number, want in enumerate(wanted):
        got = lines[number] if number < len(lines) else "<nothing>"
        if not re.fullmatch(want, got):
            raise Difference(f"{what}: line {number + 1} is\n  {got}\nwhere the story has\n  {want}")
    stage.check(f"{what}: as the document shows it", len(lines) == len(wanted),
                "more lines than the document:\n" + "\n".join(lines[len(wanted):]))
