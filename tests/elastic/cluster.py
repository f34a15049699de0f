"""An elastic TrainingJob on an embedded cluster with real processes: what the tests here share.

The program is $SWELL_BIN/swell (default: build/bin). What always holds: the cluster and its data are gone when the test
is; every wait is bounded.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN") or ROOT / "build" / "bin")
SCRIPT = ROOT / "bench" / "elastic_steps.py"
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402

JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  roles:
    worker:
      replicas: {replicas}
      restartPolicy: OnFailure
      elastic: {{minReplicas: 1, maxReplicas: 4}}
      template:
        spec:
          containers:
          - name: main
            image: python
            command: [python3, {script}, {steps}, '{count}', '{pace}']
            env: [{{name: PYTHONPATH, value: {root}/sdk/python}}, {{name: OMP_NUM_THREADS, value: '1'}}]
            resources: {{limits: {{nvidia.com/gpu: 1}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}, {{name: bench, mountPath: {bench}}}]
          volumes:
          - {{name: out, hostPath: {{path: {out}}}}}
          - {{name: bench, hostPath: {{path: {bench}}}}}
"""
# A pod that takes two places of a job.
URGENT = """
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  schedulerName: swell
  priorityClassName: build
  containers: [{name: main, image: bash, command: [sleep, infinity], resources: {limits: {nvidia.com/gpu: 2}}}]
"""


class ClusterTest(unittest.TestCase):
    gpus = 4  # of the cluster's own node

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="swell-resize-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.steps_file = self.folder / "out" / "steps"
        self.steps_file.parent.mkdir()
        self.steps_file.touch()
        # The root of a pod is nobody here.
        self.steps_file.parent.chmod(0o777)
        self.steps_file.chmod(0o666)
        self.pace_file = self.folder / "out" / "pace"
        self.pace(0.02)
        self.environment = {**os.environ, "KUBECONFIG": str(self.folder / "data" / "kubeconfig")}
        self.up()
        self.addCleanup(self.down)

    def up(self):
        self.cluster = subprocess.Popen(
            [BIN / "swell", "up", "--data-dir", self.folder / "data", "--nodes", "1", "--gpus-per-node", str(self.gpus),
             "--cpus", "16"], stdout=subprocess.PIPE, text=True)
        self.assertTrue(self.cluster.stdout.readline())

    def down(self):
        self.cluster.send_signal(signal.SIGTERM)
        self.cluster.wait(LIMIT_S)
        self.cluster.stdout.close()

    def pace(self, seconds):
        """From now on a step takes so long, or what it takes by itself."""
        new = self.pace_file.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self.pace_file)

    def submit(self, replicas, steps):
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(
            replicas=replicas, script=SCRIPT, steps=self.steps_file, count=steps, pace=self.pace_file, root=ROOT,
            out=self.steps_file.parent, bench=SCRIPT.parent))

    def run_command(self, *words, stdin=None, code=0):
        """What it prints. `code`: with which it has to end; None: with any."""
        program = BIN / "swell" if words[0] == "swell" else words[0]
        done = subprocess.run([program, *words[1:]], env=self.environment, input=stdin, text=True, capture_output=True)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def job(self):
        return json.loads(self.run_command("kubectl", "get", "trainingjob", "train", "-o", "json"))

    def steps(self):
        rows = [line.split() for line in self.steps_file.read_text().splitlines()]
        return [(float(row[0]), int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    def wait(self, what, holds, seconds=LIMIT_S):
        if not until(holds, seconds, pause=0.1):
            pods = self.run_command("kubectl", "get", "pods", "-o", "wide")
            log = self.run_command("kubectl", "logs", "train-worker-0", "--tail=20", code=None)
            self.fail(f"not within {seconds} s: {what}; steps {self.steps()[-3:]}\n{pods}\n{log}")

    def wait_world(self, world):
        self.wait(f"{world} members", lambda: len(self.steps()) >= 5 and
                  all(step[2] == world for step in self.steps()[-5:]))

    def pods(self):
        items = json.loads(self.run_command("kubectl", "get", "pods", "-l", "swell.dev/pod-group=train", "-o", "json"))
        return sorted(items["items"], key=lambda pod: pod["metadata"]["name"])

    def running(self):
        """(name, uid, restarts, process) of each pod that the cluster knows to run."""
        return [(pod["metadata"]["name"], pod["metadata"]["uid"], status["restartCount"], status["containerID"])
                for pod in self.pods() for status in pod["status"].get("containerStatuses", [])
                if "running" in status["state"]]

    def all_running(self, members):
        """The same, once they are as many: members that train hear of it a moment later."""
        seen = []

        def as_many():
            seen[:] = self.running()
            return len(seen) == members
        self.wait(f"{members} are known to run", as_many)
        return seen
