"""An elastic TrainingJob on an embedded cluster, made smaller and larger while it trains: with swell, with kubectl, by
somebody who needs the place. The program is $SWELL_BIN/swell (default: build/bin).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN") or ROOT / "build" / "bin")
SCRIPT = ROOT / "bench" / "elastic_steps.py"

JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  roles:
    worker:
      replicas: 4
      restartPolicy: OnFailure
      elastic: {{minReplicas: 1, maxReplicas: 4}}
      template:
        spec:
          containers:
          - name: main
            image: python
            command: [python3, {script}, {steps}, '{count}', '0.02']
            env: [{{name: PYTHONPATH, value: {root}/sdk/python}}, {{name: OMP_NUM_THREADS, value: '1'}}]
            resources: {{limits: {{nvidia.com/gpu: 1}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}, {{name: bench, mountPath: {bench}}}]
          volumes:
          - {{name: out, hostPath: {{path: {out}}}}}
          - {{name: bench, hostPath: {{path: {bench}}}}}
"""

URGENT = """
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  schedulerName: swell
  priorityClassName: build
  containers: [{name: main, image: bash, command: [sleep, infinity], resources: {limits: {nvidia.com/gpu: 2}}}]
"""


class ResizeTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="swell-resize-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.steps_file = self.folder / "out" / "steps"
        self.steps_file.parent.mkdir()
        self.steps_file.touch()
        self.cluster = subprocess.Popen(
            [BIN / "swell", "up", "--data-dir", self.folder / "data", "--nodes", "1", "--gpus-per-node", "4", "--cpus",
             "16"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.down)
        self.assertTrue(self.cluster.stdout.readline())
        self.environment = {**os.environ, "KUBECONFIG": str(self.folder / "data" / "kubeconfig")}

    def down(self):
        self.cluster.send_signal(signal.SIGTERM)
        self.cluster.wait(60)
        self.cluster.stdout.close()

    def run_command(self, *words, stdin=None, code=0):
        program = BIN / "swell" if words[0] == "swell" else words[0]
        done = subprocess.run([program, *words[1:]], env=self.environment, input=stdin, text=True, capture_output=True)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def job(self):
        return json.loads(self.run_command("kubectl", "get", "trainingjob", "train", "-o", "json"))

    def steps(self):
        rows = [line.split() for line in self.steps_file.read_text().splitlines()]
        return [(float(row[0]), int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    def wait(self, what, holds, seconds=90):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                pods = self.run_command("kubectl", "get", "pods", "-o", "wide")
                log = self.run_command("kubectl", "logs", "train-worker-0", "--tail=20")
                self.fail(f"not within {seconds} s: {what}; steps {self.steps()[-3:]}\n{pods}\n{log}")
            time.sleep(0.1)

    def wait_world(self, world):
        self.wait(f"{world} members", lambda: len(self.steps()) >= 5 and
                  all(step[2] == world for step in self.steps()[-5:]))

    def test_smaller_and_larger_while_it_trains(self):
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(
            script=SCRIPT, steps=self.steps_file, count=1500, root=ROOT, out=self.steps_file.parent,
            bench=SCRIPT.parent))
        self.wait_world(4)
        began = [pod["metadata"]["uid"] for pod in self.pods()][:2]
        self.assertEqual(self.run_command("swell", "scale", "train", "--replicas", "2"),
                         "trainingjob.swell.dev/train scaled: worker 4 -> 2 (1 to 4)\n")
        self.wait_world(2)
        text = self.run_command("swell", "scale", "train", "--replicas", "5", code=1)
        self.assertIn("5 replicas are more than 4 (spec.roles.worker.elastic.maxReplicas)", text)
        self.run_command("kubectl", "scale", "trainingjob/train", "--replicas=4")
        self.wait_world(4)
        # Somebody more important takes two places, and gives them back.
        self.run_command("kubectl", "apply", "-f", "-", stdin=URGENT)
        self.wait_world(2)
        self.wait("it says for what it waits", lambda: "waits for 2 more: " in self.run_command("swell", "get"))
        self.run_command("kubectl", "delete", "pod", "urgent", "--grace-period=1")
        self.wait_world(4)
        self.assertEqual([pod["metadata"]["uid"] for pod in self.pods()][:2], began)
        self.wait("the speed is known", lambda: "throughput" in self.job()["status"]["elastic"]["history"][-1])
        text = self.run_command("swell", "describe", "train")
        for part in ("Size:", "4 │█", "scaled from 4 to 2", "Shrunk from 4 to 2 replicas, as asked (1 to 4)",
                     "Preempted", "speed"):
            self.assertIn(part, text)
        self.wait("its end", lambda: self.job()["status"]["phase"] == "Succeeded", 180)
        steps = [step for _, step, _ in self.steps()]
        self.assertEqual(steps, list(range(1, 1501)), "a step was lost or done twice")
        sizes = [entry["replicas"] for entry in self.job()["status"]["elastic"]["history"]]
        self.assertEqual(sizes[:5], [4, 2, 4, 2, 4])

    def pods(self):
        items = json.loads(self.run_command("kubectl", "get", "pods", "-l", "swell.dev/pod-group=train", "-o", "json"))
        return sorted(items["items"], key=lambda pod: pod["metadata"]["name"])


if __name__ == "__main__":
    unittest.main()
