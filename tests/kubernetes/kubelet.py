"""A real node on this machine: the kubelet of the cluster's version with containerd 2, for the test that needs one.

Pods are on a bridge of their own. They reach the API server at the address of the service `kubernetes`, where a thread
of this process forwards their connections: the cluster has no kube-proxy.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from support import HERE, ROOT, Failure, call, cluster, kubectl, run, server_minor, wait

sys.path.insert(0, str(ROOT / "tests" / "runtime"))

import engines  # noqa: E402
from ports import free_port  # noqa: E402

NAME = "real-node"
SERVICE = ("10.0.0.1", 443)  # of the range that `cluster` gives
OLDEST_MINOR = 27  # takes the engine's address from its configuration, and speaks its only interface


def find_kubelet():
    """The program; it is made where the others of this version were made from modules."""
    bin_dir = Path(os.environ["KUBE_BIN_DIR"])
    if not (bin_dir / "kubelet").exists() and (bin_dir.parent / "module").exists():
        version = json.loads(kubectl("get", "--raw", "/version"))["gitVersion"].removeprefix("v")
        subprocess.run([HERE / "build", version, bin_dir.parent, "kubelet"], check=True)
    return bin_dir / "kubelet"


def missing():
    """Why this machine cannot be a node; empty if it can."""
    if server_minor() < OLDEST_MINOR:
        return f"Kubernetes 1.{OLDEST_MINOR} is the oldest for containerd 2"
    made = subprocess.run([HERE / "build-tool", "containerd"], stdout=subprocess.DEVNULL, check=False)
    if made.returncode == 3:
        return "containerd 2 cannot be built here"
    if why := engines.Containerd2.missing():
        return why
    if not find_kubelet().exists():
        return f"no kubelet is in {os.environ['KUBE_BIN_DIR']}"
    if " via " not in call("ip", "route", "get", SERVICE[0])[1]:
        return f"{SERVICE[0]} is an address of this machine's network"
    return ""


def pump(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


class Forwarder:
    """What connects to the service is connected to the API server."""

    def __init__(self, server):
        self.server = server
        self.socket = socket.create_server(SERVICE)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.socket.accept()
            except OSError:
                return
            there = socket.create_connection(self.server)
            for ends in ((here, there), (there, here)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Node:
    def __init__(self, bench):
        self.bench = bench
        self.work = bench.work
        self.engine = engines.Containerd2(self.work / "data")
        self.forwarder = self.bridge = None

    def __enter__(self):
        try:
            self.engine.start_engine()
            self.start_network()
            self.kubelet = self.start_kubelet()
            wait("the node is Ready", self.is_ready)
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_network(self):
        """The plug-in finds the bridge that it would make: the kubelet wants an address before the first pod."""
        conflist = json.loads((self.engine.home / "cni" / "10-bridge.conflist").read_text())
        bridge = conflist["plugins"][0]
        self.bridge, self.address = bridge["bridge"], bridge["ipam"]["subnet"].replace(".0/24", ".1")
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.address}/24", "dev", self.bridge)
        run("ip", "addr", "add", f"{SERVICE[0]}/32", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        config = json.loads(kubectl("config", "view", "--minify", "-o", "json"))
        host, _, port = config["clusters"][0]["cluster"]["server"].rpartition("/")[2].partition(":")
        self.forwarder = Forwarder((host, int(port)))

    def start_kubelet(self):
        kubeconfig = Path(cluster("node", NAME))
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": self.address, "port": free_port(), "healthzPort": 0, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(kubeconfig.parent / "pki" / "ca.crt")}},
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{self.engine.socket}",
            "cgroupDriver": "cgroupfs", "failSwapOn": False, "makeIPTablesUtilChains": False,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "podLogsDir": str(self.work / "logs"), "volumePluginDir": str(self.work / "plugins"),
            "staticPodPath": "", "syncFrequency": "5s"}
        # A field that older kubelets do not know.
        if server_minor() >= 31:
            config["failCgroupV1"] = False
        path = self.work / "kubelet.json"
        path.write_text(json.dumps(config))
        return self.bench.start("kubelet", find_kubelet(), "--config", path, "--kubeconfig", kubeconfig, "--root-dir",
                                self.work / "kubelet", "--cert-dir", self.work / "kubelet-pki", "--hostname-override",
                                NAME, "--node-ip", self.address)

    def is_ready(self):
        if not self.kubelet.alive():
            raise Failure(f"the kubelet ended:\n{self.kubelet.text()[-3000:]}")
        code, text = call("kubectl", "get", "node", NAME, "-o",
                          "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
        return code == 0 and text == "True"

    def __exit__(self, *_):
        if hasattr(self, "kubelet"):
            self.kubelet.stop()
            call("kubectl", "delete", "node", NAME)
        self.engine.stop_engine()
        if self.forwarder:
            self.forwarder.close()
        left = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()
                if line.split()[1].startswith(str(self.work))]
        for path in sorted(left, reverse=True):
            call("umount", "--lazy", path)
        if self.bridge:
            call("ip", "link", "del", self.bridge)
        remove_groups()


def remove_groups():
    """The kubelet's control groups; those in use stay."""
    for top in Path("/sys/fs/cgroup").glob("*/kubepods"):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass
