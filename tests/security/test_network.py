"""NetworkPolicies and isolated projects are kept by the kernel, in real pods on a real `swell up`; Services answer on
the machine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
SWELL = str(BIN / "swell")
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402

SERVER = """
import os, socketserver
class Name(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(os.environ["NAME"].encode())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", 8080), Name).serve_forever()
"""
# A packet that rules drop is never answered.
CLIENT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1) as to:
        print(to.recv(99).decode() or "nobody")
except OSError as error:
    print("nobody")
"""
# Questions that begin no connection: segments with no flag, with FIN, and with FIN, PSH and URG to a port where
# nothing listens, and ICMP's question for the time. Tells which are answered.
ODD_CLIENT = """
import socket, struct, sys
to, answered = sys.argv[1], []
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    own.connect((to, 1))
    here = own.getsockname()[0]
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff
def ask(name, protocol, packet, is_answer):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol) as raw:
        raw.settimeout(0.5)
        raw.sendto(packet, (to, 0))
        try:
            while not (told := raw.recvfrom(200))[1][0] == to or not is_answer(told[0][20:]):
                pass
            answered.append(name)
        except OSError:
            pass
for name, flags in (("none", 0), ("fin", 1), ("xmas", 0x29)):
    tcp = struct.pack("!HHIIBBHHH", 5000 + flags, 7, 1, 0, 0x50, flags, 1000, 0, 0)
    about = socket.inet_aton(here) + socket.inet_aton(to) + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(about + tcp)) + tcp[18:]
    ask(name, socket.IPPROTO_TCP, tcp, lambda told: told[:2] == struct.pack("!H", 7))
stamp = struct.pack("!BBHHHIII", 13, 0, 0, 9, 1, 0, 0, 0)
stamp = stamp[:2] + struct.pack("!H", checksum(stamp)) + stamp[4:]
ask("time", socket.IPPROTO_ICMP, stamp, lambda told: told[0] == 14)
print(*answered)
"""
# Starts a connection to each address every 20 ms, and tells of each that is answered.
PROBER = """
import select, socket, sys, time
pairs = [tuple(word.split(":")) for word in sys.argv[1:]]
poll, open_ones = select.poll(), {}
tried = 0
while True:
    for host, port in pairs:
        to = socket.socket()
        to.setblocking(False)
        to.connect_ex((host, int(port)))
        open_ones[to.fileno()] = (to, time.monotonic(), host)
        poll.register(to, select.POLLIN)
        tried += 1
    print("tried", tried, flush=True)
    until = time.monotonic() + 0.02
    while (left := until - time.monotonic()) > 0:
        for number, _ in poll.poll(left * 1000):
            to, _, host = open_ones.pop(number)
            poll.unregister(number)
            try:
                if word := to.recv(99).decode():
                    print("heard", word, "from", host, flush=True)
            except OSError:
                pass
            to.close()
    for number, (to, began, _) in list(open_ones.items()):
        if began < time.monotonic() - 2:
            poll.unregister(number)
            open_ones.pop(number)
            to.close()
"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **more)


def policy(name, ns, selector, **spec):
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": ns},
            "spec": {"podSelector": {"matchLabels": selector} if selector else {}, **spec}}


@unittest.skipUnless(os.geteuid() == 0, "pods have networks of their own only where root starts Swell")
class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-net-"))
        cls.scratch.chmod(0o755)
        cls.data = cls.scratch / "data"
        up = cls.up()
        try:
            if "NetworkPolicies" in up.stdout:
                raise unittest.SkipTest("this machine keeps no NetworkPolicies: " + up.stdout)
            cls.make_pods()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def up(cls):
        done = run(SWELL, "up", "--detach", "--data-dir", cls.data, "--nodes", "1", "--gpus-per-node", "2")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done

    @classmethod
    def make_pods(cls):
        for project in ("red", "blue"):
            cls.must(cls.swell("project", "create", project, "--gpu-quota", "1"))
        until(lambda: all(cls.kubectl("get", "ns", ns).returncode == 0 for ns in ("red", "blue")))
        pods = [("red", "server"), ("red", "friend"), ("red", "other"), ("blue", "stranger")]
        for ns, name in pods:
            cls.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns,
                                                                      "labels": {"app": name}},
                       "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                           "name": "main", "image": "python", "command": ["python3", "-c", SERVER],
                           "env": [{"name": "NAME", "value": name}],
                           "ports": [{"name": "talk", "containerPort": 8080}],
                           "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}]}})
        cls.ips = {}
        for ns, name in pods:
            cls.must(cls.kubectl("wait", "-n", ns, f"pod/{name}", "--for=condition=Ready", f"--timeout={LIMIT_S}s"))
            cls.ips[name] = cls.must(cls.kubectl("get", "pod", "-n", ns, name, "-o", "jsonpath={.status.podIP}"))

    @classmethod
    def tearDownClass(cls):
        run(SWELL, "down", "--data-dir", cls.data)
        shutil.rmtree(cls.scratch, ignore_errors=True)

    @classmethod
    def kubectl(cls, *words, **more):
        return run("kubectl", "--kubeconfig", cls.data / "kubeconfig", *words, **more)

    @classmethod
    def swell(cls, *words):
        return run(SWELL, *words, "--kubeconfig", cls.data / "kubeconfig")

    @staticmethod
    def must(done):
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    @classmethod
    def apply(cls, *objects):
        return cls.must(cls.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List",
                                                                          "items": list(objects)})))

    def tearDown(self):
        for ns in ("red", "blue"):
            self.kubectl("delete", "networkpolicies,services", "--all", "-n", ns)

    def ask(self, pod, address, port=8080):
        ns = "blue" if pod == "stranger" else "red"
        return self.must(self.kubectl("exec", "-n", ns, pod, "--", "python3", "-c", CLIENT, address, str(port)))

    def hears(self, pod, expected, to="server", port=8080):
        address = self.ips.get(to, to)
        self.comes(lambda: self.ask(pod, address, port) == expected, f"{pod} hears {expected} from {to}")

    def comes(self, condition, what):
        self.assertTrue(until(condition, 60), what)

    def service(self, ns, name, kind, **more):
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": ns},
                    "spec": {"type": kind, "selector": {"app": "server"},
                             "ports": [{"port": 80, "targetPort": "talk", **more}]}})
        return json.loads(self.must(self.kubectl("get", "service", "-n", ns, name, "-o", "json")))

    @staticmethod
    def from_machine(port, address="127.0.0.1"):
        try:
            with socket.create_connection((address, port), timeout=LIMIT_S) as to:
                return to.recv(99).decode()
        except OSError:
            return "nobody"

    def test_pods_are_denied_and_allowed_by_label_and_namespace(self):
        self.assertEqual(self.ask("stranger", self.ips["server"]), "server")
        self.apply(policy("deny", "red", {}, policyTypes=["Ingress"]))
        for pod in ("stranger", "friend"):
            self.hears(pod, "nobody")
        self.assertEqual(self.ask("friend", self.ips["stranger"]), "stranger", "no policy is about the way out")
        self.apply(policy("friends", "red", {"app": "server"}, ingress=[
            {"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}], "ports": [{"port": "talk"}]}]))
        self.hears("friend", "server")
        self.assertEqual(self.ask("other", self.ips["server"]), "nobody")
        self.apply(policy("blues", "red", {"app": "server"}, ingress=[{"from": [{"namespaceSelector": {"matchLabels": {
            "kubernetes.io/metadata.name": "blue"}}}]}]))
        self.hears("stranger", "server")
        self.assertEqual(self.ask("other", self.ips["server"]), "nobody")
        self.must(self.kubectl("delete", "networkpolicies", "--all", "-n", "red"))
        self.hears("other", "server")

    def test_the_way_out_is_limited_also_through_a_service(self):
        inner = self.service("red", "inner", "ClusterIP")["spec"]["clusterIP"]
        self.hears("stranger", "server", inner, 80)
        self.apply(policy("out", "blue", {}, policyTypes=["Egress"], egress=[
            {"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": [self.ips["server"] + "/32"]}}]}]))
        self.hears("stranger", "nobody")
        self.assertEqual(self.ask("stranger", self.ips["friend"]), "friend")
        self.assertEqual(self.ask("stranger", inner, 80), "nobody")
        self.assertEqual(self.ask("friend", inner, 80), "server")
        self.assertEqual(self.ask("friend", self.ips["stranger"]), "stranger", "answers pass")

    def test_services_keep_what_policies_say_of_their_pods(self):
        inner = self.service("red", "inner", "ClusterIP")["spec"]["clusterIP"]
        self.hears("other", "server", inner, 80)
        self.apply(policy("friends", "red", {"app": "server"}, ingress=[
            {"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}], "ports": [{"port": 8080}]}]))
        self.hears("other", "nobody", inner, 80)
        self.assertEqual(self.ask("friend", inner, 80), "server")

    def test_who_may_not_connect_learns_nothing_by_odd_packets(self):
        def answered():
            return self.must(self.kubectl("exec", "-n", "blue", "stranger", "--", "python3", "-c", ODD_CLIENT,
                                          self.ips["server"]))
        self.assertIn("time", answered())
        self.apply(policy("deny", "red", {}, policyTypes=["Ingress"]))
        self.hears("stranger", "nobody")
        self.assertEqual(answered(), "")

    def test_an_isolated_project_is_reached_by_its_own_pods_alone(self):
        self.must(self.swell("project", "edit", "red", "--isolated"))
        self.hears("stranger", "nobody")
        self.assertEqual(self.ask("friend", self.ips["server"]), "server")
        self.assertEqual(self.ask("friend", self.ips["stranger"]), "stranger")
        # What a member deletes comes back.
        self.must(self.kubectl("delete", "networkpolicy", "project-isolated", "-n", "red"))
        self.comes(lambda: self.kubectl("get", "networkpolicy", "project-isolated", "-n", "red").returncode == 0,
              "the policy again")
        self.must(self.swell("project", "edit", "red", "--no-isolated"))
        self.hears("stranger", "server")

    def test_what_is_denied_stays_denied_while_swell_is_killed_and_started_again(self):
        inner = self.service("red", "inner", "ClusterIP")["spec"]["clusterIP"]
        self.hears("stranger", "server", inner, 80)
        self.apply(policy("deny", "red", {"app": "server"}, policyTypes=["Ingress"]))
        self.hears("stranger", "nobody")
        self.hears("stranger", "nobody", inner, 80)
        addresses = [f"{self.ips['server']}:8080", f"{inner}:80", f"{self.ips['friend']}:8080"]
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "prober", "namespace": "blue"},
                    "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                        "name": "main", "image": "python", "command": ["python3", "-c", PROBER, *addresses]}]}})
        log = lambda: self.kubectl("logs", "-n", "blue", "prober").stdout  # noqa: E731
        self.comes(lambda: "heard friend" in log(), "the prober's first words")
        pod = self.kubectl("get", "pod", "-n", "blue", "prober", "-o", "jsonpath={.status.containerStatuses}").stdout
        os.kill(int((self.data / "swell.pid").read_text()), signal.SIGKILL)
        self.comes(lambda: run(SWELL, "status", "--data-dir", self.data).returncode != 0, "its end")
        self.up()
        tried = lambda: log().count("tried")  # noqa: E731
        self.hears("other", "nobody")
        before = tried()
        self.comes(lambda: tried() > before + 20, "the prober goes on")
        self.assertEqual(self.kubectl("get", "pod", "-n", "blue", "prober", "-o",
                                      "jsonpath={.status.containerStatuses}").stdout, pod, "the pod ran on")
        self.assertEqual(log().count("heard server"), 0, f"of {tried()} rounds")
        # What is allowed since is known, too.
        self.must(self.kubectl("delete", "networkpolicy", "deny", "-n", "red"))
        self.hears("stranger", "server")
        self.hears("stranger", "server", inner, 80)
        self.must(self.kubectl("delete", "pod", "-n", "blue", "prober"))

    def test_node_ports_and_load_balancers_answer_on_the_machine(self):
        node_port = self.service("red", "node", "NodePort")["spec"]["ports"][0]["nodePort"]
        self.comes(lambda: self.from_machine(node_port) == "server", "the node port")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            # Any port above those of services that is free; a taken one is told of.
            port = taken.getsockname()[1]
            self.service("red", "balanced", "LoadBalancer", port=port)
            self.comes(lambda: "another program of this machine listens there" in self.kubectl(
                "describe", "service", "balanced", "-n", "red").stdout, "the event")
        self.must(self.kubectl("delete", "service", "balanced", "-n", "red"))
        self.service("red", "balanced", "LoadBalancer", port=port)
        shown = lambda: self.must(self.kubectl("get", "service", "balanced", "-n", "red"))  # noqa: E731
        self.comes(lambda: "127.0.0.1" in shown(), "the address of the load balancer")
        self.comes(lambda: self.from_machine(port) == "server", "the load balancer")
        # The machine reaches its pods whatever policies say.
        self.apply(policy("deny", "red", {}, policyTypes=["Ingress"]))
        self.hears("friend", "nobody")
        self.assertEqual(self.from_machine(port), "server")


if __name__ == "__main__":
    unittest.main()
