"""A job whose state is large gives its GPU back before the state is on disk, and loses no step by it.

The process leaves its state in memory and ends; the node writes it to disk while the other job uses the GPU. What
always holds: the test waits for what happens, not for how long it takes.
"""

import re
import subprocess
import unittest

from cluster import BIN, ROOT, ClusterTest

SCRIPT = '''
import sys, time
import swell

job = swell.Job(backend="gloo")

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(12 << 20))

    def forward(self, numbers):
        return self.weight[:8].sum() * numbers.mean()


model = job.parallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
numbers = [torch.full((4,), float(i)) for i in range(64)]
for batch in job.batches(numbers, batch_size=4, epochs=10_000, keep={"model": model, "optimizer": optimizer}):
    print(f"trains step {job.step}", flush=True)
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()
    time.sleep(0.05)
'''

JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: train}}
spec:
  checkpoint: {{intervalSeconds: 3600}}
  roles:
    worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: main
            image: python
            command: [python3, {out}/train.py]
            env: [{{name: PYTHONPATH, value: {root}/sdk/python}}, {{name: OMP_NUM_THREADS, value: '1'}}]
            resources: {{limits: {{nvidia.com/gpu: 1}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}{more_mounts}]
          volumes: [{{name: out, hostPath: {{path: {out}}}}}{more_volumes}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: urgent}}
value: 1000000
"""

URGENT = """
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: urgent
  restartPolicy: Never
  containers:
  - {name: main, image: busybox, command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}
"""


class ReclaimLargeTest(ClusterTest):
    gpus = 1

    def start(self, **more):
        out = self.steps_file.parent
        (out / "train.py").write_text(SCRIPT)
        more = {"more_mounts": "", "more_volumes": "", **more}
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(out=out, root=ROOT, **more))
        self.wait("it trains", lambda: "trains step 3\n" in self.log())

    def log(self):
        return self.run_command("swell", "logs", "train", code=None)

    def preempt(self, meanwhile=lambda: None):
        """The step that was saved. `meanwhile`: what happens while the urgent pod runs."""
        self.run_command("kubectl", "apply", "-f", "-", stdin=URGENT)
        self.wait("the urgent pod runs", lambda: self.phase("urgent") == "Running")
        meanwhile()
        self.run_command("kubectl", "delete", "pod", "urgent", "--now")
        self.wait("it is resumed", lambda: "continues from step" in self.log())
        log = self.log()
        saved = int(re.search(r"checkpoint saved step=(\d+)", log)[1])
        self.assertEqual(int(re.search(r"continues from step (\d+)", log)[1]), saved, log)
        self.wait("it trains again", lambda: f"trains step {saved}\n" in self.log())
        return saved

    def phase(self, pod):
        return self.run_command("kubectl", "get", "pod", pod, "-o", "jsonpath={.status.phase}", code=None)

    def checkpoint(self):
        folders = list((self.folder / "data" / "checkpoints" / "default").glob("train-*"))
        self.assertEqual(len(folders), 1, folders)
        return folders[0]

    def check_disk(self, step):
        """The node wrote it, and torch reads it."""
        code = (f"import swell; found = swell.CheckpointManager({str(self.checkpoint())!r}).load({step});"
                "print(found.step, tuple(found.state['state']['keep']['model'].values())[0].shape)")
        self.assertTrue(self.run_command("env", f"PYTHONPATH={ROOT}/sdk/python", "/usr/bin/python3", "-c", code)
                        .startswith(f"{step} torch.Size([{12 << 20}])"))

    def test_the_state_reaches_the_disk_and_no_step_is_lost(self):
        self.start()
        step = self.preempt()
        self.assertIn("state persisted", (self.folder / "data" / "swell.log").read_text())
        self.check_disk(step)

    def test_shared_memory_of_the_jobs_own_serves_too(self):
        self.start(more_mounts=", {name: shm, mountPath: /dev/shm}",
                   more_volumes=", {name: shm, emptyDir: {medium: Memory}}")
        self.check_disk(self.preempt())

    def fill_disk(self):
        """The disk of the checkpoints is too small for the state."""
        place = str(self.folder / "data" / "checkpoints")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=711", "swell", place], check=False).returncode:
            self.skipTest("no file system of its own")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)

    def make_room(self):
        place = str(self.folder / "data" / "checkpoints")
        subprocess.run(["mount", "-o", "remount,size=400m", place], check=True)

    def test_a_full_disk_is_told_and_waited_for(self):
        self.fill_disk()
        self.start()

        def meanwhile():
            self.wait("it is told", lambda: "MiB are missing" in self.run_command("kubectl", "get", "events"))
            self.make_room()

        self.check_disk(self.preempt(meanwhile))

    def test_the_next_agent_tries_a_full_disk_again(self):
        self.fill_disk()
        self.start()

        def meanwhile():
            self.wait("it is told", lambda: "MiB are missing" in self.run_command("kubectl", "get", "events"))
            self.cluster.kill()
            self.cluster.wait()
            self.cluster.stdout.close()
            self.make_room()
            self.up()

        self.check_disk(self.preempt(meanwhile))

    def test_who_stops_the_cluster_hears_of_a_full_disk(self):
        self.fill_disk()
        self.start()
        with subprocess.Popen([BIN / "swell", "down", "--data-dir", self.folder / "data"], stderr=subprocess.PIPE,
                              text=True) as down:
            line = next(line for line in down.stderr if "not on disk yet" in line)
            self.assertRegex(line, r"\d+ MiB are missing\. It is lost in \d+ s; to give it up now: swell down --now")
            self.make_room()
            down.stderr.read()
        self.assertEqual(down.returncode, 0)
        self.assertEqual(len(list(self.checkpoint().glob("step-*.json"))), 1)

    def test_a_cluster_that_stops_writes_it_first(self):
        self.start()
        self.down()
        manifests = list(self.checkpoint().glob("step-*.json"))
        self.assertEqual(len(manifests), 1, manifests)
        step = int(manifests[0].stem.split("-")[1])
        self.up()
        self.wait("it is resumed", lambda: f"continues from step {step}" in self.log())


if __name__ == "__main__":
    unittest.main()
