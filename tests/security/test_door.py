"""What people may ask for is decided at the door: each way that led out of a project, as researcher, numbered user,
project administrator and service account. None may lead out any more."""

import base64
import json
import subprocess
import unittest

from support import LIMIT_S, MERGE, SecurityTest, secret_text

PODS = "/api/v1/namespaces/nlp/pods"
ACCOUNTS = "/api/v1/namespaces/nlp/serviceaccounts"
JOBS = "/apis/kubeflow.org/v1/namespaces/nlp/pytorchjobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/nlp/deployments"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/nlp"
USER = "swell.dev/user"


def pod(name, spec=None, container=None, **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
            "spec": {"containers": [{"name": "c", "image": "busybox", **(container or {})}], **(spec or {})}}


def host_path(path, kind=""):
    return {"volumes": [{"name": "v", "hostPath": {"path": path, "type": kind}}]}


# What reaches the node, and the words that Kubernetes refuses it with.
REACHES = {
    "hostPath /": (host_path("/"), {}, "hostPath volumes (volume \"v\")"),
    "hostPath /dev/shm": (host_path("/dev/shm"), {}, "hostPath volumes"),
    "a file in /etc": (host_path("/etc/cron.d/x", "FileOrCreate"), {}, "hostPath volumes"),
    "hostNetwork": ({"hostNetwork": True}, {}, "host namespaces (hostNetwork=true)"),
    "hostPID": ({"hostPID": True}, {}, "host namespaces (hostPID=true)"),
    "hostIPC": ({"hostIPC": True}, {}, "host namespaces (hostIPC=true)"),
    "privileged": ({}, {"securityContext": {"privileged": True}}, "privileged (container \"c\""),
    "SYS_ADMIN": ({}, {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, "non-default capabilities"),
    "no seccomp": ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {}, "seccompProfile"),
    "unmasked /proc": ({"hostUsers": False}, {"securityContext": {"procMount": "Unmasked"}}, "procMount"),
    "a host port": ({}, {"ports": [{"containerPort": 80, "hostPort": 80}]}, "hostPort (container \"c\" uses"),
    "a sysctl": ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {}, "forbidden sysctls"),
}


