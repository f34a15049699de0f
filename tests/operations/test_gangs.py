"""Kubernetes' own gangs (scheduling.k8s.io), as kubectl applies them."""

from support import ClusterTest

GANG = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: %(name)s}
spec:
  schedulingPolicy: {gang: {minCount: %(least)d}}
  disruptionMode: {all: {}}
"""

POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: %(group)s-%(number)d}
spec:
  schedulerName: swell
  schedulingGroup: {podGroupName: %(group)s}
  restartPolicy: Never
  containers:
  - {name: main, image: x, resources: {limits: {nvidia.com/gpu: %(gpus)d}}}
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  scheduling: {schedulingPolicy: {gang: {}}}
  template:
    spec:
      schedulerName: swell
      restartPolicy: Never
      containers:
      - {name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}
"""


class Gangs(ClusterTest):
    flags = ("--nodes", "2", "--gpus-per-node", "4")

    def gang(self, name, least, pods, gpus):
        text = GANG % {"name": name, "least": least}
        text += "".join(POD % {"group": name, "number": number, "gpus": gpus} for number in range(pods))
        self.done(self.cluster.kubectl("apply", "-f", "-", input=text))

    def phases(self, name):
        return [pod["status"]["phase"] for pod in self.cluster.get("pods")["items"]
                if pod["spec"].get("schedulingGroup", {}).get("podGroupName") == name]

    def condition(self, name):
        group = self.cluster.get("podgroups.scheduling.k8s.io", name)
        return {one["type"]: (one["status"], one["reason"]) for one in group.get("status", {}).get("conditions", [])}

    def test_a_gang_of_kubernetes_starts_whole_or_not_at_all(self):
        self.gang("fits", 3, 3, 2)
        self.until(lambda: self.phases("fits") == ["Running"] * 3, lambda: str(self.phases("fits")))
        self.until(lambda: self.condition("fits").get("PodGroupInitiallyScheduled") == ("True", "Scheduled"),
                   lambda: str(self.condition("fits")))
        self.gang("waits", 2, 2, 2)
        self.until(lambda: self.condition("waits").get("PodGroupInitiallyScheduled") == ("False", "Unschedulable"),
                   lambda: str(self.condition("waits")))
        self.assertEqual(self.phases("waits"), ["Pending"] * 2)
        self.done(self.cluster.kubectl("delete", "pods", "fits-0", "fits-1", "fits-2"))
        self.until(lambda: self.phases("waits") == ["Running"] * 2, lambda: str(self.phases("waits")))

        # A Job that says so is one, with a Workload and a group of its own.
        self.done(self.cluster.kubectl("delete", "pods", "waits-0", "waits-1"))
        self.done(self.cluster.kubectl("apply", "-f", "-", input=JOB))
        self.until(lambda: self.cluster.get("workloads")["items"])
        [workload] = self.cluster.get("workloads")["items"]
        self.assertEqual(workload["spec"]["controllerRef"], {"apiGroup": "batch", "kind": "Job", "name": "job"})
        name = workload["metadata"]["name"]
        self.until(lambda: self.phases(name) == ["Running"] * 4, lambda: str(self.phases(name)))

        # `podgroups` alone are Swell's, which say as much in columns.
        self.assertIn(f"podgroup.{name}", self.done(self.cluster.kubectl("get", "podgroups")))
        self.refused(self.cluster.kubectl("apply", "-f", "-", input=GANG % {"name": "none", "least": 0}),
                     "spec.schedulingPolicy.gang.minCount")
