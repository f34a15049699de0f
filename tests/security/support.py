"""What the tests of a pod's boundary share: a cluster with two projects, people of each sort, and raw requests."""

import base64
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "operations"))
sys.path.insert(0, str(ROOT / "tests" / "conformance"))

from conformance.client import Server  # noqa: E402

import importlib.util  # noqa: E402

_spec = importlib.util.spec_from_file_location("operations_support", ROOT / "tests" / "operations" / "support.py")
operations = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(operations)
LIMIT_S = operations.LIMIT_S

# Name, role, and numbers: whose pods run as those of the node.
PEOPLE = {
    "alice": ("researcher", None),
    "eve": ("researcher", "1500"),
    "paul": ("project-admin", "1600"),
    "carl": ("researcher", None),
}
PROJECTS = ("vision", "nlp")
MERGE = {"Content-Type": "application/merge-patch+json"}


class SecurityTest(operations.ClusterTest):
    """`self.people[NAME]` sends requests as that person; carl is of the other project."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            cls.make_people()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def make_people(cls):
        for project in PROJECTS:
            cls.must(cls.cluster.swell("project", "create", project, "--gpu-quota", "4"))
        cls.people = {"admin": Server(cls.cluster.kubeconfig)}
        for name, (role, numbers) in PEOPLE.items():
            path = str(cls.scratch / name)
            run_as = ("--run-as", numbers) if numbers else ()
            project = "vision" if name == "carl" else "nlp"
            cls.must(cls.cluster.swell("user", "create", name, "--role", role, "--project", project, *run_as,
                                       "-o", path))
            cls.people[name] = Server(path)

    @staticmethod
    def must(done):
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def send(self, who, method, path, body=None, headers=None):
        """The answer to `who`: a name of people, or a service account's token."""
        headers = dict(headers or (MERGE if method == "PATCH" else {"Content-Type": "application/json"}))
        server = self.people.get(who)
        if server is None:
            server, headers["Authorization"] = self.people["admin"], f"Bearer {who}"
            return server.send(method, path, json.dumps(body) if body is not None else None, headers, anonymous=True)
        return server.send(method, path, json.dumps(body) if body is not None else None, headers)

    def made(self, who, method, path, body=None, headers=None):
        answer = self.send(who, method, path, body, headers)
        self.assertLess(answer.status, 300, answer.text())
        return answer.json()

    def forbidden(self, answer, *words):
        self.assertEqual(answer.status, 403, answer.text())
        for word in words:
            self.assertIn(word, answer.json()["message"])


def secret_text(secret, key):
    return base64.b64decode(secret["data"][key]).decode()
