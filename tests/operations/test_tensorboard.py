"""A TensorBoard beside a job: what `arena submit --tensorboard` starts, shows and leaves, with real processes.

A stand-in takes TensorBoard's place: it answers with the event files that it finds below its --logdir.
"""

import json
import re
import shutil
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "ui"))

from page_client import Pages  # noqa: E402
from support import BIN, SWELL, LIMIT_S, Cluster, run, until  # noqa: E402

STAND_IN = """\
#!/usr/bin/python3
import argparse, http.server, os

parser = argparse.ArgumentParser()
for flag in ("--logdir", "--host", "--port"):
    parser.add_argument(flag, required=True)
options = parser.parse_args()


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = []
        for folder, _, names in os.walk(options.logdir):
            for name in names:
                path = os.path.join(folder, name)
                found.append(f"{os.path.relpath(path, options.logdir)} {os.path.getsize(path)}")
        body = "\\n".join(["stand-in", *found, *map(str, self.headers.items())]).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "of=the-pod")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer((options.host, int(options.port)), Files).serve_forever()
"""
TRAINING = """\
import signal, swell
job = swell.Job()
job.restore()
for step in range(1, 4):
    job.log(loss=1 / step)
    job.step_done(step, {"step": step})
job._scalars.flush()
print("wrote", flush=True)
while not job.should_stop():
    signal.pause()
"""


class RealCluster(Cluster):
    def up(self):
        done = run(SWELL, "up", "--detach", "--data-dir", self.directory, *self.flags)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)


class TensorboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-tensorboard-"))
        programs = cls.scratch / "programs"
        programs.mkdir()
        (programs / "tensorboard").write_text(STAND_IN, encoding="utf-8")
        (programs / "tensorboard").chmod(0o755)
        (programs / "train.py").write_text(TRAINING, encoding="utf-8")
        for path in (cls.scratch, programs):
            path.chmod(0o755)
        cls.train = programs / "train.py"
        data = cls.scratch / "cluster"
        data.mkdir()
        files = f"  files: [{{host: {programs}, path: {programs}}}]\n"
        (data / "images.yaml").write_text(
            "images:\n"
            f"- match: [with-board]\n  base: python\n  path: [{programs}]\n{files}"
            f"- match: [without-board]\n  base: python\n{files}", encoding="utf-8")
        cls.cluster = RealCluster(data, "--nodes", "1", "--gpus-per-node", "2")
        cls.cluster.up()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def arena(self, *words):
        done = run(BIN / "arena", *words, "--config", self.cluster.kubeconfig)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def submit(self, name, image, *more):
        return self.arena("submit", "pytorch", f"--name={name}", f"--image={image}", "--tensorboard", *more,
                          f"python3 {self.train}")

    def names(self, resource):
        return [item["metadata"]["name"] for item in self.cluster.get(resource)["items"]]

    def test_it_shows_the_jobs_curves_and_ends_with_the_job(self):
        told = self.submit("curves", "with-board")
        found = re.search(r"TensorBoard of curves (?:answers|will answer) at (http://\S+)", told)
        self.assertTrue(found, told)

        def fetch():
            try:
                with urllib.request.urlopen(found.group(1), timeout=LIMIT_S) as answer:
                    return answer.read().decode()
            except OSError as error:
                return str(error)

        self.assertTrue(until(lambda: "events.out.tfevents" in fetch()), fetch())
        lines = fetch().split("\n")
        self.assertEqual(lines[0], "stand-in")
        self.assertRegex(lines[1], r"^curves/events\.out\.tfevents\.\d{10}\.curves-master-0\.\d+\.swell \d{2,}$")
        # With the user's rights, through the API server.
        path = "/api/v1/namespaces/default/services/curves-tensorboard:6006/proxy/"
        self.assertEqual(self.cluster.kubectl("get", "--raw", path).stdout.split("\n")[0], "stand-in")
        available = f"Your tensorboard is available on:\n{found.group(1)}\n"
        self.assertTrue(until(lambda: available in self.arena("get", "curves")), self.arena("get", "curves"))
        self.assertIn(f'"tensorboard": "{found.group(1)}"', self.arena("get", "curves", "-o", "json"))

        self.assertEqual(self.cluster.kubectl("delete", "pytorchjob", "curves").returncode, 0)
        for resource in ("deployments", "services", "persistentvolumeclaims", "pods"):
            self.assertTrue(until(lambda: not [name for name in self.names(resource) if name.startswith("curves")]),
                            resource)

    @unittest.skipIf(shutil.which("tensorboard") or Path("/opt/tensorboard").exists(), "this machine has a TensorBoard")
    def test_without_one_the_job_trains_and_the_user_is_told_what_to_install(self):
        told = " ".join(self.submit("plain", "without-board").split())
        self.assertIn("The job plain runs without TensorBoard: TensorBoard is not installed on this machine.", told)
        self.assertIn("/opt/tensorboard/bin/pip install tensorboard", told)
        self.assertIn("The Job plain has been submitted successfully", told)
        self.assertTrue(until(lambda: "wrote" in self.cluster.swell("logs", "plain").stdout))
        self.assertIn("TENSORBOARD: TensorBoard is not installed on this machine.", self.arena("get", "plain"))
        self.arena("delete", "plain")
        for resource in ("deployments", "services", "persistentvolumeclaims", "pods"):
            self.assertTrue(until(lambda: not [name for name in self.names(resource) if name.startswith("plain")]),
                            resource)

    def pages_url(self):
        """(address, one-time code)"""
        done = run(SWELL, "ui", "--print", "--data-dir", self.cluster.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip().split("#code=")

    def pages(self):
        url, code = self.pages_url()
        pages = Pages(url)
        self.assertEqual(pages.login(code=code)[0], 200)
        return pages

    def test_a_jobs_page_starts_one_or_says_what_the_job_lacks(self):
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "logs"},
                 "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}

        def job(name, **more):
            container = {"name": "pytorch", "image": "with-board", "command": ["python3", str(self.train)], **more}
            spec = {"containers": [container], "terminationGracePeriodSeconds": 1,
                    "volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}]}
            return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
                    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": spec}}}}}

        writes = job("writes", env=[{"name": "SWELL_LOG_DIR", "value": "/logs/writes"}],
                     volumeMounts=[{"name": "logs", "mountPath": "/logs"}])
        for one in (claim, writes, job("silent")):
            done = self.cluster.kubectl("apply", "-f", "-", input=json.dumps(one))
            self.assertEqual(done.returncode, 0, done.stderr)
        pages = self.pages()
        path = "/ui/api/tensorboard?namespace=default&kind=PyTorchJob&name="
        self.assertEqual(pages.json("GET", path + "writes")[1]["state"], "None")
        self.assertEqual(pages.json("POST", path + "writes", csrf=False)[0], 403)
        self.assertTrue(until(lambda: pages.json("POST", path + "writes")[1]["state"] == "Ready"),
                        str(pages.json("POST", path + "writes")))
        found = pages.json("GET", path + "writes")[1]
        # The pages open it, so nobody else needs to reach it.
        self.assertEqual((found["opens"], found["url"], found["port"], found["closed"]), (True, None, None, None))
        self.assertEqual(self.cluster.get("services", "writes-tensorboard")["spec"]["type"], "ClusterIP")
        self.open_with_the_users_rights(pages, path.replace("tensorboard?", "tensorboard/open?") + "writes")
        status, refused = self.pages().json("POST", path + "silent")
        self.assertEqual(status, 409, refused)
        self.assertIn("silent writes no curves", refused["message"])
        for name in ("writes", "silent"):
            self.assertEqual(self.cluster.kubectl("delete", "pytorchjob", name).returncode, 0)
        self.assertTrue(until(lambda: "writes-tensorboard" not in self.names("deployments")))
        self.cluster.kubectl("delete", "pvc", "logs")

    def open_with_the_users_rights(self, pages, path):
        self.assertEqual(pages.json("POST", path, csrf=False)[0], 403)
        status, opened = pages.json("POST", path)
        self.assertEqual(status, 200, opened)
        programs, ticket = opened["url"].removeprefix("http://").split("/", 1)
        self.assertEqual(programs.split(":")[0], "localhost")
        self.assertNotEqual(programs, pages.host)
        board = Pages(f"http://{programs}")
        status, headers, page = board.ask("GET", f"/{ticket}")
        self.assertEqual(status, 200, page)
        board.cookie = headers["Set-Cookie"].split(";")[0]
        place = re.search(rb"url=(/p/[0-9a-f]{64}/)", page)[1].decode()
        self.assertEqual(board.ask("GET", f"/{ticket}")[0], 401)
        self.assertTrue(until(lambda: b"events.out.tfevents" in board.ask("GET", place)[2]), board.ask("GET", place))
        status, headers, text = board.ask("GET", place, headers={"Authorization": "Bearer x", "X-Swell-CSRF": "y"})
        self.assertEqual((status, headers["Set-Cookie"]), (200, None))
        for word in (b"swell_", b"Bearer", b"CSRF", board.cookie.encode()):
            self.assertNotIn(word, text)
        self.assertEqual(Pages(f"http://{programs}").ask("GET", place)[0], 401)
        self.assertEqual(board.ask("GET", place, headers={"Host": "rebind.example"})[0], 403)
        self.refused_without_the_right(path)
        self.assertEqual(pages.json("POST", "/ui/api/logout")[0], 200)
        self.assertEqual(board.ask("GET", place)[0], 401)

    def refused_without_the_right(self, path):
        """A user who may look at the namespace does not reach its pods."""
        account = self.cluster.kubectl("create", "serviceaccount", "looker")
        self.assertEqual(account.returncode, 0, account.stderr)
        self.cluster.kubectl("create", "rolebinding", "looker", "--clusterrole=view", "--serviceaccount=default:looker")
        token = self.cluster.kubectl("create", "token", "looker")
        self.assertEqual(token.returncode, 0, token.stderr)
        looker = Pages(self.pages_url()[0])
        self.assertEqual(looker.login(token=token.stdout.strip())[0], 200)
        status, refused = looker.json("POST", path)
        self.assertEqual(status, 403, refused)
        self.assertIn("you may not create pods/portforward", refused["message"])

    def test_the_image_that_is_named_is_the_only_one_tried(self):
        told = " ".join(self.submit("named", "with-board", "--tensorboard-image=without-board").split())
        self.assertIn("image without-board has no TensorBoard: name one that has it with --tensorboard-image", told)
        self.arena("delete", "named")


if __name__ == "__main__":
    unittest.main()
