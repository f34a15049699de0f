"""The engines that run containers, each as the table of cases needs it: how to start a cluster on it, how to give it an
image, and what of the table it does differently on this machine.

`SWELL_ENGINES=process` chooses among them; by default all that this machine has.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SWELL = str(Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin")) / "swell")
LIMIT_S = 240


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **more)


def must(done):
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(done.args)}: {done.stderr or done.stdout}")
    return done.stdout


@dataclass
class Process:
    """Swell's own: containers are processes of this machine."""

    name = "process"
    data: Path

    @staticmethod
    def missing():
        """Why this machine cannot run the table; empty if it can."""
        if os.geteuid() != 0:
            return "needs root"
        if not os.path.exists("/bin/busybox") or not shutil.which("kubectl"):
            return "needs busybox-static and kubectl"
        return ""

    def up(self):
        must(run(SWELL, "up", "--detach", "--data-dir", self.data, "--runtime", "process", "--nodes", "1",
                 "--gpus-per-node", "2"))

    def down(self):
        run(SWELL, "down", "--data-dir", self.data)

    def load(self, layout, name):
        """Makes the image in the directory `layout` known by this name."""
        must(run(SWELL, "images", "import", f"oci:{layout}", "--name", name, "--data-dir", self.data))

    def seccomp(self, name, text):
        """Puts a profile where `Localhost` finds it."""
        folder = self.data / "seccomp"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    @property
    def kubeconfig(self):
        return self.data / "kubeconfig"


ENGINES = {engine.name: engine for engine in (Process,)}


def chosen():
    names = os.environ.get("SWELL_ENGINES", "")
    unknown = set(filter(None, names.split(","))) - set(ENGINES)
    if unknown:
        raise SystemExit(f"SWELL_ENGINES: no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    return [ENGINES[name] for name in names.split(",") if name] or list(ENGINES.values())
