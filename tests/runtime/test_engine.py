"""What only pods of a container engine can show: they outlive swell and the engine's own restart, and the engine pulls
with the pod's secret.
"""

import base64
import json
import os
import shutil
import signal
import sys
import tempfile
import unittest
from pathlib import Path

import engines
from engines import ROOT, SWELL, Cri, must, run

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "images"))

import layout  # noqa: E402
from docker_registry import DockerRegistry  # noqa: E402
from waiting import until  # noqa: E402

BOX = "runtime/box:1"
TICK = "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 0.2; done"


class Engine:
    """The test of one engine."""

    engine_class = None

    @classmethod
    def setUpClass(cls):
        if why := cls.engine_class.missing():
            raise unittest.SkipTest(f"engine {cls.engine_class.name}: {why}")
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-engine-"))
        cls.engine = cls.engine_class(cls.scratch / "data")
        try:
            cls.engine.up()
            tools = {f"bin/{tool}": "/bin/busybox" for tool in ("httpd", "mkdir", "wget")}
            layout.busybox(layout.tar(tools), Cmd=["sh"]).write(cls.scratch / "box")
            cls.engine.load(cls.scratch / "box", BOX)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.engine.down()
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def kubectl(self, *words, **more):
        return run("kubectl", "--kubeconfig", self.engine.kubeconfig, *words, **more)

    def apply(self, *objects):
        must(self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List",
                                                                "items": list(objects)})))

    def start(self, name, script, image=BOX, **more):
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": image, "command": ["sh", "-c", script]}], **more}})
        self.addCleanup(self.kubectl, "delete", "pod", name, "--ignore-not-found", "--wait=false")

    def status(self, name):
        done = self.kubectl("get", "pod", name, "-o", "json")
        return json.loads(done.stdout)["status"] if done.returncode == 0 else {}

    def state(self, name):
        return (self.status(name).get("containerStatuses") or [{"state": {}}])[0]["state"]

    def comes(self, condition, name):
        self.assertTrue(until(condition, 120, pause=0.2), json.dumps(self.status(name)))

    def log(self, name):
        return self.kubectl("logs", name).stdout

    def again(self):
        must(run(SWELL, "up", "--detach", "--data-dir", self.engine.data))

    def test_pods_outlive_swell(self):
        self.start("lives", TICK)
        self.start("ends", "until test -e /now; do sleep 0.1; done; echo over; exit 3")
        for name in ("lives", "ends"):
            self.comes(lambda name=name: "running" in self.state(name), name)
        before = self.state("lives")
        ids = {one["status"]["containerStatuses"][0]["containerID"].split("://")[1] for one in json.loads(
            self.kubectl("get", "pods", "-o", "json").stdout)["items"] if one["metadata"]["name"] == "ends"}
        os.kill(int((self.engine.data / "swell.pid").read_text()), signal.SIGKILL)
        self.engine.ctr("tasks", "exec", "--exec-id", "test", *ids, "touch", "/now")
        self.again()
        self.comes(lambda: self.status("ends").get("phase") == "Failed", "ends")
        self.assertEqual((self.state("ends")["terminated"]["exitCode"], self.log("ends")), (3, "over\n"))
        self.assertEqual(self.state("lives"), before)
        ticks = len(self.log("lives").splitlines())
        self.comes(lambda: len(self.log("lives").splitlines()) > ticks + 3, "lives")
        must(self.kubectl("delete", "pod", "lives"))
        self.assertEqual(self.status("lives"), {})

    def test_pods_outlive_the_engine(self):
        self.start("stays", TICK)
        self.comes(lambda: "running" in self.state("stays"), "stays")
        before = self.state("stays")
        self.engine.containerd.terminate()
        self.engine.containerd.wait(30)
        self.engine.run_containerd()
        self.start("next", "echo next")
        self.comes(lambda: self.status("next").get("phase") == "Succeeded", "next")
        self.assertEqual(self.state("stays"), before)
        must(self.kubectl("delete", "pod", "stays"))

    def test_services_lead_to_pods(self):
        self.start("serves", "mkdir /www; echo served >/www/index.html; httpd -f -p 8080 -h /www")
        self.comes(lambda: "running" in self.state("serves"), "serves")
        must(self.kubectl("label", "pod", "serves", "app=serves"))
        must(self.kubectl("expose", "pod", "serves", "--port", "80", "--target-port", "8080"))
        self.start("asks", "until wget -q -O - http://serves/; do sleep 0.2; done")
        self.comes(lambda: self.status("asks").get("phase") == "Succeeded", "asks")
        self.assertEqual(self.log("asks").splitlines()[-1], "served")

    def test_nothing_is_left_of_a_pod(self):
        self.start("gone", "echo gone")
        self.comes(lambda: self.status("gone").get("phase") == "Succeeded", "gone")
        must(self.kubectl("delete", "pod", "gone"))
        self.assertTrue(until(lambda: "gone" not in self.engine.ctr("containers", "ls"), 60, pause=0.2))
        left = [str(path) for path in (self.engine.data / "run").glob("subpaths/*")]
        self.assertEqual(left, [])

    @unittest.skipUnless(shutil.which("docker-registry"), "needs docker-registry")
    def test_images_are_pulled_with_the_pods_secret(self):
        registry = DockerRegistry(self.scratch / "registry", user="me:word")
        self.addCleanup(registry.close)
        image = registry.push(layout.busybox(Cmd=["sh"]), "team/app", "1", user="me:word")
        self.start("refused", "true", image)
        self.comes(lambda: "Pull" in self.state("refused").get("waiting", {}).get("reason", ""), "refused")
        login = {"auths": {registry.address: {"auth": base64.b64encode(b"me:word").decode()}}}
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
                    "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": json.dumps(login)}})
        self.start("pulls", "echo pulled", image, imagePullSecrets=[{"name": "login"}])
        self.comes(lambda: self.status("pulls").get("phase") == "Succeeded", "pulls")
        self.assertEqual(self.log("pulls"), "pulled\n")
        self.assertIn("team/app@sha256:", self.status("pulls")["containerStatuses"][0]["imageID"])


for _engine in engines.chosen():
    if issubclass(_engine, Cri):
        _name = f"Engine_{_engine.name}"
        globals()[_name] = type(_name, (Engine, unittest.TestCase), {"engine_class": _engine})


if __name__ == "__main__":
    unittest.main()
