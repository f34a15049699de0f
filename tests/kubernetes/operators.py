"""Operators of others, as released: built once from their Go modules, and run in a cluster as their Deployments would.

Definitions, webhooks and samples are those in the module; nothing of them is kept here. A program is built with the
versions that its own module names, so each has its own client of Kubernetes.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from support import Failure, call, kubectl, note, run, wait
from ports import free_port  # support says where these are
from waiting import until

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swell" / "operators"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # where all of them look, on a machine or in a container
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


class Operator(NamedTuple):
    name: str
    module: str
    version: str
    package: str
    manifests: tuple = ()  # folders of its module, for kubectl kustomize
    namespace: str = ""
    service: str = ""  # of its webhooks; empty: it has none
    secret: str = ""  # their certificate
    authority: str = ""  # the name that it gives the certificate's issuer
    arguments: tuple = ()  # {webhook} and {health}: ports; {config}: a file with `config`
    config: dict = {}

    @property
    def program(self):
        return CACHE / "bin" / f"{self.name}-{self.version}"

    def __str__(self):
        return f"{self.name} {self.version}"


def controllers_config(api_version, **more):
    return {"apiVersion": api_version, "kind": "Configuration", "webhook": {"port": "{webhook}"},
            "leaderElection": {"leaderElect": False}, "health": {"healthProbeBindAddress": "127.0.0.1:{health}"},
            "metrics": {"bindAddress": "0"}, **more}


KWOK = Operator("kwok", "sigs.k8s.io/kwok", "0.8.0", "./cmd/kwok")
TRAINING_OPERATOR = Operator(
    "training-operator", "github.com/kubeflow/training-operator", "1.8.1", "./cmd/training-operator.v1",
    ("manifests/overlays/standalone",), "kubeflow", "training-operator", "training-operator-webhook-cert",
    "training-operator-ca",
    ("--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:{health}", "--webhook-server-port={webhook}"))
JOBSET = Operator(
    "jobset", "sigs.k8s.io/jobset", "0.8.2", ".", ("config/default",), "jobset-system", "jobset-webhook-service",
    "jobset-webhook-server-cert", "jobset-ca", ("--config={config}",),
    controllers_config("config.jobset.x-k8s.io/v1alpha1"))
TRAINER = Operator(
    "trainer", "github.com/kubeflow/trainer/v2", "2.0.0", "./cmd/trainer-controller-manager",
    ("manifests/base/crds", "manifests/base/webhook", "manifests/base/rbac"), "kubeflow-system",
    "kubeflow-trainer-controller-manager",
    "kubeflow-trainer-webhook-cert", "kubeflow-trainer-ca",
    ("--health-probe-bind-address=127.0.0.1:{health}", "--webhook-server-port={webhook}"))
KUBERAY = Operator(
    "kuberay", "github.com/ray-project/kuberay/ray-operator", "1.5.0", ".", ("config/default",), "default",
    arguments=("--metrics-addr=0", "--health-probe-bind-address=127.0.0.1:{health}",
               "--enable-leader-election=false"))
LEADER_WORKER_SET = Operator(
    "leaderworkerset", "sigs.k8s.io/lws", "0.8.0", "./cmd", ("config/default",), "lws-system", "lws-webhook-service",
    "lws-webhook-server-cert", "lws-ca", ("--config={config}", "--leader-elect=false"),
    controllers_config("config.lws.x-k8s.io/v1alpha1"))
KUEUE = Operator(
    "kueue", "sigs.k8s.io/kueue", "0.17.0", "./cmd/kueue", ("config/default",), "kueue-system",
    "kueue-webhook-service", "kueue-webhook-server-cert", "kueue-ca",
    ("--config={config}", "--feature-gates=VisibilityOnDemand=false"),
    controllers_config("config.kueue.x-k8s.io/v1beta2", integrations={"frameworks": ["batch/job"]},
                       clientConnection={"qps": 5000, "burst": 10000}))
ALL = (KWOK, TRAINING_OPERATOR, JOBSET, TRAINER, KUBERAY, LEADER_WORKER_SET, KUEUE)


def source(operator):
    """Its module's folder, fetched where it is not there yet."""
    code, text = call("go", "mod", "download", "-json", f"{operator.module}@v{operator.version}", timeout=600)
    answer = json.loads(text[text.index("{"):]) if "{" in text else {"Error": text}
    if code != 0 or "Dir" not in answer:
        raise Failure(f"{operator}: {answer.get('Error', text)}")
    return Path(answer["Dir"])


