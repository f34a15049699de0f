"""Two TrainingJobs with `mode: Goodput` that scale differently, as real processes on one node with few GPUs: the one
that scales gets the GPUs, the other keeps its minimum, and neither loses a step.
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

from cluster import LIMIT_S, ROOT, ClusterTest, until

STEPS = 250
SCRIPT = Path(__file__).with_name("goodput_steps.py")

JOB = """
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  autoscaling: {{mode: Goodput, intervalSeconds: 1, observations: 2}}
  roles:
    worker:
      replicas: 1
      restartPolicy: OnFailure
      elastic: {{minReplicas: 1, maxReplicas: 3}}
      template:
        spec:
          containers:
          - name: main
            image: python
            command: [python3, {script}, {out}/{name}, '{steps}', '{serial}', '{shared}']
            env: [{{name: PYTHONPATH, value: {root}/sdk/python}}, {{name: OMP_NUM_THREADS, value: '1'}}]
            resources: {{limits: {{nvidia.com/gpu: 1}}}}
            volumeMounts: [{{name: out, mountPath: {out}}}, {{name: here, mountPath: {here}}}]
          volumes:
          - {{name: out, hostPath: {{path: {out}}}}}
          - {{name: here, hostPath: {{path: {here}}}}}
"""


class GoodputTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.out = self.steps_file.parent
        self.names = []

    def submit(self, name, steps, serial, shared):
        out = self.out / name
        out.touch()
        out.chmod(0o666)
        self.names.append(name)
        self.run_command("kubectl", "apply", "-f", "-", stdin=JOB.format(
            name=name, script=SCRIPT, steps=steps, serial=serial, shared=shared, root=ROOT, out=self.out,
            here=SCRIPT.parent))

    def status(self, name):
        """{} where the server does not answer in time, on a machine that has much else to do; who waits asks again."""
        done = subprocess.run(["kubectl", "get", "trainingjob", name, "-o", "json"], env=self.environment, text=True,
                              capture_output=True)
        return json.loads(done.stdout).get("status", {}) if done.returncode == 0 else {}

    def size(self, name):
        return self.status(name).get("elastic", {}).get("replicas", 0)

    def measured(self, name):
        return self.status(name).get("goodput", {}).get("measuredAt", 0)

    def wait(self, what, holds, seconds=LIMIT_S):
        if until(holds, seconds, pause=0.2):
            return
        told = [self.run_command("swell", "why", name) for name in self.names]
        events = self.run_command("kubectl", "get", "events")
        self.fail(f"not within {seconds} s: {what}\n{''.join(told)}\n{events}")

    def fitted(self, name, members):
        """Records per second that the model expects of a size that was not measured; None: it expects nothing yet."""
        curve = self.status(name).get("goodput", {}).get("curve", [])
        return next((size["perSecond"] for size in curve if size["members"] == members and size["source"] == "Fitted"),
                    None)

    def steps_of(self, name):
        rows = [line.split() for line in (self.out / name).read_text().splitlines()]
        return [(int(row[0]), int(row[1]), float(row[2])) for row in rows if len(row) == 3]

    def alone(self, steps, serial, shared):
        """The losses of one process without a cluster."""
        path = self.folder / "alone"
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}/sdk/python", "SWELL_CHECKPOINT_DIR": str(self.folder / "c")}
        subprocess.run(["/usr/bin/python3", SCRIPT, path, str(steps), str(serial), str(shared)], env=environment,
                       check=True)
        return [float(line.split()[2]) for line in path.read_text().splitlines()]

    def test_gpus_go_to_the_job_that_makes_most_of_them(self):
        self.submit("flat", STEPS, 0.3, 0.3)
        self.wait("the flat job is measured with 2 members", lambda: self.measured("flat") >= 2)
        self.submit("scales", STEPS, 0.0, 0.9)
        expected = []
        self.wait("the model of the scaling job says what 3 members will do",
                  lambda: (speed := self.fitted("scales", 3)) is not None and not expected.append(speed))
        self.wait("the scaling job has 3 members", lambda: self.size("scales") == 3 and self.size("flat") == 1)
        self.wait("it is measured there", lambda: self.measured("scales") == 3)
        measured = next(point for point in self.status("scales")["goodput"]["points"] if point["members"] == 3)
        # Beside other tests a step of 0.3 s may last 50 ms longer. One member that adds nothing is 0.33.
        self.assertAlmostEqual(expected[0] / measured["perSecond"], 1, delta=0.25, msg=f"{expected} {measured}")
        why = self.run_command("swell", "why", "scales")
        self.assertRegex(why, r"Goodput:  3 members make \d+ records per second, [\d.]+ times what 1 makes")
        self.assertRegex(why, r"Next GPU: worth .* here; flat with 1: [+-]?\d+ %")
        described = self.run_command("swell", "describe", "scales")
        self.assertIn("3 (now)", described)
        self.assertRegex(described, r"Grew from \d to \d: \+\d+ % goodput measured; the resize took \d")
        goodput = self.status("scales")["goodput"]
        self.assertEqual([point["members"] for point in goodput["points"]][0], 1)
        self.assertTrue(all("syncSeconds" in point for point in goodput["points"] if point["members"] > 1), goodput)
        events = self.run_command("kubectl", "get", "events")
        self.assertRegex(events, r"gave up: flat -\d+ %")
        self.assertRegex(events, r"; 1 continues; -\d+ % goodput expected, \+\d+ % for scales")
        self.assertNotIn(" 0.0 s to resize", events)
        for name in ("flat", "scales"):
            self.wait(f"the end of {name}", lambda: self.status(name).get("phase") == "Succeeded", 4 * LIMIT_S)
            steps = self.steps_of(name)
            self.assertEqual([step for step, _, _ in steps], list(range(1, STEPS + 1)), "a step was lost or done twice")
        # Rank 0 sees the loss of its share, so steps of one member alone are compared.
        alone = self.alone(STEPS, 0, 0)
        whole = [(step, loss) for step, world, loss in self.steps_of("flat") if world == 1 and step > 60]
        self.assertGreater(len(whole), 10)
        for step, loss in whole:
            self.assertAlmostEqual(loss, alone[step - 1], delta=0.01 * max(0.01, alone[step - 1]))


if __name__ == "__main__":
    unittest.main()
