"""Nodes that are not Swell's: kwok plays the kubelets of Node objects, by the stages below.

A pod runs as soon as it is bound. It succeeds when its annotation ENDS says so. One that is deleted fails with the exit
code of SIGTERM before it goes, as a kubelet reports it.
"""

import json

from operators import KWOK
from support import create, kubectl

ENDS = "tests.swell.dev/ends"

CONTAINERS = """
{{ range .spec.containers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, restartCount: 0, STATE}
{{ end }}
"""
RUNNING = """
{{ $now := Now }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
CONTAINERS
initContainerStatuses:
{{ range .spec.initContainers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, restartCount: 0, ready: true,
   state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}}
{{ end }}
phase: Running
podIP: {{ index ( PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace ) 0 | Quote }}
startTime: {{ $now | Quote }}
""".replace("CONTAINERS", CONTAINERS.replace(
    "STATE", "ready: true, started: true, state: {running: {startedAt: {{ $now | Quote }}}}"))
ENDED = """
{{ $now := Now }}
conditions:
- {type: Ready, status: "False", reason: PodFinished, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: PodFinished, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
CONTAINERS
phase: PHASE
""".replace("CONTAINERS", CONTAINERS.replace(
    "STATE", "ready: false, started: false, state: {terminated: {exitCode: CODE, reason: REASON, "
    "startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}"))
NODE = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- {type: {{ .type | Quote }}, status: {{ .status | Quote }}, reason: {{ .reason | Quote }},
   message: {{ .message | Quote }}, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
"""


def ended(phase, code, reason):
    return ENDED.replace("PHASE", phase).replace("CODE", str(code)).replace("REASON", reason)


def stage(name, kind, expressions, **following):
    matches = [{"key": key, "operator": operator, **({"values": values} if values else {})}
               for key, operator, *values in expressions]
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
            "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": matches},
                     "next": following}}


LIVES = (".metadata.deletionTimestamp", "DoesNotExist")
GOES = (".metadata.deletionTimestamp", "Exists")
READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
STAGES = [
    stage("node-is-ready", "Node", [(READY, "NotIn", "True")], statusTemplate=NODE),
    stage("pod-runs", "Pod", [LIVES, (".status.phase", "In", "Pending")], statusTemplate=RUNNING),
    stage("pod-ends", "Pod", [LIVES, (".status.phase", "In", "Running"),
                              (f'.metadata.annotations["{ENDS}"]', "In", "true")],
          statusTemplate=ended("Succeeded", 0, "Completed")),
    stage("pod-stops", "Pod", [GOES, (".status.phase", "In", "Running")],
          statusTemplate=ended("Failed", 143, "Error")),
    stage("pod-goes", "Pod", [GOES, (".status.phase", "NotIn", "Running")], delete=True),
]


def node(name, gpus):
    offered = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
                         "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": offered, "allocatable": offered}}


def start(bench, gpus):
    """A node for each number, with as many GPUs."""
    stages = bench.work / "stages.yaml"
    stages.write_text("\n---\n".join(map(json.dumps, STAGES)))
    bench.start("kwok", KWOK.program, "--config", stages, "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=40")
    create(*[node(f"kwok-{i}", count) for i, count in enumerate(gpus)])
    for i in range(len(gpus)):
        kubectl("wait", "node", f"kwok-{i}", "--for=condition=Ready", "--timeout=120s")


def end(namespace, *words):
    """The pods succeed, now."""
    kubectl("annotate", "pods", "-n", namespace, f"{ENDS}=true", *(words or ("--all",)))
