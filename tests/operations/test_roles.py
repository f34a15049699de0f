"""What each of the four roles may do in its project, in another, and to the cluster: a table."""

import json
import sys
import unittest

from support import ROOT, ClusterTest

sys.path.insert(0, str(ROOT / "tests" / "conformance"))

from conformance.client import Server  # noqa: E402

ROLES = {"a": "admin", "p": "project-admin", "r": "researcher", "v": "viewer"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN, OTHER = "/api/v1/namespaces/vision", "/api/v1/namespaces/nlp"
DRY = "?dryRun=All"
MERGE = {"Content-Type": "application/merge-patch+json"}
POD = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


def named(**more):
    return {"metadata": {"name": "x"}, **more}


def role(kind, *rules):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, **named(rules=list(rules))}


def binding(to, kind="ClusterRole", name="x"):
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "zoe"}]}


def review(verb, group, resource, namespace="", name=""):
    return {"spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": namespace,
                                            "name": name}}}


READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]}

# Letters of the roles that may, method, path, body. They hear that it is made, missing or wrong, never forbidden.
ACTIONS = [
    ("aprv", "GET", f"{IN}/pods"),
    ("a", "GET", f"{OTHER}/pods"),
    ("a", "GET", "/api/v1/pods"),
    ("a", "GET", "/api/v1/pods?watch=true&timeoutSeconds=1"),
    ("apr", "POST", f"{IN}/pods{DRY}", named(**POD)),
    ("a", "POST", f"{OTHER}/pods{DRY}", named(**POD)),
    ("apr", "DELETE", f"{IN}/pods/x"),
    ("apr", "DELETE", f"{IN}/pods?labelSelector=no=such"),
    ("aprv", "GET", f"{IN}/pods/x/log"),
    ("apr", "POST", f"{IN}/pods/x/exec?command=id"),
    ("apr", "GET", f"{IN}/pods/x/exec?command=id"),
    ("apr", "POST", f"{IN}/pods/x/attach"),
    ("apr", "POST", f"{IN}/pods/x/portforward"),
    ("apr", "GET", f"{IN}/pods/x/proxy/"),
    ("apr", "POST", f"{IN}/pods/x/eviction", named()),
    ("a", "POST", f"{IN}/pods/x/binding", named(target={"name": "node-1"})),
    ("a", "PATCH", f"{IN}/pods/x/status", {}),
    ("apr", "GET", f"{IN}/secrets"),
    ("apr", "POST", f"{IN}/secrets{DRY}", named()),
    ("a", "GET", f"{OTHER}/secrets"),
    ("a", "GET", "/api/v1/namespaces/kube-system/secrets"),
    ("a", "GET", "/api/v1/namespaces/swell-system/configmaps"),
    ("aprv", "GET", f"{IN}/configmaps"),
    ("apr", "POST", f"{IN}/configmaps{DRY}", named()),
    ("apr", "POST", f"{IN}/persistentvolumeclaims{DRY}", named()),
    ("a", "POST", f"/api/v1/persistentvolumes{DRY}", named()),
    ("aprv", "GET", f"{IN}/events"),
    ("aprv", "GET", f"{IN}/resourcequotas"),
    ("a", "POST", f"{IN}/resourcequotas{DRY}", named()),
    ("a", "POST", f"{IN}/limitranges{DRY}", named()),
    ("apr", "POST", f"{IN}/serviceaccounts/default/token", {"spec": {}}),
    ("a", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}),
    ("apr", "POST", f"/apis/batch/v1/namespaces/vision/jobs{DRY}", named()),
    ("apr", "POST", f"/apis/apps/v1/namespaces/vision/deployments{DRY}", named()),
    ("aprv", "GET", "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs"),
    ("apr", "POST", f"/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs{DRY}", named()),
    ("aprv", "GET", "/apis/swell.dev/v1/namespaces/vision/trainingjobs"),
    ("apr", "PATCH", "/apis/swell.dev/v1/namespaces/vision/trainingjobs/x/scale", {}),
    ("a", "PATCH", "/apis/swell.dev/v1/namespaces/nlp/trainingjobs/x/scale", {}),
    ("apr", "DELETE", "/apis/swell.dev/v1/namespaces/vision/podgroups/x"),
    ("a", "PATCH", "/apis/swell.dev/v1/namespaces/vision/podgroups/x/status", {}),
    ("aprv", "GET", "/apis/swell.dev/v1/projects"),
    ("a", "PATCH", "/apis/swell.dev/v1/projects/vision" + DRY, {}),
    ("a", "POST", f"/apis/swell.dev/v1/nodepools{DRY}", named()),
    ("aprv", "GET", "/apis/swell.dev/v1/nodepools"),
    ("aprv", "GET", "/api/v1/nodes"),
    ("a", "PATCH", f"/api/v1/nodes/node-1{DRY}", {}),
    ("a", "GET", "/api/v1/nodes/node-1/proxy/"),
    ("aprv", "GET", "/api/v1/namespaces"),
    ("a", "POST", f"/api/v1/namespaces{DRY}", named()),
    ("a", "PATCH", f"/api/v1/namespaces/vision{DRY}", {"metadata": {"annotations": {"swell.dev/run-as-user": "0"}}}),
    ("a", "DELETE", f"/api/v1/namespaces/vision{DRY}"),
    ("a", "POST", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions{DRY}", named()),
    ("a", "POST", f"/apis/scheduling.k8s.io/v1/priorityclasses{DRY}", named(value=1)),
    ("a", "POST", f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations{DRY}", named()),
    ("a", "POST", f"/apis/certificates.k8s.io/v1/certificatesigningrequests{DRY}", named()),
    ("aprv", "GET", "/apis/metrics.k8s.io/v1beta1/namespaces/vision/pods"),
    ("a", "GET", "/apis/metrics.k8s.io/v1beta1/nodes"),
    ("a", "GET", "/metrics"),
    ("a", "POST", "/swell/v1/users/swell-user-zoe/credentials", {"uid": "x", "expirationSeconds": 60}),
    # What they hold they may give, and no more.
    ("ap", "POST", f"{RBAC}/namespaces/vision/roles{DRY}", role("Role", READ_PODS)),
    ("a", "POST", f"{RBAC}/namespaces/vision/roles{DRY}", role("Role", ALL)),
    ("a", "POST", f"{RBAC}/namespaces/vision/roles{DRY}", role("Role", READ_PODS, NODES)),
    ("ap", "POST", f"{RBAC}/namespaces/vision/rolebindings{DRY}", binding("researcher")),
    ("ap", "POST", f"{RBAC}/namespaces/vision/rolebindings{DRY}", binding("project-admin")),
    ("a", "POST", f"{RBAC}/namespaces/vision/rolebindings{DRY}", binding("cluster-admin")),
    ("a", "POST", f"{RBAC}/namespaces/vision/rolebindings{DRY}", binding("system:node")),
    ("a", "POST", f"{RBAC}/namespaces/nlp/rolebindings{DRY}", binding("viewer")),
    ("a", "POST", f"{RBAC}/clusterroles{DRY}", role("ClusterRole", READ_PODS)),
    ("a", "POST", f"{RBAC}/clusterrolebindings{DRY}", binding("viewer")),
    ("ap", "PUT", f"{RBAC}/namespaces/vision/roles/little{DRY}",
     {**role("Role", READ_PODS), "metadata": {"name": "little"}}),
    ("a", "PUT", f"{RBAC}/namespaces/vision/roles/little{DRY}",
     {**role("Role", ALL), "metadata": {"name": "little"}}),
    ("a", "PATCH", f"{RBAC}/namespaces/vision/roles/little{DRY}", {"rules": [ALL]}),
    ("aprv", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review("get", "", "pods")),
    ("ap", "POST", "/apis/authorization.k8s.io/v1/namespaces/vision/localsubjectaccessreviews",
     {"metadata": {"namespace": "vision"}, "spec": {"user": "zoe", **review("get", "", "pods", "vision")["spec"]}}),
    ("a", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
     {"spec": {"user": "zoe", **review("get", "", "pods")["spec"]}}),
]

# Letters of the roles that may act as these users: header lines.
IMPERSONATIONS = [
    ("a", {"Impersonate-User": "anna"}),
    ("a", {"Impersonate-User": "zoe", "Impersonate-Group": "system:masters"}),
    ("a", {"Impersonate-User": "system:serviceaccount:kube-system:default"}),
    ("a", {"Impersonate-User": "system:serviceaccount:nlp:default"}),
    ("apr", {"Impersonate-User": "system:serviceaccount:vision:default"}),
    ("a", {"Impersonate-User": "system:serviceaccount:vision:default", "Impersonate-Group": "system:masters"}),
    ("a", {"Impersonate-User": "system:serviceaccount:vision:default", "Impersonate-Extra-Scopes": "all"}),
]


class Roles(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for project in ("vision", "nlp"):
            cls.cluster.swell("project", "create", project, "--gpu-quota", "4")
        cls.as_role = {}
        for letter, name in ROLES.items():
            path = str(cls.scratch / letter)
            project = () if name == "admin" else ("--project", "vision")
            made = cls.cluster.swell("user", "create", f"user-{letter}", "--role", name, *project, "-o", path)
            assert made.returncode == 0, made.stderr
            cls.as_role[letter] = Server(path)
        made = cls.as_role["a"].send("POST", f"{RBAC}/namespaces/vision/roles", json.dumps(
            {**role("Role"), "metadata": {"name": "little"}}))
        assert made.status == 201, made.text()

    def who(self, send):
        """The letters of the roles that it is not forbidden to, and what each role was answered."""
        answers = {letter: send(server) for letter, server in self.as_role.items()}
        for letter, answer in answers.items():
            self.assertNotIn(answer.status, (401, 405, 500), f"{ROLES[letter]}: {answer.text()}")
        said = "\n".join(f"{ROLES[letter]}: {answer.status} {answer.text()[:300]}"
                         for letter, answer in answers.items())
        return "".join(letter for letter, answer in answers.items() if answer.status != 403), said

    def test_each_may_what_the_table_says(self):
        for may, method, path, *body in ACTIONS:
            headers = MERGE if method == "PATCH" else {"Content-Type": "application/json"}
            text = json.dumps(body[0]) if body else None
            with self.subTest(f"{method} {path} {text or ''}"):
                got, said = self.who(lambda one: one.send(method, path, text, headers))
                self.assertEqual(got, may, said)

    def test_who_may_act_as_whom(self):
        reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        for may, headers in IMPERSONATIONS:
            with self.subTest(str(headers)):
                got, said = self.who(lambda one: one.send("POST", reviews, "{}", headers))
                self.assertEqual(got, may, said)

    def test_who_acts_as_another_has_the_others_rights(self):
        acting = {"Impersonate-User": "user-v", "Impersonate-Group": "swell:users"}
        answer = self.as_role["a"].send("GET", f"{IN}/secrets", None, acting)
        self.assertEqual(answer.status, 403, answer.text())


if __name__ == "__main__":
    unittest.main()
