"""deploy/ is what the program says, the chart renders to it, and rules and dashboards name metrics that exist."""

import importlib.machinery
import importlib.util
import json
import re
import subprocess
import unittest

import yaml

from chart import render
from support import LIMIT_S, ROOT, SWELL, ClusterTest, run

DEPLOY = ROOT / "deploy"
FILES = DEPLOY / "helm" / "swell" / "files"
LABELS_OF_HELM = {"app.kubernetes.io/instance": "swell", "app.kubernetes.io/managed-by": "Helm"}
# What PromQL calls its own.
WORDS = {"sum", "by", "rate", "increase", "histogram_quantile", "scalar", "topk", "and", "on", "le", "absent"}


def load_generator():
    loader = importlib.machinery.SourceFileLoader("generate", str(DEPLOY / "generate"))
    spec = importlib.util.spec_from_loader("generate", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def objects(text):
    return [document for document in yaml.safe_load_all(text) if document]


def by_name(documents):
    return {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d for d in documents}


def metrics_in(expression):
    expression = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", "", expression)
    expression = re.sub(r"\bby \([^)]*\)", "", expression)
    return {word for word in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", expression) if word not in WORDS}


def expressions():
    rules = yaml.safe_load((FILES / "rules.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]
    for path in sorted((FILES / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]


class Generated(unittest.TestCase):
    def test_deploy_is_what_the_program_says(self):
        generate = load_generator()
        wrong = generate.differences(generate.generated(SWELL), DEPLOY)
        self.assertEqual(wrong, [], "run deploy/generate")

    def test_the_chart_renders_to_what_install_does(self):
        values = yaml.safe_load((DEPLOY / "helm" / "swell" / "values.yaml").read_text())
        version = run(SWELL, "version", "--client").stdout.split()[1]
        for webhook in (False, True):
            values["webhook"]["enabled"] = webhook
            rendered = by_name(render(DEPLOY / "helm" / "swell", values, namespace="swell-system"))
            printed = by_name(objects(run(SWELL, "install", "--print", "--image", f"swell:{version}",
                                          *(["--webhook"] if webhook else [])).stdout))
            del printed[("Namespace", "", "swell-system")]
            del rendered[("Pod", "swell-system", "swell-test-schedules")]
            for document in printed.values():
                self.assertEqual(document["metadata"]["labels"].pop("app.kubernetes.io/managed-by"), "swell")
                document["metadata"]["labels"].update(LABELS_OF_HELM, **{
                    "app.kubernetes.io/version": version, "helm.sh/chart": f"swell-{version}"})
            for crd in (d for d in rendered.values() if d["kind"] == "CustomResourceDefinition"):
                self.assertEqual(crd["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"})
            self.assertEqual(sorted(rendered), sorted(printed))
            for key, document in printed.items():
                self.assertEqual(rendered[key], document, key)

    def test_the_charts_values_are_used(self):
        values = yaml.safe_load((DEPLOY / "helm" / "swell" / "values.yaml").read_text())
        values.update({"replicas": 3, "extraArgs": ["--set=reserveAfter=1h"], "priorityClassName": "high"})
        values["image"] = {"repository": "r.example.com/s", "tag": "9", "pullPolicy": "Always"}
        values["resources"] = {"limits": {"memory": "4Gi"}}
        values["imagePullSecrets"] = [{"name": "registry"}]
        values["nodeSelector"] = {"pool": "system"}
        values["affinity"] = {"nodeAffinity": {}}
        values["topologySpreadConstraints"] = [{"maxSkew": 1}]
        values["podAnnotations"] = {"note": "this"}
        values["podLabels"] = {"team": "platform"}
        values["serviceMonitor"]["labels"] = values["prometheusRule"]["labels"] = {"release": "stack"}
        for part in ("serviceMonitor", "prometheusRule", "dashboards"):
            values[part]["enabled"] = True
        for part in ("podDisruptionBudget", "networkPolicy"):
            values[part]["enabled"] = False
        values["crds"]["install"] = values["priorityClasses"]["create"] = False
        found = render(DEPLOY / "helm" / "swell", values, namespace="other", apis=("policy/v1beta1",))
        kinds = {d["kind"] for d in found}
        self.assertLessEqual({"ServiceMonitor", "PrometheusRule", "ConfigMap"}, kinds)
        self.assertFalse({"PodDisruptionBudget", "NetworkPolicy", "CustomResourceDefinition", "PriorityClass"} & kinds)
        deployment = next(d for d in found if d["kind"] == "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        self.assertEqual(deployment["spec"]["replicas"], 3)
        self.assertEqual(deployment["metadata"]["namespace"], "other")
        self.assertEqual(pod["priorityClassName"], "high")
        container = pod["containers"][0]
        self.assertEqual((container["image"], container["imagePullPolicy"]), ("r.example.com/s:9", "Always"))
        self.assertEqual(container["args"][-1], "--set=reserveAfter=1h")
        self.assertEqual(container["resources"], {"limits": {"memory": "4Gi"}})
        self.assertEqual(pod["imagePullSecrets"], [{"name": "registry"}])
        self.assertEqual(pod["nodeSelector"], {"pool": "system"})
        self.assertEqual(pod["affinity"], {"nodeAffinity": {}})
        self.assertEqual(pod["topologySpreadConstraints"], [{"maxSkew": 1}])
        metadata = deployment["spec"]["template"]["metadata"]
        self.assertEqual((metadata["annotations"], metadata["labels"]["team"]), ({"note": "this"}, "platform"))
        self.assertLessEqual(deployment["spec"]["selector"]["matchLabels"].items(), metadata["labels"].items())
        test = next(d for d in found if d["kind"] == "Pod")
        self.assertEqual(test["spec"]["schedulerName"], "swell")
        self.assertEqual((test["spec"]["containers"][0]["image"], test["spec"]["nodeSelector"]),
                         ("r.example.com/s:9", {"pool": "system"}))
        for kind in ("ServiceMonitor", "PrometheusRule"):
            labels = next(d for d in found if d["kind"] == kind)["metadata"]["labels"]
            self.assertEqual((labels["release"], labels["app.kubernetes.io/name"]), ("stack", "swell"))
        rule = next(d for d in found if d["kind"] == "PrometheusRule")
        self.assertEqual(rule["spec"], yaml.safe_load((FILES / "rules.yaml").read_text()))
        boards = next(d for d in found if d["kind"] == "ConfigMap")["data"]
        self.assertEqual(sorted(boards), ["api.json", "scheduler.json", "sharing.json"])

    def test_the_schema_knows_the_values(self):
        chart = DEPLOY / "helm" / "swell"
        schema = json.loads((chart / "values.schema.json").read_text())

        def names(value):
            return {name: names(inner) for name, inner in value.items()} if isinstance(value, dict) and value else {}

        def properties(part):
            part = schema["definitions"][part["$ref"].split("/")[-1]] if "$ref" in part else part
            # Below these anything goes, or what Kubernetes says.
            if part.get("additionalProperties") is not False:
                return None
            return {name: properties(inner) for name, inner in part["properties"].items()}

        def compare(have, known, where):
            if known is None or not (have or known):
                return
            self.assertEqual(set(have), set(known) - {"global"}, where)
            for name in have:
                compare(have[name], known[name], f"{where}.{name}")
        compare(names(yaml.safe_load((chart / "values.yaml").read_text())), properties(schema), "values")

    def test_the_pages_use_the_certificate_of_a_secret(self):
        values = yaml.safe_load((DEPLOY / "helm" / "swell" / "values.yaml").read_text())

        def controller(enabled, secret):
            values["ui"] = {"enabled": enabled, "tls": {"secretName": secret}, "programs": False}
            found = render(DEPLOY / "helm" / "swell", values, namespace="x")
            pod = next(d for d in found if d["kind"] == "Deployment")["spec"]["template"]["spec"]
            return pod, [word for word in pod["containers"][0]["args"] if word.startswith("--ui-")]

        pod, flags = controller(True, "pages-cert")
        self.assertEqual(flags, ["--ui-address=0.0.0.0:10443", "--ui-cert-file=/etc/swell/pages/tls.crt",
                                 "--ui-key-file=/etc/swell/pages/tls.key"])
        self.assertEqual(pod["volumes"], [{"name": "pages-tls", "secret": {"secretName": "pages-cert"}}])
        self.assertEqual(pod["containers"][0]["volumeMounts"],
                         [{"name": "pages-tls", "mountPath": "/etc/swell/pages", "readOnly": True}])
        for enabled, secret, expected in ((True, "", ["--ui-address=0.0.0.0:10443"]), (False, "pages-cert", [])):
            pod, flags = controller(enabled, secret)
            self.assertEqual(flags, expected)
            self.assertNotIn("volumes", pod)
            self.assertNotIn("volumeMounts", pod["containers"][0])

    def test_programs_of_pods_have_a_port_where_the_value_asks_for_it(self):
        values = yaml.safe_load((DEPLOY / "helm" / "swell" / "values.yaml").read_text())
        for wanted in (False, True):
            values["ui"].update(enabled=True, programs=wanted)
            found = render(DEPLOY / "helm" / "swell", values, namespace="x")
            container = next(d for d in found if d["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual("--ui-programs-address=0.0.0.0:10444" in container["args"], wanted)
            self.assertEqual("programs" in [port["name"] for port in container["ports"]], wanted)
            service = next(d for d in found if d["metadata"]["name"] == "swell-pages")
            self.assertEqual(10444 in [port["port"] for port in service["spec"]["ports"]], wanted)
            policy = next(d for d in found if d["kind"] == "NetworkPolicy")
            opened = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
            self.assertEqual(10444 in opened, wanted)

    def test_before_kubernetes_1_21_the_budget_is_v1beta1(self):
        values = yaml.safe_load((DEPLOY / "helm" / "swell" / "values.yaml").read_text())
        for apis, version in ((("policy/v1beta1",), "policy/v1beta1"), (("policy/v1",), "policy/v1")):
            found = render(DEPLOY / "helm" / "swell", values, namespace="x", apis=apis)
            budget = next(d for d in found if d["kind"] == "PodDisruptionBudget")
            self.assertEqual(budget["apiVersion"], version)

    def test_every_api_version_is_in_the_table(self):
        page = (ROOT / "docs" / "operations.md").read_text()
        used = set()
        texts = [path.read_text() for path in (DEPLOY / "kubernetes").glob("*.yaml")]
        for text in [*texts, run(SWELL, "install", "--print").stdout]:
            used |= {d["apiVersion"] for d in objects(text)}
        missing = sorted(version for version in used if f"`{version}`" not in page)
        self.assertEqual(missing, [])

    def test_rights_are_no_more_than_needed(self):
        rendered = objects(run(SWELL, "install", "--print").stdout)
        role = next(d for d in rendered if d["kind"] == "ClusterRole" and d["metadata"]["name"] == "swell-controller")
        installed = {d["spec"]["group"] for d in rendered if d["kind"] == "CustomResourceDefinition"}
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                own = group in installed
                reads = set(rule["verbs"]) <= {"get", "list", "watch"}
                self.assertTrue(own or reads or "*" not in rule["resources"] + rule["verbs"], rule)
            if set(rule["apiGroups"]) & {"", "rbac.authorization.k8s.io"}:
                self.assertFalse({"roles", "rolebindings", "clusterroles"} & set(rule["resources"]), rule)
                # Those of MPIJobs are made; none is ever read.
                if "secrets" in rule["resources"]:
                    self.assertEqual((rule["resources"], rule["verbs"]), (["secrets"], ["create"]), rule)

    def test_alerts_say_what_to_do(self):
        rules = yaml.safe_load((FILES / "rules.yaml").read_text())
        alerts = [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]
        self.assertGreaterEqual(len(alerts), 10)
        for rule in alerts:
            self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"), rule["alert"])
            self.assertTrue(rule["annotations"]["summary"] and rule["annotations"]["runbook"], rule["alert"])


    def test_what_others_count_too_is_told_apart(self):
        shared = re.compile(r"\b(?:apiserver|process|workqueue)_\w+|\bleader_election_master_status")
        for where, expression in expressions():
            for found in shared.finditer(expression):
                self.assertTrue(expression[found.end():].startswith('{job=~"swell.*"'), (where, found.group(0)))

    def test_the_monitor_names_a_port_of_the_service_it_selects(self):
        monitoring = objects((DEPLOY / "kubernetes" / "monitoring.yaml").read_text())
        monitor = next(d for d in monitoring if d["kind"] == "ServiceMonitor")["spec"]
        services = [d for d in objects((DEPLOY / "kubernetes" / "controller.yaml").read_text())
                    if d["kind"] == "Service"
                    and monitor["selector"]["matchLabels"].items() <= d["metadata"]["labels"].items()]
        self.assertEqual(len(services), 1)
        self.assertIn(monitor["endpoints"][0]["port"], [port["name"] for port in services[0]["spec"]["ports"]])
        # The job that rules look for is called as the Service is.
        self.assertTrue(services[0]["metadata"]["name"].startswith("swell"))


class Live(ClusterTest):
    """Against the endpoints of a cluster that has work, and of a controller."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = cls.cluster.swell("project", "create", "vision", "--gpu-quota", "4", "--gpu-limit", "8")
        assert made.returncode == 0, made.stderr
        ran = cls.cluster.swell("submit", "job", "--image", "x", "--gpus", "2", "--project", "vision", "--", "true")
        assert ran.returncode == 0, ran.stderr
        cls.controller = subprocess.Popen(
            [SWELL, "controller", "--kubeconfig", cls.cluster.kubeconfig, "--metrics-address", "127.0.0.1:0",
             "--leader-elect-name", "watched"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in cls.controller.stderr:
            if found := re.search(r"metrics: listening address=(\S+)", line):
                cls.address = found.group(1)
                break

    @classmethod
    def tearDownClass(cls):
        cls.controller.terminate()
        cls.controller.communicate(timeout=LIMIT_S)
        super().tearDownClass()

    def pages(self):
        own = self.done(self.cluster.kubectl("get", "--raw", "/metrics"))
        other = self.done(run("curl", "-sf", f"http://{self.address}/metrics"))
        return own, other

    def test_every_metric_that_is_asked_for_exists(self):
        rules = yaml.safe_load((FILES / "rules.yaml").read_text())
        names = {rule["record"] for group in rules["groups"] for rule in group["rules"] if "record" in rule}
        asked = {where: metrics_in(expression) for where, expression in expressions()}

        def are_there():
            # Some begin with the first job that has been placed.
            for page in self.pages():
                names.update(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))
                names.update(re.findall(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)[ {]", page, re.MULTILINE))
            return all(metrics <= names for metrics in asked.values())
        self.until(are_there, lambda: {where: metrics - names for where, metrics in asked.items() if metrics - names})
        self.assertNotIn(set(), asked.values())

    def test_pages_are_what_prometheus_reads(self):
        sample = re.compile(r'[a-zA-Z_:][\w:]*(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? \S+')
        for page in self.pages():
            family, seen, families = None, set(), set()
            for line in page.splitlines():
                if line.startswith("# HELP "):
                    family = line.split()[2]
                    self.assertNotIn(family, families)
                    families.add(family)
                elif not line.startswith("#"):
                    self.assertRegex(line, f"^{sample.pattern}$")
                    self.assertTrue(line.startswith(family), line)
                    series = line.rsplit(" ", 1)[0]
                    self.assertNotIn(series, seen)
                    seen.add(series)
            self.assertGreater(len(seen), 5)

    def test_a_controller_tells_its_health(self):
        for path in ("healthz", "livez", "readyz"):
            text = self.done(run("curl", "-s", "--retry", "20", "--retry-all-errors", "--fail",
                                 f"http://{self.address}/{path}?verbose"))
            self.assertIn("[+]ping ok\n", text)
            self.assertTrue(text.endswith(f"{path} check passed\n"), text)

    def test_manifests_are_taken_by_the_api_server(self):
        self.cluster.kubectl("create", "namespace", "swell-system")  # or it is there
        for text in (self.done(run(SWELL, "install", "--print")),
                     (DEPLOY / "kubernetes" / "controller.yaml").read_text()):
            self.done(self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f",
                                           "-", input=text))


if __name__ == "__main__":
    unittest.main()
