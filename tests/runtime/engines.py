"""The engines that run containers, each as the table of cases needs it: how to start a cluster on it, how to give it an
image, and what of the table it does differently on this machine.

`SWELL_ENGINES=process` chooses among them; by default all that this machine has. containerd 2 is here once
`tests/kubernetes/build-tool containerd` has made it.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "images"))

import layout  # noqa: E402
from waiting import until  # noqa: E402

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
    differs = {}  # cases that this engine does not pass, and why
    wants = {}    # what else their spec must say on this engine
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


CNI_DIRS = ("/usr/lib/cni", "/opt/cni/bin")
PAUSE = "runtime/pause:1"


@dataclass
class Cri:
    """The machine's containerd, through the Container Runtime Interface: a process of our own, beside the machine's."""

    name = "cri"
    differs = {
        "user_home_and_directory_of_the_image": "containerd 1.6 gives an image's own user no further groups",
        "groups_of_the_pod_alone": "refused: engines before containerd 2 do not know supplementalGroupsPolicy",
        "exit_by_a_signal": "the command is process 1, which a signal of its own does not end",
        "proc_is_not_masked": "refused: pods have no user ids of their own",
        "sys_is_read_only": "with control groups v1, runc leaves an empty directory above them writable",
        "processes_are_limited": "the interface has no field for it",
    }
    # Its containers have the machine's user ids: root of one is given paths of the machine where that is asked for.
    wants = {name: {"hostUsers": True} for name in (
        "a_path_of_the_machine", "a_path_that_is_a_link_of_the_machine", "a_device_of_the_machine")}
    data: Path

    @classmethod
    def missing(cls):
        if why := Process.missing():
            return why
        if not cls.program("containerd") or not (shutil.which("runc") or shutil.which("crun")):
            return "needs containerd and runc or crun"
        if not any(os.path.exists(f"{folder}/bridge") for folder in CNI_DIRS):
            return "needs the CNI plug-ins (containernetworking-plugins)"
        return ""

    @property
    def home(self):
        return self.data.parent / "containerd"

    @property
    def socket(self):
        return self.home / "containerd.sock"

    @property
    def tag(self):
        """The part of interfaces' names that is this engine's own: engines of several tests may run at once."""
        return self.data.parent.name[-6:]

    def network(self):
        """The pods' network, out of the range in which clusters choose theirs. Another one of this machine contains
        it, as that of another cluster may.
        """
        number = zlib.crc32(self.tag.encode())
        half = f"10.{192 + number % 64}"
        must(run("ip", "link", "add", f"wide{self.tag}", "type", "bridge"))
        must(run("ip", "address", "add", f"{half}.0.1/16", "dev", f"wide{self.tag}"))
        must(run("ip", "link", "set", f"wide{self.tag}", "up"))
        return f"{half}.{1 + number // 64 % 254}.0/24"

    @classmethod
    def program(cls, name):
        """Where it is, None if it is nowhere."""
        return shutil.which(name)

    def ask(self, *words):
        return run(self.program("ctr"), "--address", self.socket, "--namespace", "k8s.io", *words)

    def ctr(self, *words):
        return must(self.ask(*words))

    def start_containerd(self):
        cni = self.home / "cni"
        cni.mkdir(parents=True)
        bridge = {"type": "bridge", "bridge": f"cri{self.tag}", "isGateway": True, "ipam": {
            "type": "host-local", "subnet": self.network(), "dataDir": str(self.home / "leases"),
            "routes": [{"dst": "0.0.0.0/0"}]}}
        (cni / "10-bridge.conflist").write_text(json.dumps(
            {"cniVersion": "0.4.0", "name": f"runtime-{self.tag}", "plugins": [bridge]}))
        plugins = next(folder for folder in CNI_DIRS if os.path.exists(f"{folder}/bridge"))
        runc = shutil.which("runc") or shutil.which("crun")
        (self.home / "config.toml").write_text(self.config(runc, plugins, cni))
        self.run_containerd()

    def handlers(self, plugin, runc):
        return "\n".join(f"""
