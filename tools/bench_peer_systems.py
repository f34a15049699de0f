"""The schedulers that tools/bench_peers.py puts beside Swell: how each is started, and told of a pod and of a gang.

Swell and kube-scheduler come with the benchmark. The others take part where PEERS_BIN_DIR has their programs: `kueue`,
and the folders `volcano` and `kai`. docs/peers.md says what is in them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench_cluster import BIN
from bench_kubernetes import end, wait

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "kubernetes"))

import operators  # noqa: E402
import support  # noqa: E402

GPUS = 10  # of each node
PODS = "/api/v1/namespaces/bench/pods"
JOBS = "/apis/batch/v1/namespaces/bench/jobs"


def pod(name, scheduler, labels, annotations=None, **spec):
    container = {"name": "main", "image": "busybox",
                 "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "100m"}}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "bench", **labels}, "annotations": annotations or {}},
            "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container], **spec}}


def peers_folder():
    return Path(os.environ.get("PEERS_BIN_DIR", "/nonexistent"))


class Peer:
    """One system: how it is started, and how pods, gangs and their priorities are said to it."""

    name = scheduler = None
    groups = ""  # the path of its gangs, if these are objects
    missing = ""  # what it lacks here, in words

    def version(self, plane):
        raise NotImplementedError

    def start(self, plane):
        """Starts it, and waits until it places pods. Returns the process ids whose time and memory count."""
        raise NotImplementedError

    def stop(self):
        pass

    def single(self, name):
        return [(PODS, pod(name, self.scheduler, {}))]

    def gang(self, name, size, priority):
        """Requests that create it: its pods begin with NAME and a dash."""
        raise NotImplementedError

    def grouped(self, group, size, labels=None, annotations=None, **spec):
        """A group, and as many pods that say in these words that they are its members."""
        name = group["metadata"]["name"]
        return [(self.groups, group)] + [(PODS, pod(f"{name}-{i}", self.scheduler, labels or {}, annotations, **spec))
                                         for i in range(size)]


class Swell(Peer):
    name, scheduler = "Swell", "swell"
    groups = "/apis/swell.dev/v1/namespaces/bench/podgroups"

    def version(self, plane):
        return subprocess.run([BIN / "swell", "--version"], text=True, capture_output=True).stdout.split()[-1]

    def start(self, plane):
        self.process = plane.start("controller", "--log-level", "error", "--metrics-address", "none",
                                   ready="Scheduling for")
        return [self.process.pid]

    def stop(self):
        end(self.process)

    def gang(self, name, size, priority):
        group = {"apiVersion": "swell.dev/v1", "kind": "PodGroup", "metadata": {"name": name},
                 "spec": {"podSets": [{"name": "all", "minMember": size}], "priorityClassName": priority}}
        labels = {"swell.dev/pod-group": name, "swell.dev/pod-set": "all"}
        return self.grouped(group, size, labels, priorityClassName=priority)


class KubeScheduler(Peer):
    """With its own gangs, and without the limit on its requests."""

    name, scheduler = "kube-scheduler", "default-scheduler"
    groups = "/apis/scheduling.k8s.io/v1beta1/namespaces/bench/podgroups"

    def version(self, plane):
        return json.loads(plane.kubectl("get", "--raw", "/version"))["gitVersion"].lstrip("v")

    def start(self, plane):
        self.plane = plane
        plane.cluster("up", "--scheduler", "--scheduler-qps", "5000", *plane.flags)
        return [int(Path(f"{plane.run_dir}/kube-scheduler.pid").read_text())]

    def stop(self):
        self.plane.cluster("kill", "kube-scheduler")

    def gang(self, name, size, priority):
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
                 "spec": {"schedulingPolicy": {"gang": {"minCount": size}}, "priorityClassName": priority}}
        return self.grouped(group, size, schedulingGroup={"podGroupName": name}, priorityClassName=priority)


class Kueue(KubeScheduler):
    """In front of kube-scheduler. It admits Jobs whole, by a quota of all GPUs; the Job's controller makes the pods."""

    name, groups = "Kueue", JOBS

    def __init__(self):
        self.program = peers_folder() / "kueue"
        if not os.access(self.program, os.X_OK):
            self.missing = "PEERS_BIN_DIR has no program kueue"

    def version(self, plane):
        return operators.KUEUE.version

    def start(self, plane):
        os.environ["KUBECONFIG"] = str(plane.kubeconfig)  # for the kubectl of the tests
        self.running = operators.Running(support.Bench(), operators.KUEUE, self.program).__enter__()
        plane.create(*operators.kueues_queue("bench", plane.nodes * GPUS,
                                             preemption={"withinClusterQueue": "LowerPriority"}))
        return [*super().start(plane), self.running.process.process.pid]

    def stop(self):
        super().stop()
        self.running.__exit__()
        shutil.rmtree(self.running.bench.work)

    def single(self, name):
        return self.gang(name, 1, "low")

    def gang(self, name, size, priority):
        template = pod(name, self.scheduler, {}, priorityClassName=priority)
        job = {"apiVersion": "batch/v1", "kind": "Job",
               "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "all"}},
               "spec": {"parallelism": size, "completions": size, "suspend": True,
                        "template": {"metadata": {"labels": template["metadata"]["labels"]},
                                     "spec": template["spec"]}}}
        return [(JOBS, job)]


