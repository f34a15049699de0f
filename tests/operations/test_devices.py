"""Devices by claims (resource.k8s.io), as kubectl applies them, for pods that are processes."""

import json

from support import ClusterTest

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.swell.dev, allocationMode: ExactCount, count: 2}
"""

SHARED = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: last}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.swell.dev
        selectors:
        - cel: {expression: 'device.attributes["gpu.swell.dev"].index == 3'}
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  schedulerName: swell
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: devices, %(claim)s}]
  containers:
  - name: main
    image: python
    command: [sh, -c, 'echo "devices $CUDA_VISIBLE_DEVICES"; exec sleep 1000']
    resources: {claims: [{name: devices}]}
"""


class Devices(ClusterTest):
    flags = ("--nodes", "1", "--gpus-per-node", "4", "--runtime", "process")

    def apply(self, text):
        self.done(self.cluster.kubectl("apply", "-f", "-", input=text))

    def pod(self, name, claim):
        self.apply(POD % {"name": name, "claim": claim})

    def seen(self, pod):
        """The devices that the pod's container sees."""
        self.until(lambda: "devices" in self.cluster.kubectl("logs", pod).stdout,
                   lambda: self.cluster.kubectl("describe", "pod", pod).stdout)
        return self.cluster.kubectl("logs", pod).stdout.split()[1:]

    def claims(self):
        return {claim["metadata"]["name"]: claim for claim in self.cluster.get("resourceclaims")["items"]}

    def test_pods_get_the_gpus_of_their_claims(self):
        self.until(lambda: self.cluster.get("resourceslices")["items"])
        [node_slice] = self.cluster.get("resourceslices")["items"]
        self.assertEqual([device["name"] for device in node_slice["spec"]["devices"]],
                         ["gpu-0", "gpu-1", "gpu-2", "gpu-3"])
        self.until(lambda: self.cluster.kubectl("get", "deviceclass", "gpu.swell.dev").returncode == 0)

        self.apply(TEMPLATE)
        self.apply(SHARED)
        self.pod("alone", "resourceClaimTemplateName: two-gpus")
        self.assertEqual(self.seen("alone"), ["0,1"])
        made = self.cluster.get("pod", "alone")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        self.assertEqual([one["device"] for one in self.claims()[made]["status"]["allocation"]["devices"]["results"]],
                         ["gpu-0", "gpu-1"])

        # Two pods share the fourth GPU, by one claim.
        self.pod("one", "resourceClaimName: last")
        self.pod("other", "resourceClaimName: last")
        self.assertEqual(self.seen("one"), ["3"])
        self.assertEqual(self.seen("other"), ["3"])

        # One GPU is left: who asks for two waits, and hears why.
        self.pod("late", "resourceClaimTemplateName: two-gpus")

        def why():
            conditions = self.cluster.get("pod", "late").get("status", {}).get("conditions", [])
            return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")

        self.until(lambda: "Needs 2 GPUs of class gpu.swell.dev; 1 free" in why(), why)
        # A job that asks for GPUs of the node gets the one that no claim has.
        self.done(self.cluster.swell("submit", "plain", "--image", "python", "--gpus", "1", "--", "sleep", "1000"))
        held = lambda: [pod["metadata"]["annotations"].get("swell.dev/gpu-devices")  # noqa: E731
                        for pod in self.cluster.get("pods", "-l", "swell.dev/pod-group=plain")["items"]
                        if "nodeName" in pod["spec"]]
        self.until(lambda: held() == ["2"], lambda: str(held()))

        # With the pod goes its claim, and its GPUs are somebody's again.
        self.done(self.cluster.kubectl("delete", "pod", "alone"))
        self.assertEqual(self.seen("late"), ["0,1"])
        self.until(lambda: made not in self.claims(), lambda: json.dumps(self.claims()))
        self.done(self.cluster.kubectl("delete", "pod", "one", "other"))
        self.until(lambda: "allocation" not in self.claims()["last"].get("status", {}),
                   lambda: json.dumps(self.claims()["last"]))

        # A restart of Swell changes nothing about it.
        self.cluster.down()
        self.cluster.up()
        self.pod("again", "resourceClaimName: last")
        self.assertEqual(self.seen("again"), ["3"])