class Door(SecurityTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        self = cls()
        self.made("paul", "POST", ACCOUNTS, {"metadata": {"name": "mule"}})
        self.made("paul", "POST", f"{RBAC}/rolebindings", {
            "metadata": {"name": "mule"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "researcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "mule", "namespace": "nlp"}]})
        cls.mule = self.made("paul", "POST", f"{ACCOUNTS}/mule/token", {"spec": {}})["status"]["token"]
        cls.all = {"alice": "alice", "eve": "eve", "paul": "paul", "the account mule": cls.mule}

    def runTest(self):
        """unittest makes one of these for setUpClass."""

    def each(self):
        for name, who in self.all.items():
            with self.subTest(name):
                yield who

    def test_nothing_that_reaches_the_node_is_taken(self):
        for what, (spec, container, words) in REACHES.items():
            for who in self.each():
                with self.subTest(what):
                    self.forbidden(self.send(who, "POST", PODS, pod("out", spec, container)),
                                   "violates PodSecurity \"baseline:latest\"", words)
                    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "out"},
                           "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {
                               "spec": pod("x", spec, {**container, "name": "pytorch"})["spec"]}}}}}
                    self.forbidden(self.send(who, "POST", JOBS, job), "violates PodSecurity")

    def test_a_workload_warns_and_its_pods_are_refused(self):
        workload = {"metadata": {"name": "out"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "replicas": 1,
            "template": {"metadata": {"labels": {"a": "b"},
                                      "annotations": {"swell.dev/pod-security": "privileged"}},
                         "spec": pod("x", {"hostNetwork": True})["spec"]}}}
        answer = self.send("alice", "POST", DEPLOYMENTS, workload)
        self.assertEqual(answer.status, 201, answer.text())
        self.assertIn("would violate PodSecurity", answer.warnings[0])

        def refused():
            events = self.made("admin", "GET", "/api/v1/namespaces/nlp/events")["items"]
            return any("violates PodSecurity" in event["message"] for event in events)

        self.until(refused)
        pods = self.made("admin", "GET", f"{PODS}?labelSelector=a=b")["items"]
        self.assertEqual(pods, [])
        self.made("alice", "DELETE", f"{DEPLOYMENTS}/out")

    def test_an_administrator_may_and_what_the_job_makes_passes(self):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "host"},
               "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {
                   "spec": pod("x", host_path("/tmp"), {"name": "pytorch"})["spec"]}}}}}
        self.made("admin", "POST", JOBS, job)
        self.until(lambda: self.send("admin", "GET", f"{PODS}/host-worker-0").status == 200)
        # Another who changes what it runs answers for it, and may not.
        change = {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [
            {"name": "pytorch", "image": "mine"}]}}}}}}
        self.forbidden(self.send("alice", "PATCH", f"{JOBS}/host", change), "hostPath volumes")
        self.made("admin", "DELETE", f"{JOBS}/host")

    def test_a_pod_of_an_administrator_is_no_way_out(self):
        self.made("admin", "POST", PODS, pod("host", host_path("/"), {"command": ["sleep", "600"]}))
        self.until(lambda: self.made("admin", "GET", f"{PODS}/host")["status"].get("phase") == "Running")
        # A token that is bound to the pod, but was asked for by somebody else, is that other's.
        bound = self.made("alice", "POST", f"{ACCOUNTS}/default/token", {"spec": {
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "host"}}})["status"]["token"]
        self.made("paul", "POST", f"{RBAC}/rolebindings", {
            "metadata": {"name": "bound"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "researcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "nlp"}]})
        added = {"spec": {"ephemeralContainers": [{"name": "look", "image": "busybox", "targetContainerName": "c"}]}}
        other = {"spec": {"containers": [{"name": "c", "image": "mine"}]}}
        strategic = {"Content-Type": "application/strategic-merge-patch+json"}
        for name, who in {**self.all, "a token of the pod's account": bound}.items():
            with self.subTest(name):
                for way in ("exec?command=id", "attach?stdin=1", "portforward?ports=22", "proxy/"):
                    self.forbidden(self.send(who, "GET", f"{PODS}/host/{way}"), "needs the right to exceed",
                                   'hostPath volumes (volume "v")')
                self.forbidden(self.send(who, "PATCH", f"{PODS}/host/ephemeralcontainers", added))
                self.forbidden(self.send(who, "PATCH", f"{PODS}/host", other, strategic), "hostPath volumes")
        done = self.cluster.kubectl("exec", "-n", "nlp", "host", "--", "echo", "mine")
        self.assertIn("mine\n", done.stdout, done.stderr)
        self.made("admin", "DELETE", f"{PODS}/host")

    def test_numbers_hold_for_all_that_acts_for_a_user(self):
        acting = {"Content-Type": "application/json",
                  "Impersonate-User": "system:serviceaccount:nlp:mule"}
        default = self.made("eve", "POST", f"{ACCOUNTS}/default/token", {"spec": {}})["status"]["token"]
        self.made("paul", "POST", f"{RBAC}/rolebindings", {
            "metadata": {"name": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "researcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "nlp"}]})
        self.made("eve", "POST", "/api/v1/namespaces/nlp/secrets", {
            "metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "default"}},
            "type": "kubernetes.io/service-account-token"})
        old = secret_text(self.made("eve", "GET", "/api/v1/namespaces/nlp/secrets/old"), "token")
        ways = {"eve herself": ("eve", None, "eve", 1500), "paul as mule": ("paul", acting, "paul", 1600),
                "eve as mule": ("eve", acting, "eve", 1500), "the token of mule": (self.mule, None, "paul", 1600),
                "a token that eve asked for": (default, None, "eve", 1500),
                "the Secret that eve made": (old, None, "eve", 1500)}
        for number, (way, (who, headers, user, uid)) in enumerate(ways.items()):
            with self.subTest(way):
                lie = {"annotations": {USER: "alice"}}
                made = self.made(who, "POST", PODS, pod(f"as-{number}", **lie), headers)
                self.assertEqual(made["metadata"]["annotations"][USER], user)
                self.assertEqual(made["spec"]["securityContext"]["runAsUser"], uid)
                root = pod(f"root-{number}", {"securityContext": {"runAsUser": 0}})
                self.forbidden(self.send(who, "POST", PODS, root, headers), "spec.securityContext.runAsUser: 0")
                self.made("admin", "DELETE", f"{PODS}/as-{number}")

    def test_the_editor_of_a_job_is_its_submitter(self):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "theirs"},
               "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": {
                   "replicas": 1, "template": {"spec": pod("x", None, {"name": "pytorch"})["spec"]}}}}}
        self.made("alice", "POST", JOBS, job)
        change = {"spec": {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": {"Worker": {"template": {"spec": {
            "containers": [{"name": "pytorch", "image": "mine"}]}}}}}}
        edited = self.made("eve", "PATCH", f"{JOBS}/theirs", change)
        self.assertEqual(edited["metadata"]["annotations"][USER], "eve")
        made = f"{PODS}/theirs-worker-0"
        self.until(lambda: self.send("admin", "GET", made).status == 200)
        self.assertEqual(self.made("admin", "GET", made)["spec"]["securityContext"]["runAsUser"], 1500)
        self.made("admin", "DELETE", f"{JOBS}/theirs")

    def test_an_annotation_that_adds_a_container_is_part_of_the_job(self):
        """It ran an image of alice's choice with eve's numbers, before eve's own command and with its files."""
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "fetching"},
               "spec": {"pytorchReplicaSpecs": {"Worker": {
                   "replicas": 1, "template": {"spec": pod("x", None, {"name": "pytorch", "command": [
                       "sleep", "600"]})["spec"]}}}}}
        made = f"{PODS}/fetching-worker-0"
        self.assertEqual(self.made("eve", "POST", JOBS, job)["metadata"]["annotations"][USER], "eve")
        self.until(lambda: self.send("admin", "GET", made).status == 200)
        code = json.dumps({"source": "https://127.0.0.1:1/x.git", "image": "mine", "destPath": "usr"})
        change = {"metadata": {"annotations": {"kubedl.io/git-sync-config": code}}}
        edited = self.made("alice", "PATCH", f"{JOBS}/fetching", change)
        self.assertEqual(edited["metadata"]["annotations"][USER], "alice")
        before = self.made("alice", "DELETE", made)["metadata"]["uid"]

        def again():
            answer = self.send("admin", "GET", made)
            return answer.json() if answer.status == 200 and answer.json()["metadata"]["uid"] != before else None

        self.until(again)
        self.assertEqual(again()["metadata"]["annotations"][USER], "alice")
        self.assertNotIn("runAsUser", again()["spec"].get("securityContext", {}))
        self.made("admin", "DELETE", f"{JOBS}/fetching")

    def test_work_that_breaks_its_users_numbers_is_refused_as_a_whole(self):
        """Not pod by pod, which would leave a job that never starts."""
        template = {"spec": pod("x", {"securityContext": {"runAsUser": 0}}, {"name": "pytorch"})["spec"]}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "root"},
               "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}}
        for who, uid in (("eve", 1500), ("paul", 1600)):
            self.forbidden(self.send(who, "POST", JOBS, job),
                           "spec.pytorchReplicaSpecs.Worker.template.spec.securityContext.runAsUser: 0",
                           f'pods of user "{who}" run as user {uid}')
        self.made("alice", "POST", JOBS, job)
        # The editor answers for the job, and so the editor's numbers hold.
        change = {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"hostname": "x"}}}}}}
        self.forbidden(self.send("eve", "PATCH", f"{JOBS}/root", change), "runAsUser: 0")
        self.made("alice", "DELETE", f"{JOBS}/root")

    def test_ports_of_the_machine_are_for_administrators(self):
        services = "/api/v1/namespaces/nlp/services"

        def service(kind, port, **more):
            return {"metadata": {"name": "out"}, "spec": {"type": kind, "ports": [{"port": port, **more}]}}
        for who in self.each():
            for port in (22, 53, 443, 1023):
                self.forbidden(self.send(who, "POST", services, service("LoadBalancer", port)),
                               f"spec.ports[0].port: {port}: a load balancer takes this port of the machine")
            self.forbidden(self.send(who, "POST", services, service("LoadBalancer", 30022)), "are node ports")
            answer = self.send(who, "POST", services, service("NodePort", 80, nodePort=22))
            self.assertEqual(answer.status, 422, answer.text())
            # Nor by a type that does not look at the number.
            by_name = service("ExternalName", 8080, nodePort=22)
            by_name["spec"]["externalName"] = "a.b"
            self.made(who, "POST", services, by_name)
            for kind in ("NodePort", "LoadBalancer"):
                answer = self.send(who, "PATCH", f"{services}/out", {"spec": {"type": kind}})
                self.assertEqual(answer.status, 422, answer.text())
            self.made(who, "DELETE", f"{services}/out")
        self.made("admin", "POST", services, service("LoadBalancer", 1023))
        self.made("admin", "DELETE", f"{services}/out")

    def test_nodes_are_the_schedulers_choice(self):
        for who in self.each():
            self.forbidden(self.send(who, "POST", PODS, pod("here", {"nodeName": "node-1"})), "spec.nodeName")
            binding = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "node-1"}}
            self.forbidden(self.send(who, "POST", f"{PODS}/x/binding", binding))

    def test_system_priorities_are_the_systems(self):
        for who in self.each():
            self.forbidden(self.send(who, "POST", PODS, pod("high", {"priorityClassName": "system-node-critical"})),
                           "priorityClassName")

    def test_nor_does_a_group_have_them(self):
        groups = "/apis/swell.dev/v1/namespaces/nlp/podgroups"
        group = {"apiVersion": "swell.dev/v1", "kind": "PodGroup", "metadata": {"name": "high"},
                 "spec": {"priorityClassName": "system-node-critical"}}
        for who in self.each():
            self.forbidden(self.send(who, "POST", groups, group), "spec.priorityClassName")

    def test_what_became_of_a_job_is_its_controllers_to_say(self):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "said"},
               "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": {
                   "replicas": 1, "template": {"spec": pod("x", None, {"name": "pytorch"})["spec"]}}}}}
        self.made("alice", "POST", JOBS, job)
        for who in self.each():
            self.forbidden(self.send(who, "PATCH", f"{JOBS}/said/status", {"status": {"gpuTime": {"lostSeconds": 0}}}))
        self.made("alice", "DELETE", f"{JOBS}/said")

    def test_a_claims_conditions_do_not_stop_the_cluster(self):
        claims = "/apis/resource.k8s.io/v1/namespaces/nlp/resourceclaims"
        numbers = "[" + ",".join(str(i) for i in range(100)) + "]"
        for name, condition in {"product": f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))",
                                "pattern": f"{numbers}.all(a, '{'a' * 3000}'.matches('(a*a*)*b|$'))"}.items():
            with self.subTest(name):
                self.made("alice", "POST", claims, {"metadata": {"name": name}, "spec": {"devices": {"requests": [{
                    "name": "gpu", "exactly": {"deviceClassName": "gpu.swell.dev",
                                               "selectors": [{"cel": {"expression": condition}}]}}]}}})
                self.made("alice", "POST", PODS, pod(name, {
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}))
                self.until(lambda: any("take more than 1000 steps" in one.get("message", "") for one in self.made(
                    "alice", "GET", f"{PODS}/{name}")["status"].get("conditions", [])))
                self.made("admin", "DELETE", f"{PODS}/{name}")

    def test_marks_of_the_system_are_the_systems(self):
        marks = {"swell.dev/gpu-devices": "0,1,2,3", "swell.dev/preempted-by": "x/y", "swell.dev/gpu-share": "0.1",
                 "swell.dev/pod-security": "privileged"}
        for number, who in enumerate(self.each()):
            made = self.made(who, "POST", PODS, pod(f"marked-{number}", annotations=dict(marks)))
            self.assertFalse(set(marks) & set(made["metadata"].get("annotations", {})))
            changed = self.made(who, "PATCH", f"{PODS}/marked-{number}", {"metadata": {"annotations": marks}}, MERGE)
            kept = changed["metadata"].get("annotations", {})
            self.assertNotIn("swell.dev/pod-security", kept)
            self.assertNotEqual(kept.get("swell.dev/gpu-devices"), "0,1,2,3")
            self.made("admin", "DELETE", f"{PODS}/marked-{number}")

    def test_nobody_lifts_the_level_of_their_own_project(self):
        for who in self.each():
            lower = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
            self.forbidden(self.send(who, "PATCH", "/api/v1/namespaces/nlp", lower))
            for spec in ({"podSecurity": "privileged"}, {"allowedHostPaths": [{"path": "/"}]}):
                self.forbidden(self.send(who, "PATCH", "/apis/swell.dev/v1/projects/nlp", {"spec": spec}))

    def test_a_project_allows_host_paths_by_name_and_a_level_by_field(self):
        self.made("admin", "PATCH", "/apis/swell.dev/v1/projects/vision",
                  {"spec": {"podSecurity": "restricted",
                            "allowedHostPaths": [{"path": "/srv/sets", "readOnly": True}]}})
        pods = "/api/v1/namespaces/vision/pods"
        context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
                   "seccompProfile": {"type": "RuntimeDefault"}}

        def asked(name, path, read_only=True, security=None):
            return pod(name, host_path(path), {"securityContext": security or context, "volumeMounts": [
                {"name": "v", "mountPath": "/v", "readOnly": read_only}]})

        self.until(lambda: self.send("carl", "POST", f"{pods}?dryRun=All", pod("plain")).status == 403)
        self.forbidden(self.send("carl", "POST", pods, pod("plain")), "violates PodSecurity \"restricted:latest\"",
                       "runAsNonRoot != true")
        self.made("carl", "POST", pods, asked("sets", "/srv/sets"))
        self.forbidden(self.send("carl", "POST", pods, asked("b", "/srv/sets", read_only=False)))
        self.forbidden(self.send("carl", "POST", pods, asked("b", "/srv")))
        self.forbidden(self.send("carl", "POST", pods, asked("b", "/srv/sets/more")))

    def test_a_deleted_user_loses_open_watches(self):
        path = str(self.scratch / "zoe")
        self.must(self.cluster.swell("user", "create", "zoe", "--role", "researcher", "--project", "nlp", "-o", path))
        watch = subprocess.Popen(["kubectl", "--kubeconfig", path, "-n", "nlp", "get", "pods", "--watch-only", "-v=6"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.stderr.close)
        self.addCleanup(watch.kill)
        while "watch=true" not in (line := watch.stderr.readline()):
            self.assertTrue(line, "kubectl ended before it watched")
        self.must(self.cluster.swell("user", "delete", "zoe"))
        self.assertNotEqual(watch.wait(timeout=LIMIT_S), None)

    def test_a_node_certificate_needs_the_right_to_nodes(self):
        key = self.scratch / "node.key"
        request = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                  "-nodes", "-keyout", key, "-subj", "/O=system:nodes/CN=system:node:node-1"],
                                 check=True, capture_output=True).stdout
        signing = {"metadata": {"name": "node"}, "spec": {
            "request": base64.b64encode(request).decode(), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client"}}
        roles = "/apis/rbac.authorization.k8s.io/v1"
        self.made("admin", "POST", f"{roles}/clusterroles", {"metadata": {"name": "ask"}, "rules": [{
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}]})
        self.made("admin", "POST", f"{roles}/clusterrolebindings", {
            "metadata": {"name": "ask"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ask"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "swell:users"}]})
        requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        self.forbidden(self.send("alice", "POST", requests, signing), "certificatesigningrequests/nodeclient")
        self.made("admin", "POST", requests, signing)
        self.must(self.cluster.kubectl("certificate", "approve", "node"))
        self.until(lambda: self.made("admin", "GET", f"{requests}/node").get("status", {}).get("certificate"))
        status = self.made("admin", "GET", f"{requests}/node")["status"]
        certificate = self.scratch / "node.crt"
        certificate.write_bytes(base64.b64decode(status["certificate"]))
        empty = self.scratch / "empty"
        empty.write_text("")
        secrets = self.cluster.kubectl("get", "secrets", "-A", "--client-certificate", certificate, "--client-key", key,
                                       "--server", self.people["admin"].url, "--insecure-skip-tls-verify",
                                       kubeconfig=empty)
        self.refused(secrets, "node \"node-1\"")

    def test_tokens_have_an_end(self):
        answer = self.send("alice", "POST", f"{ACCOUNTS}/default/token", {"spec": {"expirationSeconds": 1 << 32}})
        self.assertEqual(answer.json()["spec"]["expirationSeconds"], 365 * 24 * 3600)

    def test_a_projects_objects_are_counted(self):
        quota = self.made("admin", "GET", "/api/v1/namespaces/nlp/resourcequotas/project-objects")
        self.assertEqual(quota["spec"]["hard"]["count/configmaps"], "5k")
        for who in self.each():
            self.forbidden(self.send(who, "DELETE", "/api/v1/namespaces/nlp/resourcequotas/project-objects"))

    def test_z_secrets_on_disk_are_encrypted(self):
        """Last: the cluster stops and starts."""
        self.made("eve", "POST", "/api/v1/namespaces/nlp/secrets",
                  {"metadata": {"name": "kept"}, "stringData": {"password": "correct-horse-battery"}})
        self.cluster.down()
        directory = self.cluster.directory
        seen = [path.name for path in directory.rglob("*")
                if path.is_file() and b"correct-horse-battery" in path.read_bytes()
                or path.is_file() and base64.b64encode(b"correct-horse-battery") in path.read_bytes()]
        self.assertEqual(seen, [])
        key = directory / "pki" / "secrets.key"
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        before = self.must(self.cluster.swell("encryption", "status"))
        self.must(self.cluster.swell("encryption", "rotate"))
        self.assertNotEqual(self.must(self.cluster.swell("encryption", "status")), before)
        aside = directory / "secrets.key"
        key.rename(aside)
        with self.assertRaisesRegex(RuntimeError, "secrets.key is missing"):
            self.cluster.up()
        aside.rename(key)
        self.cluster.up()
        kept = self.made("eve", "GET", "/api/v1/namespaces/nlp/secrets/kept")
        self.assertEqual(secret_text(kept, "password"), "correct-horse-battery")
        self.refused(self.cluster.swell("encryption", "rotate"), "stop it first")

    def test_the_audit_log_says_why(self):
        self.send("alice", "POST", PODS, pod("noted", {"hostPID": True}))
        self.until(lambda: any(
            "pod-security.kubernetes.io/enforce-policy" in line and "alice" in line
            for line in (self.cluster.directory / "audit.log").read_text().splitlines()))
        lines = [json.loads(line) for line in (self.cluster.directory / "audit.log").read_text().splitlines()]
        found = [line for line in lines
                 if line["user"]["username"] == "alice" and line.get("responseStatus", {}).get("code") == 403]
        self.assertTrue(any(line["annotations"].get("pod-security.kubernetes.io/enforce-policy") == "baseline:latest"
                            for line in found))


if __name__ == "__main__":
    unittest.main()