[plugins."{plugin}".containerd.runtimes.{name}]
  runtime_type = "io.containerd.runc.v2"
[plugins."{plugin}".containerd.runtimes.{name}.options]
  BinaryName = "{runc}"
""" for name in ("runc", "nvidia"))

    def config(self, runc, plugins, cni):
        return f"""
version = 2
root = "{self.home}/root"
state = "{self.home}/state"
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/{PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
{self.handlers("io.containerd.grpc.v1.cri", runc)}
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{plugins}"
  conf_dir = "{cni}"
"""

    def run_containerd(self):
        with open(self.home / "log", "ab") as log:
            self.containerd = subprocess.Popen([self.program("containerd"), "--config", self.home / "config.toml"],
                                               stdout=log, stderr=log, start_new_session=True)
        if not until(lambda: self.ask("version").returncode == 0, 30, pause=0.2):
            raise RuntimeError((self.home / "log").read_text()[-2000:])

    def start_engine(self):
        """containerd with the image that holds a pod's namespaces."""
        self.start_containerd()
        pause = layout.busybox(Entrypoint=["/bin/sleep", "2147483647"])
        pause.write(self.home / "pause")
        self.load(self.home / "pause", PAUSE)

    def up(self):
        self.start_engine()
        must(run(SWELL, "up", "--detach", "--data-dir", self.data, "--runtime", f"cri={self.socket}", "--nodes", "1",
                 "--gpus-per-node", "2"))

    def down(self):
        run(SWELL, "down", "--data-dir", self.data)
        self.stop_engine()

    def stop_engine(self):
        if hasattr(self, "containerd"):
            self.stop_containerd()
        for kind in ("cri", "wide"):
            run("ip", "link", "del", f"{kind}{self.tag}")

    def stop_containerd(self):
        # What a failed test left.
        for kind in ("tasks", "containers"):
            for one in self.ask(kind, "ls", "-q").stdout.split():
                self.ask(kind, "rm", *(["-f"] if kind == "tasks" else []), one)
        self.containerd.terminate()
        self.containerd.wait(30)

    def load(self, folder, name):
        index = json.loads((Path(folder) / "index.json").read_text())
        index["manifests"][0]["annotations"] = {"io.containerd.image.name": f"docker.io/{name}"}
        (Path(folder) / "index.json").write_text(json.dumps(index))
        archive = Path(f"{folder}.tar")
        with tarfile.open(archive, "w") as out:
            for part in ("oci-layout", "index.json", "blobs"):
                out.add(Path(folder) / part, part)
        self.ctr("images", "import", archive)

    def seccomp(self, name, text):
        Process.seccomp(self, name, text)

    @property
    def kubeconfig(self):
        return self.data / "kubeconfig"


class Containerd2(Cri):
    """containerd of today, of its Go module."""

    name = "containerd2"
    differs = {case: why for case, why in Cri.differs.items()
               if case not in ("user_home_and_directory_of_the_image", "groups_of_the_pod_alone")}

    @classmethod
    def program(cls, name):
        done = run(ROOT / "tests" / "kubernetes" / "build-tool", "--made", "containerd")
        return shutil.which(name, path=done.stdout.strip()) if done.returncode == 0 else None

    @classmethod
    def missing(cls):
        if not cls.program("containerd"):
            return "needs containerd 2 (tests/kubernetes/build-tool containerd)"
        return super().missing()

    def config(self, runc, plugins, cni):
        return f"""
version = 3
root = "{self.home}/root"
state = "{self.home}/state"
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "docker.io/{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
{self.handlers("io.containerd.cri.v1.runtime", runc)}
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{plugins}"]
  conf_dir = "{cni}"
"""


ENGINES = {engine.name: engine for engine in (Process, Cri, Containerd2)}


def chosen():
    names = os.environ.get("SWELL_ENGINES", "")
    unknown = set(filter(None, names.split(","))) - set(ENGINES)
    if unknown:
        raise SystemExit(f"SWELL_ENGINES: no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    return [ENGINES[name] for name in names.split(",") if name] or list(ENGINES.values())
