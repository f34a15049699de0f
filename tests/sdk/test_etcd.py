"""The rendezvous in etcd, against a real etcd and with real launchers."""

import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

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
        url, peers = f"http://{cls.endpoint}", f"http://127.0.0.1:{support.free_port()}"
        cls.server = subprocess.Popen(
            ["etcd", "--data-dir", cls.folder + "/data", "--enable-v2", "--listen-client-urls", url,
             "--advertise-client-urls", url, "--listen-peer-urls", peers],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.url = url
        etcd.Keys(url, "wait", "").connect(30)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.server.wait()
        shutil.rmtree(cls.folder)

    def test_a_state_is_replaced_only_by_who_has_read_it(self):
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

    def test_runs_are_apart(self):
        etcd.EtcdBackend(etcd.Keys(self.url, "resnet", "uid-1")).set_state(b"closed")
        self.assertIsNone(etcd.EtcdBackend(etcd.Keys(self.url, "resnet", "uid-2")).get_state())

    def test_the_store_is_one_for_all(self):
        one, other = (etcd.EtcdStore(etcd.Keys(self.url, "store", "1")) for _ in range(2))
        self.assertFalse(one.check(["a/b"]))
        one.set("a/b", "text")
        self.assertEqual(other.get("a/b"), b"text")
        self.assertEqual([one.add("n", 2), other.add("n", 3), one.add("n", -1)], [2, 5, 4])
        other.wait(["a/b", "n"])

    def test_says_which_etcd_does_not_answer(self):
        nobody = f"http://127.0.0.1:{support.free_port()}"
        with self.assertRaisesRegex(Exception, nobody):
            etcd.Keys(nobody, "x", "").connect(0)
        with self.assertRaisesRegex(Exception, nobody):
            etcd.EtcdBackend(etcd.Keys(nobody, "x", "")).get_state()

    def test_members_come_and_go(self):
        script = Path(self.folder) / "member.py"
        script.write_text(MEMBER)

        def launch(name):
            log = open(Path(self.folder) / f"{name}.log", "w")
            self.addCleanup(log.close)
            environment = support.clean_environment(OMP_NUM_THREADS=1,
                                                    SWELL_CHECKPOINT_DIR=self.folder + "/checkpoints")
            process = subprocess.Popen(
                [sys.executable, "-m", "swell.launch", "--rdzv_backend=etcd", f"--rdzv_endpoint={self.endpoint}",
                 "--rdzv_id=come-and-go", "--nnodes=1:3", "--nproc_per_node=1", "--max_restarts=100",
                 "--rdzv_conf=last_call_timeout=1", str(script)],
                env=environment, stdout=log, stderr=subprocess.STDOUT)
            self.addCleanup(process.kill)
            return process

        def text(name):
            return (Path(self.folder) / f"{name}.log").read_text()

        first = launch("first")
        self.assertTrue(support.until(lambda: "of 1" in text("first")), text("first"))
        second = launch("second")
        self.assertTrue(support.until(lambda: "of 2" in text("first") and "of 2" in text("second")), text("first"))
        self.assertIn("swell.launch: 1 node trains\n", text("first"))
        self.assertIn("swell.launch: 2 nodes train\n", text("first"))
        alone = text("first").count("of 1")
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(support.WAIT_SECONDS), 143)
        self.assertTrue(support.until(lambda: text("first").count("of 1") > alone), text("first"))
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(support.WAIT_SECONDS), 143)


if __name__ == "__main__":
    unittest.main()