class Programs(Peer):
    """Several programs in a folder of PEERS_BIN_DIR, with its definitions in `crds` and its version in `version`.

    They have an administrator's rights, and no webhooks and no leader election.
    """

    folder, commands = "", {}  # of each program its arguments

    def __init__(self):
        self.home = peers_folder() / self.folder
        absent = [name for name in self.commands if not os.access(self.home / name, os.X_OK)]
        absent += [name for name in ("crds", "version") if not (self.home / name).exists()]
        if absent:
            self.missing = f"PEERS_BIN_DIR/{self.folder} has no {', '.join(absent)}"

    def version(self, plane):
        return (self.home / "version").read_text().strip()

    def start(self, plane):
        # Some of these kinds may be there already, as Swell defines them.
        subprocess.run(["kubectl", "apply", "--server-side", "--force-conflicts", "-f", self.home / "crds"],
                       env=plane.environment, check=True, stdout=subprocess.DEVNULL)
        plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
        plane.create(*self.objects(plane))
        self.processes = [self.begin(plane, name, words) for name, words in self.commands.items()]
        try:
            self.wait_ready(plane)
        except BaseException:
            self.stop()
            raise
        return [process.pid for process in self.processes]

    def begin(self, plane, name, words):
        with open(f"{plane.run_dir}/{name}.log", "w", encoding="utf-8") as log:
            return subprocess.Popen([self.home / name, *self.arguments(plane), *words], env=plane.environment,
                                    stdout=log, stderr=log)

    def wait_ready(self, plane):
        """It is ready when it has placed a pod."""
        name = "bench-ready-0"
        plane.submit(self.single(name))
        wait(lambda: plane.kubectl("get", "pod", name, "-n", "bench", "-o", "jsonpath={.spec.nodeName}"),
             lambda: f"{self.name} places no pod:\n{self.logs(plane)}",
             lambda: all(process.poll() is None for process in self.processes), seconds=120)
        plane.clear(self)

    def logs(self, plane):
        """The end of each program's."""
        return "\n".join(f"{name}:\n{Path(plane.run_dir, f'{name}.log').read_text()[-1500:]}" for name in self.commands)

    def stop(self):
        for process in self.processes:
            end(process)

    def arguments(self, plane):
        """All its programs have these."""
        return []

    def objects(self, plane):
        """What an administrator makes once."""
        return []


class Volcano(Programs):
    """With its action `preempt`, which its settings of today leave out."""

    name, scheduler, folder = "Volcano", "volcano", "volcano"
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/bench/podgroups"
    commands = {"vc-controller-manager": ("--worker-threads=10",), "vc-scheduler": ()}
    settings = """actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

    def arguments(self, plane):
        return [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--kube-api-qps=5000",
                "--kube-api-burst=10000"]

    def begin(self, plane, name, words):
        if name == "vc-scheduler":
            settings = Path(plane.run_dir, "volcano.conf")
            settings.write_text(self.settings)
            words = (*words, f"--scheduler-conf={settings}")
        return super().begin(plane, name, words)

    def objects(self, plane):
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}]

    def single(self, name):
        return [(PODS, pod(name, self.scheduler, {}, {"volcano.sh/preemptable": "true"}))]

    def gang(self, name, size, priority):
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
                 "spec": {"minMember": size, "priorityClassName": priority}}
        notes = {"scheduling.k8s.io/group-name": name, "volcano.sh/preemptable": "true"}
        return self.grouped(group, size, annotations=notes, priorityClassName=priority)


class Kai(Programs):
    """With one queue of all GPUs below a department, and gangs that are made beside its podgrouper.

    It counts a GPU twice that is both a resource of its node and in a ResourceSlice, so there are no slices.
    """

    name, scheduler, folder = "KAI-Scheduler", "kai-scheduler", "kai"
    groups = "/apis/scheduling.run.ai/v2alpha2/namespaces/bench/podgroups"
    commands = {"queuecontroller": ("--enable-webhook=false", "--metrics-listen-address=0"),
                "podgroupcontroller": ("--enable-podgroup-webhook=false", "--metrics-bind-address=0",
                                       "--health-probe-bind-address=0"),
                "podgrouper": ("--metrics-bind-address=0", "--health-probe-bind-address=0"),
                "binder": ("--metrics-bind-address=0", "--health-probe-bind-address=0"),
                "scheduler": ("--listen-address=127.0.0.1:0", "--schedule-period=1s")}

    def arguments(self, plane):
        return ["--qps=5000", "--burst=10000"]

    def objects(self, plane):
        every = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        resources = {name: every for name in ("cpu", "gpu", "memory")}
        queues = [{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name},
                   "spec": {"resources": resources, **parent}}
                  for name, parent in (("department", {}), ("all", {"parentQueue": "department"}))]
        places = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                  for name in ("kai-scheduler", "kai-resource-reservation", "kai-scale-adjust")]
        return places + queues + self.no_slices()

    def no_slices(self):
        rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"],
                "resources": ["resourceslices"]}
        return [{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "no-slices"},
                 "spec": spec}
                for kind, spec in (("ValidatingAdmissionPolicy", {
                    "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}),
                    ("ValidatingAdmissionPolicyBinding", {
                        "policyName": "no-slices", "validationActions": ["Deny"]}))]

    def begin(self, plane, name, words):
        if name == "scheduler":
            plane.kubectl("delete", "resourceslices", "--all")
        return super().begin(plane, name, words)

    def single(self, name):
        return [(PODS, pod(name, self.scheduler, {"kai.scheduler/queue": "all"}))]

    def gang(self, name, size, priority):
        group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
                 "metadata": {"name": name, "labels": {"kai.scheduler/queue": "all"}},
                 "spec": {"minMember": size, "queue": "all", "priorityClassName": priority}}
        return self.grouped(group, size, {"kai.scheduler/queue": "all"}, {"pod-group-name": name},
                            priorityClassName=priority)


def all_systems():
    return Swell(), KubeScheduler(), Kueue(), Volcano(), Kai()
