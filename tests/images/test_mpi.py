"""MPIJobs as Kubeflow's users write them, in an image that has Open MPI and OpenSSH, and neither kubectl nor swell.

Skipped, with the reason, on machines that cannot make the image.
"""

import unittest

import debian
import layout
from image_cluster import ClusterTest, until

# As Debian's package leaves it, for root; and as Kubeflow's base image changes it, for a user.
PLAIN, BASE = "walk/mpi:12", "walk/mpi-base:12"
BASE_FILES = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
                  b"mpiuser:x:1000:1000::/home/mpiuser:/bin/bash\n",
    "etc/ssh/ssh_config.d/mpi.conf": b"Port 2222\n",
    "home/mpiuser/.sshd_config": b"PidFile /home/mpiuser/sshd.pid\nHostKey /home/mpiuser/.ssh/id_rsa\n"
                                 b"StrictModes no\nPort 2222\n",
}
AS_ROOT = "mpirun --allow-run-as-root -n 2 hostname && /etc/mpi/discover_hosts.sh | sort"


class MpiTest(ClusterTest):
    up_flags = ("--nodes", "1", "--gpus-per-node", "0")

    @classmethod
    def layouts(cls):
        try:
            plain = debian.image("mpi")
        except debian.CannotBeHad as why:
            raise unittest.SkipTest(str(why)) from why
        layout.with_layer(plain, cls.scratch / "base", layout.tar(BASE_FILES), [])
        return {PLAIN: plain, BASE: cls.scratch / "base"}

    def submit(self, name, launcher, worker, **spec):
        def role(replicas, container):
            return {"replicas": replicas, "template": {"spec": {"containers": [{"name": "main", **container}]}}}
        roles = {"Launcher": role(1, launcher), "Worker": role(2, worker)}
        self.apply({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name},
                    "spec": {"slotsPerWorker": 1, **spec, "mpiReplicaSpecs": roles}})

    def log_of_success(self, name):
        """What the launcher has said, once the job has succeeded, without Open MPI's warning
        of a race of its own: mpirun moves a child to a process group that the child, started
        already, has made itself."""
        state = "jsonpath={.status.conditions[-1:].type}"
        ended = until(lambda: self.kubectl("get", "mpijob", name, "-o", state).stdout in ("Succeeded", "Failed"),
                      pause=0.2)
        log = self.kubectl("logs", f"{name}-launcher").stdout
        self.assertTrue(ended, log + self.kubectl("describe", "pods").stdout)
        self.assertEqual(self.kubectl("get", "mpijob", name, "-o", state).stdout, "Succeeded", log)
        return sorted(line for line in log.splitlines() if "plm:rsh: Warning: setpgid" not in line)

    def test_a_worker_without_a_command_is_reached_by_ssh(self):
        self.submit("plain", {"image": PLAIN, "command": ["sh", "-c", AS_ROOT]}, {"image": PLAIN})
        self.assertEqual(self.log_of_success("plain"),
                         ["plain-worker-0", "plain-worker-0:1", "plain-worker-1", "plain-worker-1:1"])

    def test_the_example_of_kubeflow_runs_as_its_user(self):
        container = {"image": BASE, "securityContext": {"runAsUser": 1000}}
        self.submit("pi", {**container, "command": ["mpirun"], "args": ["-n", "2", "hostname"]},
                    {**container, "command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]},
                    sshAuthMountPath="/home/mpiuser/.ssh", runPolicy={"cleanPodPolicy": "Running"})
        self.assertEqual(self.log_of_success("pi"), ["pi-worker-0", "pi-worker-1"])

    def test_a_worker_that_serves_no_ssh_is_named(self):
        self.submit("deaf", {"image": PLAIN, "env": [{"name": "MPI_SSH_SECONDS", "value": "1"}],
                             "command": ["sh", "-c", "/etc/mpi/kubexec.sh deaf-worker-0 true 2>&1; exit 0"]},
                    {"image": PLAIN, "command": ["sleep", "infinity"]})
        said = self.log_of_success("deaf")[0]
        self.assertIn("kubexec.sh: worker deaf-worker-0 cannot be reached by SSH: ssh: ", said)


if __name__ == "__main__":
    unittest.main()
