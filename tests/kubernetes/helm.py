"""Helm itself, of its Go module, for the tests that install the chart."""

import json
import subprocess

from support import HERE, ROOT, call, run, server_minor

CHART = ROOT / "deploy" / "helm" / "swell"
NAMESPACE = "swell-chart"


OLDEST_MINOR = 34  # that this Helm is for


def missing():
    """Why there is no Helm here; empty if there is. It is made if need be."""
    if server_minor() < OLDEST_MINOR:
        return f"this Helm is for Kubernetes 1.{OLDEST_MINOR} and newer"
    made = subprocess.run([HERE / "build-tool", "helm"], stdout=subprocess.DEVNULL, check=False)
    return "" if made.returncode == 0 else "Helm cannot be built here"


def values(*settings):
    return [word for setting in settings for word in ("--set", setting)]


class Helm:
    """The program, with files of its own below `work`."""

    def __init__(self, work):
        self.program = run(HERE / "build-tool", "--made", "helm").strip() + "/helm"
        self.env = {f"HELM_{what}_HOME": str(work / "helm") for what in ("CACHE", "CONFIG", "DATA")}

    def call(self, *words):
        return call(self.program, *words, env=self.env)

    def run(self, *words):
        return run(self.program, *words, env=self.env)

    def change(self, verb, *words):
        """Changes the release, and waits until its pods are ready."""
        return self.run(verb, "swell", *words, "-n", NAMESPACE, "--wait", "--timeout", "3m")

    def release(self):
        """(revision, status)"""
        found = json.loads(self.run("status", "swell", "-n", NAMESPACE, "-o", "json"))
        return found["version"], found["info"]["status"]