def build(operator):
    """Minutes, once."""
    if operator.program.exists():
        return
    begin = time.monotonic()
    folder = source(operator)
    operator.program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = operator.program.with_name(f"{operator.program.name}.{os.getpid()}")
    environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
                   "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false".strip()}
    note(f"building {operator} …")
    run("nice", "-n", 10, "go", "build", "-C", folder, "-trimpath", "-ldflags=-s -w", "-o", unfinished,
        operator.package, env=environment, timeout=3600)
    unfinished.rename(operator.program)
    note(f"built {operator} in {time.monotonic() - begin:.0f} s: {operator.program}")


def objects_in(text):
    import yaml  # only here: benchmarks import this module where it may be missing

    return [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]


def sample(operator, path):
    """The first object in a file of its module."""
    return objects_in((source(operator) / path).read_text())[0]


def rendered(operator):
    """What its manifests make, but for what a process on this machine does not need."""
    items = []
    if operator.namespace != "default":
        items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}})
    for folder in operator.manifests:
        # Standard error has warnings about old fields of the manifests.
        text = subprocess.run(["kubectl", "kustomize", source(operator) / folder], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        items += [item for item in objects_in(text)
                  if item["kind"] in ("CustomResourceDefinition", *WEBHOOKS, *RIGHTS)]
    for item in items:
        # A folder that is a base of others leaves it to these.
        if item["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
            item["metadata"].setdefault("namespace", operator.namespace)
        for subject in item.get("subjects", []):
            subject.setdefault("namespace", operator.namespace)
    return items


def listed(items):
    """For kubectl's -f -."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


class Running:
    """An operator that works in the cluster of this run. Leaving it removes it, its objects and its definitions."""

    def __init__(self, bench, operator, program=None):
        self.bench, self.operator = bench, operator
        self.program = program or operator.program
        self.webhook, self.health = free_port(), free_port()
        self.folder = bench.work / operator.name
        self.items = rendered(operator)
        self.process = None

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        self.folder.mkdir()
        self.make_certificate()
        for item in self.items:
            self.point_here(item)
        # Swell's own definitions of these kinds, if a test before this one installed them, give way.
        for name in self.names("CustomResourceDefinition"):
            kubectl("delete", "crd", name, "--ignore-not-found")
        self.create()
        self.start()

    def __exit__(self, *failure):
        # While it works: it takes its finalizers away.
        definitions = self.names("CustomResourceDefinition")
        call("kubectl", "delete", "crd", "--wait=false", *definitions)
        until(lambda: not call("kubectl", "get", "crd", "--ignore-not-found", *definitions)[1], 60, 0.5)
        if self.process:
            self.process.stop()
        rest = [item for item in self.items if item["kind"] in (*WEBHOOKS, *RIGHTS)]
        call("kubectl", "delete", "--ignore-not-found", "-f", "-", input=listed(rest))
        for name in self.names("Namespace"):
            call("kubectl", "delete", "namespace", name, "--wait=false")

    def names(self, kind):
        return [item["metadata"]["name"] for item in self.items if item["kind"] == kind]

    def make_certificate(self):
        """One that is its own issuer, for this machine's address and for the names that the operator checks."""
        if not self.operator.service:
            return
        names = f"DNS:{self.operator.authority},DNS:{self.operator.service}.{self.operator.namespace}.svc,IP:127.0.0.1"
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 3650,
            "-subj", f"/CN={self.operator.authority}", "-addext", f"subjectAltName={names}",
            "-keyout", self.folder / "new.key", "-out", self.folder / "tls.crt")
        # Operators read keys of this form alone.
        run("openssl", "rsa", "-traditional", "-in", self.folder / "new.key", "-out", self.folder / "tls.key")

    def encoded(self, name):
        return base64.b64encode((self.folder / name).read_bytes()).decode()

    def point_here(self, item):
        """Its webhooks are services in a cluster, and here they are a port of this machine."""
        if item["kind"] in WEBHOOKS:
            clients = [one["clientConfig"] for one in item["webhooks"]]
        else:
            conversion = item.get("spec", {}).get("conversion") or {}
            clients = [conversion["webhook"]["clientConfig"]] if "webhook" in conversion else []
        for client in clients:
            path = client.pop("service").get("path", "/")
            client["url"] = f"https://127.0.0.1:{self.webhook}{path}"
            client["caBundle"] = self.encoded("tls.crt")

    def create(self):
        def gone():
            return not kubectl("get", "--ignore-not-found", "-o", "name", "-f", "-", input=listed(self.items))

        wait(f"nothing of an earlier {self.operator.name} is left", gone)
        items = list(self.items)
        if self.operator.service:
            data = {"ca.crt": "tls.crt", "ca.key": "tls.key", "tls.crt": "tls.crt", "tls.key": "tls.key"}
            items.append({"apiVersion": "v1", "kind": "Secret",
                          "metadata": {"name": self.operator.secret, "namespace": self.operator.namespace},
                          "data": {key: self.encoded(file) for key, file in data.items()}})
        # Webhooks last: until the process is there, they would refuse what comes after them.
        items.sort(key=lambda item: item["kind"] in WEBHOOKS)
        kubectl("create", "-f", "-", input=listed(items))
        for name in self.names("CustomResourceDefinition"):
            kubectl("wait", "crd", name, "--for=condition=Established", "--timeout=60s")

    def kubeconfig(self):
        """A file for its own account, which has the rights that its manifests give it."""
        account = next(item for item in self.items if item["kind"] == "ServiceAccount")["metadata"]
        path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts/{account['name']}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 7200}}
        answer = json.loads(kubectl("create", "--raw", path, "-f", "-", input=json.dumps(request)))
        access = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        access["users"][0]["user"] = {"token": answer["status"]["token"]}
        file = self.folder / "kubeconfig"
        file.write_text(json.dumps(access))
        return file

    def start(self):
        config = self.folder / "config.json"
        ports = {"webhook": self.webhook, "health": self.health, "config": config}
        # Ports are numbers in JSON, and a part of a text elsewhere.
        text = json.dumps(self.operator.config).replace('"{webhook}"', str(self.webhook))
        config.write_text(text.replace("{health}", str(self.health)))
        words = [str(self.program), *[one.format(**ports) for one in self.operator.arguments]]
        if self.operator.service:
            Path(CERTIFICATES).mkdir(parents=True, exist_ok=True)
            mounted = f'mount --bind "$1" {CERTIFICATES} && shift && exec "$@"'
            words = ["unshare", "--mount", "--map-root-user", "sh", "-c", mounted, "sh", str(self.folder), *words]
        self.process = self.bench.start(self.operator.name, *words,
                                        env={"MY_POD_NAMESPACE": self.operator.namespace,
                                             "KUBECONFIG": str(self.kubeconfig())})
        wait(f"{self.operator} is ready", self.is_ready)

    def is_ready(self):
        if not self.process.alive():
            raise Failure(f"{self.operator} ended:\n{self.process.text()[-3000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def kueues_queue(namespace, gpus, **cluster_queue):
    """What Kueue needs to admit Jobs of a namespace by their label kueue.x-k8s.io/queue-name: all."""
    quotas = [{"name": "cpu", "nominalQuota": 1_000_000}, {"name": "nvidia.com/gpu", "nominalQuota": gpus}]
    groups = [{"coveredResources": [one["name"] for one in quotas], "flavors": [{"name": "all", "resources": quotas}]}]
    specs = {"ResourceFlavor": {},
             "ClusterQueue": {"namespaceSelector": {}, "resourceGroups": groups, **cluster_queue},
             "LocalQueue": {"clusterQueue": "all"}}
    places = {"LocalQueue": {"namespace": namespace}}
    return [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "all", **places.get(kind, {})},
             "spec": spec} for kind, spec in specs.items()]


def missing(*operators):
    """What is not built, as a reason to leave a test out; empty: all are there."""
    names = [operator.name for operator in operators if not operator.program.exists()]
    return f"not built: {', '.join(names)} (tests/kubernetes/build-operators {' '.join(names)})" if names else ""


def main(words):
    """Builds those whose names are given, or all, and says of each what became of it."""
    known = {operator.name: operator for operator in ALL}
    for word in words:
        if word not in known:
            print(f"build-operators: there is no operator '{word}'; there are {', '.join(known)}", file=sys.stderr)
            return 2
    if shutil.which("go") is None:
        print("build-operators: operators are built with Go, which is not on PATH", file=sys.stderr)
        return 3
    failed = False
    for operator in [known[word] for word in words] or ALL:
        try:
            build(operator)
        except Failure as failure:
            print(f"build-operators: {failure}", file=sys.stderr)
            failed = True
    return int(failed)
