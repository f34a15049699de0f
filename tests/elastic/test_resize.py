"""An elastic TrainingJob made smaller and larger while it trains: with swell, with kubectl, by somebody who needs the
place.
"""

import subprocess
import unittest

from cluster import URGENT, ClusterTest

# Ten minutes of them, at the pace that it is told: more than it can make while this test looks.
STEPS, STEP_SECONDS = 1200, 0.5


def turns(sizes):
    """Those where growth turns into shrinking or the other way: members may come and go together or one by one."""
    found = [0]
    for size in sizes:
        if size == found[-1]:
            continue
        if len(found) > 1 and (size > found[-1]) == (found[-1] > found[-2]):
            found.pop()
        found.append(size)
    return found[1:]


class ResizeTest(ClusterTest):
    def test_smaller_and_larger_while_it_trains(self):
        self.pace(STEP_SECONDS)
        self.submit(replicas=4, steps=STEPS)
        self.wait_world(4)
        self.wait("what they use is measured", lambda: self.used() == [f"train-worker-{i}" for i in range(4)])
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
        self.pace(0)
        self.wait("its end", lambda: self.job()["status"]["phase"] == "Succeeded")
        steps = [step for _, step, _ in self.steps()]
        self.assertEqual(steps, list(range(1, STEPS + 1)), "a step was lost or done twice")
        sizes = [entry["replicas"] for entry in self.job()["status"]["elastic"]["history"]]
        self.assertEqual(turns(sizes)[:5], [4, 2, 4, 2, 4], sizes)

    def used(self):
        """Which pods use memory, in kubectl's words."""
        # A node that does not answer in time is left out, and if it is the only one, kubectl fails.
        told = subprocess.run(["kubectl", "top", "pods", "--no-headers"], env=self.environment, text=True,
                              capture_output=True).stdout
        rows = [line.split() for line in told.splitlines()]
        return [row[0] for row in rows if row[2].endswith("Mi") and int(row[2][:-2]) > 0]


if __name__ == "__main__":
    unittest.main()
