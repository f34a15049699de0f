"""What the walkthroughs' `demo` scripts share: a cluster of their own, real training to run on it, ways to look.

Used by tests/walkthroughs/*/demo. Each makes a Walkthrough with its story and calls main(). What always holds: the
cluster, its data and the temporary folder are gone when the script ends, unless --keep was given.

With --kubeconfig the story is played on a Kubernetes cluster that is there already: `swell install`, `swell controller`
and `swell agent` bring what it lacks, and are taken away at the end.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from play import LIMIT_S, Difference, Stage

ROOT = Path(__file__).resolve().parents[3]


class Walkthrough:
    """A story on a cluster. Subclasses say CLUSTER (flags of `swell up`) and tell the story in play_parts()."""

    CLUSTER = ""
    PARTS = (1, 2)
    NAMESPACES = ("default",)  # where it has its workloads
    TOLD = ("Scheduled", "Preempted", "Reclaimed", "Shrunk", "Grown", "Resumed", "Checkpointed")

    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.data = Path(options.data_dir) if options.data_dir else work / "data"
        environment = dict(os.environ)
        environment["PATH"] = f"{options.bin}:{environment['PATH']}"
        environment["KUBECONFIG"] = os.path.abspath(options.kubeconfig or self.data / "kubeconfig")
        environment["HOME"] = str(work)
        environment["SWELL_DATA_DIR"] = str(self.data)
        self.stage = Stage(environment)
        self.daemons = []

    # --- The stage -------------------------------------------------------------------------------

    def prepare_source(self, url):
        """A document's repository is out of reach here: git's insteadOf points it at one made from examples/."""
        source = self.work / "mnist-pytorch.git"
        shutil.copytree(ROOT / "examples" / "mnist-pytorch", source,
                        ignore=shutil.ignore_patterns("__pycache__"))
        (self.work / ".gitconfig").write_text(
            f'[url "file://{source}"]\n\tinsteadOf = {url}\n[user]\n\tname = demo\n\temail = demo@localhost\n'
            "[safe]\n\tdirectory = *\n")
        for words in (["init", "-q", "-b", "master"], ["add", "."], ["commit", "-q", "-m", "mnist"]):
            subprocess.run(["git", *words], cwd=source, env=self.stage.environment, check=True)

    def start_cluster(self, images=""):
        """`images` is the text of images.yaml: what image names mean on this machine."""
        self.data.mkdir(parents=True, exist_ok=True)
        if images:
            (self.data / "images.yaml").write_text(images)
        if self.options.kubeconfig:
            self.join_cluster()
        else:
            self.stage.type(f"swell up --detach --data-dir {self.data} {self.CLUSTER}",
                            shown=f"swell up --detach {self.CLUSTER}")

    def stop_cluster(self):
        if self.options.kubeconfig:
            self.leave_cluster()
        else:
            self.stage.type(f"swell down --data-dir {self.data}", shown="swell down")

    def join_cluster(self):
        self.stage.type("swell install")
        self.start_daemon("Scheduling for", "controller")
        self.start_daemon("Registered with", "agent", *self.CLUSTER.split(), "--data-dir", str(self.data),
                          "--stop-pods")
        self.stage.wait("the nodes are ready", lambda: all(
            condition["status"] == "True" for node in self.items("nodes")
            for condition in node["status"]["conditions"] if condition["type"] == "Ready"))

    def start_daemon(self, ready, *words):
        """One of swell's commands that run on; it is ready when its output says so."""
        log = self.work / f"{words[0]}.log"
        self.stage.note(f"\n➜ swell {' '.join(words)} &")
        with open(log, "w") as out:
            daemon = subprocess.Popen([f"{self.options.bin}/swell", *words], env=self.stage.environment, stdout=out,
                                      stderr=out)
        self.daemons.append(daemon)

        def is_ready():
            if daemon.poll() is not None:
                raise Difference(f"swell {words[0]} ended:\n{log.read_text()[-2000:]}")
            return ready in log.read_text()
        self.stage.wait(f"swell {words[0]} is ready", is_ready, 60)

    def leave_cluster(self):
        """Takes away what the story put into a cluster that is not its own."""
        ask = self.stage.ask
        for namespace in self.NAMESPACES:
            for kind in ("pytorchjobs.kubeflow.org", "elasticdljobs.elasticdl.org", "trainingjobs.swell.dev", "pods"):
                ask("kubectl", "delete", kind, "--all", "-n", namespace, "--timeout=60s")
            ask("kubectl", "delete", "configmaps", "-l", "createdBy=arena", "-n", namespace)
        self.take_away()
        nodes = [node["metadata"]["name"] for node in self.items("nodes")]
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(LIMIT_S)
        ask("kubectl", "delete", "nodes", *nodes)

    def take_away(self):
        """What else the story put there; controller and agent still run."""

    # --- Looking ---------------------------------------------------------------------------------

    def object(self, kind, name, *more):
        text = self.stage.ask("kubectl", "get", kind, name, "-o", "json", *more)
        return json.loads(text) if text else None

    def items(self, kind, *more):
        text = self.stage.ask("kubectl", "get", kind, "-o", "json", *more)
        return json.loads(text)["items"] if text else []

    def log(self, pod, *more):
        return self.stage.ask("kubectl", "logs", pod, *more)

    def timeline_of(self, title, *scope):
        """Which job ran when, from the jobs' own events."""
        # An event of the newer kind has eventTime only.
        rows = sorted({(event["lastTimestamp"] or event["eventTime"], event["involvedObject"]["name"],
                        event["reason"], event["message"])
                       for event in self.items("events", *scope) if event["reason"] in self.TOLD})
        self.stage.say(f"{title}: who ran when, and what was lost")
        for when, name, reason, message in rows:
            print(f"  {when[11:19]}  {name:36} {reason:20} {message[:110]}")

    # --- The run ---------------------------------------------------------------------------------

    def play_parts(self):
        raise NotImplementedError

    def prepare(self):
        """Before the cluster starts."""

    def play(self):
        try:
            self.prepare()
            self.play_parts()
        finally:
            if not self.options.keep:
                self.stop_cluster()
        self.stage.say(f"The story went as written: {self.stage.elapsed():.0f} s.")


def main(story, description):
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    parser.add_argument("--part", type=int, choices=story.PARTS, help="play only this part")
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="where swell and its front ends are")
    parser.add_argument("--kubeconfig", help="of a Kubernetes cluster to play on; default: a cluster of our own")
    parser.add_argument("--data-dir", help="of the cluster; default: a temporary one")
    parser.add_argument("--image", metavar="LAYOUT", help="train in this image, a directory in OCI's layout "
                                                          "(tests/images/debian.py), not in this machine's programs; "
                                                          "for walkthrough 1")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    work = Path(tempfile.mkdtemp(prefix="swell-demo-"))
    work.chmod(0o755)  # git-sync reads the repository that is made here
    walkthrough = story(options, work)
    try:
        walkthrough.play()
        return 0
    except Difference as difference:
        print(f"\nNot as the story has it: {difference}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"\nexport KUBECONFIG={walkthrough.data}/kubeconfig PATH={options.bin}:$PATH")
            print(f"swell down --data-dir {walkthrough.data}   # when you are done")
        else:
            shutil.rmtree(work, ignore_errors=True)
