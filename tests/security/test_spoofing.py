"""A pod cannot speak with another's addresses: a researcher's pod tries to draw another project's packets to itself, by
false ARP answers, by a false hardware address and by a false IP address."""

import json
import os
import subprocess
import unittest

from support import LIMIT_S, SecurityTest

SERVER = """
import socketserver
class Word(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"the true one")
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", 8080), Word).serve_forever()
"""
# Says from where datagrams came, up to the word that the sender says at its end.
LISTENER = """
import socket
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to.bind(("", 9999))
print("listening", flush=True)
seen = set()
while True:
    word, (host, _) = to.recvfrom(99)
    seen.add(host)
    if word == b"end":
        print("from", *sorted(seen), flush=True)
"""
# Asks again and again, so that there are packets to be drawn away; each answer is counted.
CLIENT = """
import socket, sys
good = 0
for i in range(int(sys.argv[2])):
    try:
        with socket.create_connection((sys.argv[1], 8080), timeout=2) as to:
            good += to.recv(99) == b"the true one"
    except OSError:
        pass
    print("asked", i, good, flush=True)
"""
# Sends false ARP answers and frames while somebody speaks with the victim, and counts what comes to it.
ATTACK = """
import socket, struct, sys, time
victim, listener, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with socket.socket() as to:          # so that the victim's hardware address is known
    to.settimeout(5)
    to.connect((victim, 8080))
rows = [line.split() for line in open("/proc/net/arp")]
victim_mac = bytes.fromhex(next(row[3] for row in rows if row[0] == victim).replace(":", ""))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
    to.connect((listener, 9999))
    own_ip = to.getsockname()[0]
    to.send(b"hello")                # and the listener's
time.sleep(0.2)
rows = [line.split() for line in open("/proc/net/arp")]
listener_mac = bytes.fromhex(next(row[3] for row in rows if row[0] == listener).replace(":", ""))
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind(("eth0", 0))
raw.setblocking(False)
own_mac = raw.getsockname()[4]
every = b"\\xff" * 6
def arp(source, operation):
    return (every + source + b"\\x08\\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, operation) + own_mac
            + socket.inet_aton(victim) + every + socket.inet_aton(listener))
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
def datagram(ip, mac):
    data = b"false!"
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 1, 0, 64, 17, 0, socket.inet_aton(ip),
                       socket.inet_aton(listener))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return listener_mac + mac + b"\\x08\\x00" + head + struct.pack("!HHHH", 5555, 9999, 8 + len(data), 0) + data
frames = [arp(own_mac, 2), arp(own_mac, 1), arp(victim_mac, 2), every + victim_mac + b"\\x88\\xb5" + b"x" * 46,
          datagram(victim, own_mac), datagram(own_ip, victim_mac), datagram(victim, victim_mac)]
drawn = 0
def look():
    global drawn
    while True:
        try:
            frame = raw.recv(2000)
        except BlockingIOError:
            return
        is_tcp = frame[12:14] == b"\\x08\\x00" and frame[23] == 6
        drawn += is_tcp and frame[30:34] == socket.inet_aton(victim) and frame[6:12] != own_mac
print("began", flush=True)
for i in range(rounds):
    for frame in frames:
        try:
            raw.send(frame)
        except OSError:
            pass
    look()
    time.sleep(0.005)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
    to.connect((listener, 9999))
    to.send(b"end")
look()
print("drawn", drawn, "as", own_ip, flush=True)
"""


@unittest.skipUnless(os.geteuid() == 0, "pods have networks of their own only where root starts Swell")
class Spoofing(SecurityTest):
    flags = ("--nodes", "1", "--runtime", "process")

    def kubectl(self, who, *words, **more):
        return subprocess.run(["kubectl", "--kubeconfig", str(self.scratch / who), *map(str, words)],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)

    def pod(self, who, namespace, name, script, *words):
        main = {"name": "main", "image": "python", "command": ["python3", "-c", script, *map(str, words)]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
               "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}}
        self.done(self.kubectl(who, "create", "-f", "-", input=json.dumps(pod)))

        def state(path):
            shown = f"jsonpath={{.status.{path}}}"
            return self.done(self.kubectl(who, "get", "pod", "-n", namespace, name, "-o", shown))

        # Debian's kubectl cannot wait for a phase.
        self.until(lambda: state("phase") == "Running", lambda: state("conditions"))
        return state("podIP")

    def log(self, who, namespace, name):
        done = self.kubectl(who, "logs", "-n", namespace, name)
        return done.stdout + done.stderr

    def says(self, who, namespace, name, *words):
        """The pod's log, once it has one of the words."""
        def log():
            return self.log(who, namespace, name)
        self.until(lambda: any(word in log() for word in words), log)
        return log()

    def test_a_researchers_pod_draws_no_packets_of_another_project(self):
        told = self.cluster.swell("status")
        if "each other's addresses" in told.stdout:
            self.skipTest("this machine keeps no addresses: " + told.stdout)
        victim = self.pod("carl", "vision", "victim", SERVER)
        listener = self.pod("carl", "vision", "listener", LISTENER)
        self.says("carl", "vision", "listener", "listening")
        self.pod("carl", "vision", "client", CLIENT, victim, 100_000)
        self.says("carl", "vision", "client", "asked 20 ")
        attacker = self.pod("alice", "nlp", "attacker", ATTACK, victim, listener, 400)
        self.assertIn(f"drawn 0 as {attacker}", self.says("alice", "nlp", "attacker", "drawn", "Error"))
        self.assertIn(f"from {attacker}\n", self.says("carl", "vision", "listener", "from"))
        # The client spoke with the victim meanwhile, and was answered every time.
        last = self.says("carl", "vision", "client", "asked").splitlines()[-1].split()
        self.assertEqual(int(last[1]) + 1, int(last[2]), "some questions to the victim were in vain")


if __name__ == "__main__":
    unittest.main()
