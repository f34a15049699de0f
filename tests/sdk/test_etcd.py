"""The rendezvous in etcd, against a real etcd and with real launchers."""

import datetime
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import support
from swell import etcd

MEMBER = """
import os, signal, sys, time
import swell
job = swell.Job()
import torch.distributed as dist
dist.init_process_group("gloo")
job.notice.hold()
print(f"member {os.environ['RANK']} of {os.environ['WORLD_SIZE']}", flush=True)
while not job.should_stop():
    time.sleep(0.05)
job.stop(0, {})
"""


class EtcdTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="swell-etcd-")
        cls.endpoint = f"127.0.0.1:{support.free_port()}"
        cls.url = f"http://{cls.endpoint}"
        cls.peers = f"http://127.0.0.1:{support.free_port()}"
        cls.start_etcd("data")

    @classmethod
    def start_etcd(cls, data):
        cls.server = subprocess.Popen(
            ["etcd", "--data-dir", f"{cls.folder}/{data}", "--enable-v2", "--listen-client-urls", cls.url,
             "--advertise-client-urls", cls.url, "--listen-peer-urls", cls.peers],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        etcd.Keys(cls.url, "wait", "").connect(support.WAIT_SECONDS)

    @classmethod
    def kill_etcd(cls):
        cls.server.kill()
        cls.server.wait()

    @classmethod
    def tearDownClass(cls):
        cls.kill_etcd()
        shutil.rmtree(cls.folder)

    def test_only_a_member_that_read_the_state_can_replace_it(self):
        one = etcd.EtcdBackend(etcd.Keys(self.url, "cas", "1"))
        other = etcd.EtcdBackend(etcd.Keys(self.url, "cas", "1"))
        self.assertIsNone(one.get_state())
        state, token, taken = one.set_state(b"first\0\xff")
        self.assertTrue(taken)
        self.assertEqual(other.set_state(b"second")[0::2], (b"first\0\xff", False))
        self.assertEqual(other.get_state(), (b"first\0\xff", token))
        self.assertTrue(other.set_state(b"second", token)[2])
        self.assertEqual(one.set_state(b"third", token)[0::2], (b"second", False))
        self.assertFalse(one.set_state(b"third", "not a token")[2])

    def test_each_run_has_keys_of_its_own(self):
        etcd.EtcdBackend(etcd.Keys(self.url, "resnet", "uid-1")).set_state(b"closed")
        self.assertIsNone(etcd.EtcdBackend(etcd.Keys(self.url, "resnet", "uid-2")).get_state())

    def test_members_share_the_store(self):
        one, other = (etcd.EtcdStore(etcd.Keys(self.url, "store", "1")) for _ in range(2))
        self.assertFalse(one.check(["a/b"]))
        one.set("a/b", "text")
        self.assertEqual(other.get("a/b"), b"text")
        self.assertEqual([one.add("n", 2), other.add("n", 3), one.add("n", -1)], [2, 5, 4])
        other.wait(["a/b", "n"])

    def test_the_error_names_the_etcd_that_does_not_answer(self):
        nobody = f"http://127.0.0.1:{support.free_port()}"
        with self.assertRaisesRegex(Exception, nobody):
            etcd.Keys(nobody, "x", "").connect(0)
        with self.assertRaisesRegex(Exception, nobody):
            etcd.EtcdBackend(etcd.Keys(nobody, "x", "")).get_state()

    def test_a_state_that_etcd_lost_is_written_again(self):
        for zone in (None, datetime.timezone.utc):
            with self.subTest(zone=zone):
                self.lose_state(zone)

    def lose_state(self, zone):
        """`zone`: of the times that torch has in its state: UTC without a zone in torch 1.13, with it in newer ones."""
        def now():
            return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=zone)

        one, other = (etcd.EtcdBackend(etcd.Keys(self.url, "lost", str(zone))) for _ in range(2))
        # A part of torch's state. torch takes a member that has sent no heartbeat for 15 s for dead.
        long_ago = now() - datetime.timedelta(hours=1)
        one.set_state(pickle.dumps(SimpleNamespace(last_heartbeats={"one": long_ago, "other": long_ago})))
        other.get_state()
        self.kill_etcd()
        restarted = now()
        with self.assertRaisesRegex(Exception, self.url):
            one.get_state()
        self.start_etcd(f"lost-{zone}")
        self.assertIsNone(etcd.EtcdBackend(etcd.Keys(self.url, "lost", str(zone))).get_state())
        written = one.get_state()
        heartbeats = pickle.loads(written[0]).last_heartbeats
        self.assertEqual(sorted(heartbeats), ["one", "other"])
        self.assertGreaterEqual(min(heartbeats.values()), restarted)
        self.assertEqual(other.get_state(), written)
        # An etcd that restarts with its data has heartbeats from before the outage.
        self.kill_etcd()
        self.assertRaises(Exception, one.get_state)
        self.start_etcd(f"lost-{zone}")
        renewed = pickle.loads(one.set_state(written[0], written[1])[0]).last_heartbeats
        self.assertGreater(min(renewed.values()), max(heartbeats.values()))

    def launch(self, name):
        script = Path(self.folder) / "member.py"
        script.write_text(MEMBER)
        log = open(self.log_file(name), "w")
        self.addCleanup(log.close)
        environment = support.clean_environment(OMP_NUM_THREADS=1, SWELL_CHECKPOINT_DIR=self.folder + "/checkpoints")
        process = subprocess.Popen(
            [sys.executable, "-m", "swell.launch", "--rdzv_backend=etcd", f"--rdzv_endpoint={self.endpoint}",
             f"--rdzv_id={self.id()}", "--nnodes=1:3", "--nproc_per_node=1", "--max_restarts=100",
             "--rdzv_conf=last_call_timeout=1", str(script)],
            env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait, support.WAIT_SECONDS)
        self.addCleanup(process.kill)
        return process

    def log_file(self, name):
        return Path(self.folder) / f"{self.id()}-{name}.log"

    def text(self, name):
        return self.log_file(name).read_text()

    def await_text(self, condition):
        if not support.until(condition):
            logs = sorted(Path(self.folder).glob(f"{self.id()}-*.log"))
            self.fail("\n".join(f"--- {log.name}\n{log.read_text()}" for log in logs))

    def leave(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.WAIT_SECONDS), 143)

    def test_members_come_and_go(self):
        text = self.text
        first = self.launch("first")
        self.await_text(lambda: "of 1" in text("first"))
        second = self.launch("second")
        self.await_text(lambda: "of 2" in text("first") and "of 2" in text("second"))
        self.assertIn("swell.launch: 1 node trains\n", text("first"))
        self.assertIn("swell.launch: 2 nodes train\n", text("first"))
        alone = text("first").count("of 1")
        self.leave(second)
        self.await_text(lambda: text("first").count("of 1") > alone)
        self.leave(first)

    def test_the_others_continue_when_rank_0_leaves(self):
        members = {name: self.launch(name) for name in ("first", "second", "third")}
        self.await_text(lambda: all("of 3" in self.text(name) for name in members))
        (leader,) = [name for name in members if "member 0 of 3" in self.text(name)]
        self.leave(members.pop(leader))
        self.await_text(lambda: all("of 2" in self.text(name).rpartition("of 3")[2] for name in members))
        for process in members.values():
            process.send_signal(signal.SIGTERM)
        for process in members.values():
            self.assertEqual(process.wait(support.WAIT_SECONDS), 143)

    def test_training_continues_while_etcd_is_killed_and_loses_its_data(self):
        text = self.text
        first = self.launch("first")
        self.await_text(lambda: "of 1" in text("first"))
        self.kill_etcd()
        self.await_text(lambda: "training continues without the rendezvous" in text("first"))
        # After 15 s without a heartbeat torch takes a member for dead. During the outage none can send one.
        self.await_text(lambda: text("first").count("failed to send a keep-alive heartbeat") >= 4)
        self.start_etcd("anew")
        self.await_text(lambda: etcd.Keys(self.url, self.id(), "").get("state") is not None)
        second = self.launch("second")
        self.await_text(lambda: "of 2" in text("first") and "of 2" in text("second"))
        self.assertEqual(text("first").count("of 1"), 1, "it was restarted")
        self.assertNotIn("of 1", text("second"), "it formed a group of its own")
        self.leave(second)
        self.leave(first)


if __name__ == "__main__":
    unittest.main()
