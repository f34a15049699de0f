"""A walkthrough with a real image: Debian with Python, made by debootstrap, imported, and trained in.

Skipped, with the reason, on machines that cannot make the image.
"""

import unittest

import debian
from image_cluster import ClusterTest, until

NAME = "walk/debian:12"
LOOK = """
import os, platform, sys
print(platform.freedesktop_os_release()["VERSION_CODENAME"], sys.version_info[0], sys.executable)
print(sorted(set(os.listdir("/")) & {"work", "usr", "root"}), os.getuid())
print(sum(1 for _ in open("/var/lib/dpkg/status")) > 1000)
print(open("/proc/self/uid_map").read().split()[1] != "0", os.path.exists("/dev/sda"))
"""
# Fits y = 3 x + 1 by gradient descent; saves on notice and resumes.
TRAIN = """
import json, os, signal, sys, time
path = os.path.join(os.environ["SWELL_CHECKPOINT_DIR"], "state.json")
state = {"step": 0, "w": 0.0, "b": 0.0}
if os.path.exists(path):
    state = json.load(open(path))
    print("resumed from step", state["step"], flush=True)
def stop(*_):
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.rename(path + ".new", path)
    print("saved step", state["step"], flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
data = [(x / 10, 3 * x / 10 + 1) for x in range(-10, 11)]
end = int(sys.argv[1])
while state["step"] < end and not os.path.exists("/finish/now"):
    errors = [(state["w"] * x + state["b"] - y, x) for x, y in data]
    state["w"] -= 0.1 * sum(e * x for e, x in errors) / len(data)
    state["b"] -= 0.1 * sum(e for e, _ in errors) / len(data)
    state["step"] += 1
    if state["step"] % 20 == 0:
        print("step", state["step"], flush=True)
    time.sleep(0.02)
print("fitted %.1f x + %.1f" % (state["w"], state["b"]), flush=True)
"""


class DebianTest(ClusterTest):
    up_flags = ("--nodes", "1", "--gpus-per-node", "1")

    @classmethod
    def layouts(cls):
        try:
            return {NAME: debian.image()}
        except debian.CannotBeHad as why:
            raise unittest.SkipTest(str(why)) from why

    def comes(self, condition, what):
        self.assertTrue(until(condition, pause=0.2), what)

    def job(self, name, priority, *command):
        container = {"name": "pytorch", "image": NAME, "command": ["python3", "-c", *command],
                     "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        self.apply({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": {
            "pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {
                "priorityClassName": priority, "containers": [container]}}}}}})

    def log(self, name):
        return self.kubectl("logs", f"{name}-master-0").stdout

    def succeeded(self, name):
        condition = "jsonpath={.status.conditions[?(@.type=='Succeeded')].status}"
        done = self.kubectl("get", "pytorchjob", name, "-o", condition)
        return done.stdout == "True"

    def test_python_of_the_image_runs(self):
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "look"}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": NAME,
                                                      "command": ["python3", "-c", LOOK]}]}})
        self.comes(lambda: self.kubectl("get", "pod", "look", "-o", "jsonpath={.status.phase}").stdout == "Succeeded",
                   self.kubectl("describe", "pod", "look").stdout)
        self.assertEqual(self.kubectl("logs", "look").stdout,
                         "bookworm 3 /usr/bin/python3\n['root', 'usr'] 0\nTrue\nTrue False\n")

    def test_a_job_in_the_image_is_preempted_and_resumes(self):
        for name, value in (("common", 10), ("urgent", 1000)):
            self.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                        "value": value})
        self.job("fit", "common", TRAIN, "1500")
        self.comes(lambda: "step 40" in self.log("fit"), "its first steps")
        self.job("other", "urgent", "import time; time.sleep(2); print('done')")
        self.comes(lambda: self.succeeded("other"), "the urgent job's end")
        self.comes(lambda: "resumed from step" in self.log("fit"), "the first job again")
        self.comes(lambda: self.succeeded("fit"), "the first job's end")
        self.assertIn("fitted 3.0 x + 1.0", self.log("fit"))
        resumed = int(self.log("fit").split("resumed from step ")[1].split()[0])
        self.assertGreaterEqual(resumed, 40)


if __name__ == "__main__":
    unittest.main()
