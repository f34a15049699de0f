"""Jobs outlive the cluster's process: swell down lets them save, swell up resumes them, and no failure is counted."""

import os
import signal
import subprocess

from support import SWELL, ClusterTest, run
from test_failures import training_job

SAVES = "trap 'echo saved; exit 0' TERM; echo working; while true; do sleep 0.1; done"
IGNORES = "trap '' TERM; echo deaf; while true; do sleep 0.1; done"


class Restarts(ClusterTest):
    flags = ("--nodes", "1", "--gpus-per-node", "4", "--runtime", "process")

    def tearDown(self):
        for kind in ("trainingjobs", "jobs", "pods"):
            self.cluster.kubectl("delete", kind, "--all", "--wait=false", "--grace-period=0", "--force")

    def apply(self, text):
        self.done(self.cluster.swell("apply", "-f", "-", input=text))

    def logs(self, *words):
        done = self.cluster.swell("logs", *words)
        return done.stdout + done.stderr

    def uid(self, pod):
        """The uid of a pod that its node has reported to run. One that ends before starts again under its own uid."""
        self.until(lambda: self.cluster.get("pod", pod)["status"]["phase"] == "Running")
        return self.cluster.get("pod", pod)["metadata"]["uid"]

    def running_anew(self, pod, old):
        def holds():
            form = "jsonpath={.metadata.uid} {.status.phase}"
            found = self.cluster.kubectl("get", "pod", pod, "-o", form).stdout.split()
            return len(found) == 2 and found[0] != old and found[1] == "Running"
        self.until(holds, lambda: self.cluster.kubectl("get", "pods", "-o", "wide").stdout)

    def not_counted(self, name):
        status = self.cluster.get("trainingjob", name)["status"]
        self.assertEqual(status.get("restarts", 0), 0, status)
        self.assertIn("The node went down while the pod ran", self.cluster.swell("events").stdout)

    def test_a_job_saves_and_goes_on(self):
        self.apply(training_job("saves", SAVES, gpus=2))
        self.until(lambda: "working" in self.logs("saves"))
        old = self.uid("saves-worker-0")
        self.done(run(SWELL, "down", "--data-dir", self.cluster.directory))
        self.cluster.up()
        self.running_anew("saves-worker-0", old)
        self.assertIn("saved", self.logs("saves", "--attempt", "1"))
        self.assertIn("attempt 1, its node was shut down", self.logs("saves"))
        self.not_counted("saves")

    def test_now_waits_for_nobody(self):
        self.apply(training_job("deaf", IGNORES))
        self.until(lambda: "deaf" in self.logs("deaf"))
        old = self.uid("deaf-worker-0")
        down = run(SWELL, "down", "--now", "--data-dir", self.cluster.directory)
        self.assertNotIn("30 s", self.done(down) + down.stderr)
        self.cluster.up()
        self.running_anew("deaf-worker-0", old)
        self.not_counted("deaf")

    def test_ctrl_c_says_what_it_waits_for(self):
        self.apply(training_job("deaf", IGNORES))
        self.until(lambda: "deaf" in self.logs("deaf"))
        old = self.uid("deaf-worker-0")
        self.done(run(SWELL, "down", "--now", "--data-dir", self.cluster.directory))
        with subprocess.Popen([SWELL, "up", "--data-dir", self.cluster.directory], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True) as up:
            try:
                self.running_anew("deaf-worker-0", old)
                # Until it says so, it hears the signal.
                self.until(lambda: "deaf" in self.cluster.kubectl("logs", "deaf-worker-0").stdout)
                up.send_signal(signal.SIGINT)
                self.assertIn("Ctrl-C again", up.stderr.readline())
                up.send_signal(signal.SIGINT)
                self.assertEqual(up.wait(20), 0)
            finally:
                up.kill()
                up.wait(20)
                self.cluster.up()  # for the next test

    def test_a_machine_that_loses_power(self):
        """Swell and all that it started are killed."""
        self.apply(training_job("cut", SAVES, restart="OnFailure"))
        self.until(lambda: "working" in self.logs("cut"))
        old = self.uid("cut-worker-0")
        self.cluster.kill()
        left = self.processes()
        self.assertTrue(left)
        for process in left:
            os.kill(process, signal.SIGKILL)
        self.until(lambda: not self.processes())
        self.cluster.up()
        self.running_anew("cut-worker-0", old)
        self.not_counted("cut")

    def test_logs_of_what_had_ended_stay(self):
        self.apply(training_job("ended", "echo finished"))
        self.done(self.cluster.kubectl("create", "job", "batch", "--image", "busybox", "--", "echo", "batch is over"))
        self.until(lambda: "finished" in self.logs("ended") and "batch is over" in self.logs("batch"))
        self.until(lambda: self.cluster.get("job", "batch")["status"].get("succeeded") == 1)
        for _ in range(2):
            self.cluster.down()
            self.cluster.up()
            self.assertIn("finished", self.logs("ended"))
            self.assertIn("batch is over", self.logs("batch"))

    def processes(self):
        """Those of this cluster's containers: their shims work in its directory."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = [os.readlink(f"/proc/{process}/cwd"), *(os.readlink(f"/proc/{process}/fd/{fd}")
                                                                for fd in os.listdir(f"/proc/{process}/fd"))]
            except OSError:
                continue
            if any(str(self.cluster.directory / "pods") in word for word in words):
                found.append(int(process))
        return found
