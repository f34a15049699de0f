"""Arena's elastic Horovod job on real processes: its launcher sees workers come and go, and is the same all the time.

The launcher does what horovodrun does: it asks for its hosts again and again. It reaches them by ssh.
"""

import json
import unittest

from cluster import URGENT, ClusterTest

# Prints its hosts whenever they have changed, and how the first of them calls itself.
LAUNCHER = """
last=
until [ -e {out}/end ]; do
  hosts=$(/etc/edl/discover_hosts.sh | sort | tr '\\n' ' ')
  if [ -n "$hosts" ] && [ "$hosts" != "$last" ]; then
    echo "hosts: $hosts from $(ssh -o StrictHostKeyChecking=no ${{hosts%%:*}} -p 22 hostname </dev/null)"
    last=$hosts
  fi
  sleep 0.2
done
"""


def hosts(workers):
    return f"hosts: {''.join(f'et-worker-{i}:1 ' for i in range(workers))} from et-worker-0"


class HorovodTest(ClusterTest):
    def arena(self, *words, code=0):
        return self.run_command("swell", "arena", *words, code=code)

    def log(self):
        return self.arena("logs", "et", code=None).splitlines()

    def wait_hosts(self, workers):
        self.wait(f"the launcher sees {workers} hosts", lambda: self.log()[-1:] == [hosts(workers)])

    def pod(self, name):
        return json.loads(self.run_command("swell", "get", "pod", name, "-o", "json"))

    def test_workers_come_and_go_while_the_launcher_runs(self):
        out = self.steps_file.parent
        self.arena("submit", "etjob", "--name=et", "--workers=2", "--min-workers=1", "--max-workers=3", "--gpus=1",
                   "--image=bash", f"--data-dir={out}", LAUNCHER.format(out=out))
        self.wait_hosts(2)
        launcher = self.pod("et-launcher")["metadata"]["uid"]
        said = self.arena("scaleout", "etjob", "--name", "et", "--count", "1")
        self.assertIn("mpijob.kubeflow.org/et scaled: 2 -> 3 workers\n", said)
        self.assertIn("The job et runs with 3 workers", said)
        self.wait_hosts(3)
        self.assertIn("more than spec.elasticPolicy.maxReplicas, 3; it has 3",
                      self.arena("scaleout", "etjob", "--name=et", code=1))
        # Two of four GPUs are taken: the last worker gives up its place, and gets it back.
        self.run_command("swell", "apply", "-f", "-", stdin=URGENT)
        self.wait_hosts(2)
        self.assertIn("RUNNING  ETJOB", self.arena("list"))
        self.assertIn("timed out after 1s: 2 of 3 workers run; waits for 1 more", self.scale_in_and_out())
        self.run_command("swell", "delete", "pod", "urgent", "--grace-period=1")
        self.wait_hosts(3)
        self.arena("scalein", "etjob", "--name=et", "--count=2")
        self.wait_hosts(1)
        self.assertIn("fewer than spec.elasticPolicy.minReplicas, 1; it has 1",
                      self.arena("scalein", "etjob", "--name=et", code=1))
        pod = self.pod("et-launcher")
        self.assertEqual(pod["metadata"]["uid"], launcher)
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)
        self.assertEqual([line for line in self.log() if not line.startswith("hosts: ")], [])
        (out / "end").touch()
        self.wait("the job ends with its launcher", lambda: "SUCCEEDED" in self.arena("get", "et"))
        self.arena("delete", "et")

    def scale_in_and_out(self):
        """What the second says, while there is no room."""
        self.arena("scalein", "etjob", "--name=et")
        return self.arena("scaleout", "etjob", "--name=et", "--timeout=1s", code=1)


if __name__ == "__main__":
    unittest.main()
