"""The pages' server of a real cluster: sessions and their limits, views and rights, live updates, the API behind it."""

import gzip
import http.client
import json
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "operations"))
sys.path.insert(0, str(ROOT / "tests" / "ui"))

from page_client import Pages  # noqa: E402
from support import ClusterTest  # noqa: E402

JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME, namespace: NS}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: WORKERS
      template:
        spec:
          containers:
          - {name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}}}
"""

CRON = """
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: nightly, namespace: default}
spec:
  schedule: 0 22 * * *
  suspend: true
  template:
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    workload:
      spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: python:3.11}]}}}}}
"""


class PagesTest(ClusterTest):
    flags = ("--nodes", "2", "--gpus-per-node", "4")

    def url(self, kubeconfig=None):
        """(address, one-time code) from `swell ui`."""
        done = self.cluster.swell("ui", "--print", kubeconfig=kubeconfig)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip().split("#code=")

    def admin(self):
        url, code = self.url()
        pages = Pages(url)
        status, session = pages.login(code=code)
        self.assertEqual(status, 200, session)
        return pages

    def submit(self, name, workers, ns="default"):
        text = JOB.replace("NAME", name).replace("NS", ns).replace("WORKERS", str(workers))
        self.done(self.cluster.kubectl("apply", "-f", "-", input=text))

    def user(self, name, project):
        file = self.scratch / f"{name}.kubeconfig"
        self.done(self.cluster.swell("user", "create", name, "--role", "researcher", "--project", project, "-o", file,
                                     "--data-dir", self.cluster.directory))
        return str(file)


class Sessions(PagesTest):
    def test_code_logs_in_once(self):
        url, code = self.url()
        pages = Pages(url)
        status, session = pages.login(code=code)
        self.assertEqual((status, session["user"]), (200, "swell-admin"))
        self.assertEqual(pages.json("GET", "/ui/api/session")[1]["csrf"], session["csrf"])
        self.assertEqual(self.cluster.swell("version", "--client").stdout, f"swell   {session['version']}\n")
        status, again = Pages(url).login(code=code)
        self.assertEqual(status, 401)
        self.assertIn("swell ui", again["message"])

    def test_cookie_is_out_of_scripts_reach(self):
        url, code = self.url()
        _, headers, _ = Pages(url).ask("POST", "/ui/api/login", {"code": code})
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(word, headers["Set-Cookie"])

    def test_nothing_without_a_session(self):
        pages = Pages(self.url()[0])
        for path in ("session", "views/nodes", "k8s/api/v1/namespaces"):
            self.assertEqual(pages.json("GET", f"/ui/api/{path}")[0], 401, path)
        self.assertEqual(pages.login(token="wrong")[0], 401)
        self.assertEqual(pages.login(token="")[0], 401)
        self.assertEqual(pages.login(code="0" * 64)[0], 401)
        self.assertEqual(pages.ask("POST", "/ui/api/login", "{")[0], 400)
        pages.cookie = f"swell_session_{pages.host.split(':')[1]}=" + "0" * 64
        self.assertEqual(pages.json("GET", "/ui/api/views/nodes")[0], 401)

    def test_writes_repeat_the_sessions_secret(self):
        pages = self.admin()
        body = {"metadata": {"name": "made-here"}}
        path = "/ui/api/k8s/api/v1/namespaces"
        self.assertEqual(pages.json("POST", path, body, csrf=False)[0], 403)
        self.assertEqual(pages.json("POST", path, body, headers={"X-Swell-CSRF": "x" * 64})[0], 403)
        self.assertEqual(pages.json("POST", path, body)[0], 201)

    def test_other_origins_and_hosts_are_refused(self):
        pages = self.admin()
        evil = {"Origin": "http://evil.example"}
        self.assertEqual(pages.json("POST", "/ui/api/logout", headers=evil)[0], 403)
        self.assertEqual(pages.json("POST", "/ui/api/logout", headers={"Origin": "null"})[0], 403)
        self.assertEqual(pages.live(origin="http://evil.example").status, 403)
        self.assertEqual(pages.live(origin="").status, 403)
        self.assertEqual(pages.ask("GET", "/", headers={"Host": "evil.example"})[0], 403)
        port = pages.host.split(":")[1]
        self.assertEqual(pages.json("GET", "/ui/api/session", headers={"Host": f"rebind.example:{port}"})[0], 403)

    def test_writes_say_where_they_come_from(self):
        pages = self.admin()
        path, body = "/ui/api/k8s/api/v1/namespaces", {"metadata": {"name": "made-from-here"}}
        for headers in ({"Origin": None}, {"Origin": None, "Sec-Fetch-Site": "cross-site"},
                        {"Origin": None, "Sec-Fetch-Site": "same-site"}):
            self.assertEqual(pages.json("POST", path, body, headers=headers)[0], 403, headers)
        headers = {"Origin": None, "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(pages.json("POST", path, body, headers=headers)[0], 201)

    def test_a_client_that_refuses_gzip_gets_the_pages_plain(self):
        pages = Pages(self.url()[0])
        status, headers, page = pages.ask("GET", "/", headers={"Accept-Encoding": "identity"})
        self.assertEqual((status, headers["Content-Encoding"]), (200, None))
        script = re.search(rb'src="(/assets/[^"]+\.js)"', page)
        self.assertTrue(script, page)
        plain = pages.ask("GET", script[1].decode(), headers={"Accept-Encoding": "gzip;q=0"})
        packed = pages.ask("GET", script[1].decode())
        self.assertEqual((plain[0], packed[1]["Content-Encoding"]), (200, "gzip"))
        self.assertEqual(plain[2], gzip.decompress(packed[2]))
        self.assertNotEqual(plain[1]["ETag"], packed[1]["ETag"])

    def test_token_is_one_word(self):
        pages = Pages(self.url()[0])
        for token in ("a b", "a\r\nX-Header: b", "ä"):
            status, answer = pages.login(token=token)
            self.assertEqual((status, "the token has" in answer["message"]), (401, True), answer)

    def test_logout_ends_the_session_and_its_tabs(self):
        pages = self.admin()
        live = pages.live()
        live.send({"op": "subscribe", "id": 1, "view": "nodes"})
        live.message()
        self.assertEqual(pages.json("POST", "/ui/api/logout")[0], 200)
        with self.assertRaises(EOFError):
            live.until(lambda message: False)
        self.assertEqual(pages.json("GET", "/ui/api/session")[0], 401)

    def test_deleted_user_is_out(self):
        self.cluster.swell("project", "create", "shortlived", "--gpu-quota", "1")
        file = self.user("temp", "shortlived")
        url, code = self.url(kubeconfig=file)
        pages = Pages(url)
        self.assertEqual(pages.login(code=code)[1]["user"], "temp")
        self.done(self.cluster.swell("user", "delete", "temp", "--data-dir", self.cluster.directory))
        self.assertEqual(pages.json("GET", "/ui/api/k8s/api/v1/nodes")[0], 401)
        self.until(lambda: pages.json("GET", "/ui/api/session")[0] == 401, lambda: "the session has not ended")

    def test_token_logs_in(self):
        self.cluster.swell("project", "create", "tokens", "--gpu-quota", "1")
        token = re.search(r"token: (\S+)", Path(self.user("tess", "tokens")).read_text())[1].strip('"')
        pages = Pages(self.url()[0])
        status, session = pages.login(token=token)
        self.assertEqual((status, session["user"]), (200, "tess"))

    def test_safe_headers(self):
        _, headers, _ = self.admin().ask("GET", "/ui/api/session")
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_port_is_kept(self):
        before = self.url()[0]
        self.cluster.down()
        self.cluster.up()
        self.assertEqual(self.url()[0], before)


class Views(PagesTest):
    def test_views_follow_the_cluster(self):
        pages = self.admin()
        live = pages.live()
        self.assertEqual(live.status, 101)
        live.send({"op": "subscribe", "id": 7, "view": "workloads", "params": {}})
        first = live.message()
        self.assertEqual(first["id"], 7)
        self.submit("train", 3)
        row = live.until(lambda message: any(row["name"] == "train" and row["status"] == "Running"
                                             for row in message["data"]["rows"]))
        train = next(row for row in row["data"]["rows"] if row["name"] == "train")
        self.assertEqual(train["members"], {"running": 3, "requested": 3, "min": 3, "max": 3})
        self.assertEqual(train["gpus"], {"requested": 3, "held": 3})
        self.until(lambda: pages.view("overview")["gpus"]["held"] >= 3)
        nodes = pages.view("nodes")["rows"]
        held = [gpu["job"] for node in nodes for gpu in node["gpuDevices"] if gpu["job"] == "train"]
        self.assertEqual(len(held), 3)
        self.assertEqual(pages.view("overview")["gpus"]["total"], 8)
        self.assertEqual(pages.json("GET", "/ui/api/views/nothing")[0], 404)

    def test_a_tab_that_wants_it_gets_what_changed(self):
        pages = self.admin()
        # Larger than the cluster, so that they wait and nothing else changes.
        for index in range(10):
            self.submit(f"many-{index}", 9)
            self.addCleanup(self.cluster.kubectl, "delete", "pytorchjob", f"many-{index}")
        waiting = lambda: [row for row in pages.view("workloads")["rows"] if row["reason"]]  # noqa: E731
        self.until(lambda: len(waiting()) >= 10)
        live = pages.live()
        live.send({"op": "subscribe", "id": 1, "view": "workloads", "params": {}, "delta": True})
        last = live.message()
        rows, revision = last["data"]["rows"], last["revision"]
        self.submit("one-more", 9)
        self.addCleanup(self.cluster.kubectl, "delete", "pytorchjob", "one-more")
        deltas = 0
        while not any(row["name"] == "one-more" for row in rows):
            message = live.message()
            if "delta" in message:
                self.assertEqual(message["base"], revision)
                deltas += 1
                steps = message["delta"]["lists"]["rows"]
                rows = [row for step in steps
                        for row in ([step] if isinstance(step, dict) else rows[step[0]:step[0] + step[1]])]
            else:
                rows = message["data"]["rows"]
            revision = message["revision"]
        self.assertGreater(deltas, 0)
        names = sorted(row["name"] for row in pages.view("workloads")["rows"])
        self.assertEqual(sorted(row["name"] for row in rows), names)

    def test_bad_messages_end_the_tab_or_are_answered(self):
        live = self.admin().live()
        live.send({"op": "subscribe", "id": 1, "view": "nothing"})
        self.assertIn("nothing", live.message()["error"])
        live.send({"op": "dance", "id": 2})
        self.assertIn("dance", live.message()["error"])
        for id in range(100, 170):
            live.send({"op": "subscribe", "id": id, "view": "nodepools"})
        self.assertIn("at most 64", live.until(lambda message: "error" in message)["error"])
        live.send(b"no json")
        with self.assertRaises(EOFError):
            live.until(lambda message: False)

    def test_researcher_sees_their_own(self):
        for project in ("mine", "theirs"):
            self.done(self.cluster.swell("project", "create", project, "--gpu-quota", "2"))
            self.until(lambda: project in json.dumps(self.cluster.get("namespaces")))
            self.submit(f"work-of-{project}", 1, ns=project)
        url, code = self.url(kubeconfig=self.user("rita", "mine"))
        rita = Pages(url)
        self.assertEqual(rita.login(code=code)[0], 200)
        self.until(lambda: "work-of-mine" in json.dumps(rita.view("workloads")))
        self.until(lambda: rita.view("workloads").get("partial"), lambda: "nothing tells that there is more")
        for view in ("overview", "workloads", "nodes", "events", "projects", "nodepools"):
            data = rita.view(view)
            self.assertNotIn("work-of-theirs", json.dumps(data), view)
        self.assertEqual(rita.json("GET", "/ui/api/views/users")[0], 403)
        status, document = rita.json("GET", "/ui/api/k8s/api/v1/namespaces/theirs/pods")
        self.assertEqual((status, document["reason"]), (403, "Forbidden"))
        self.assertEqual(rita.json("GET", "/ui/api/k8s/api/v1/namespaces/mine/pods")[0], 200)


    def test_a_server_is_a_workload_with_its_address(self):
        self.done(self.cluster.swell("project", "create", "serving", "--gpu-quota", "2"))
        self.until(lambda: "serving" in json.dumps(self.cluster.get("namespaces")))
        file = self.user("sara", "serving")
        self.done(self.cluster.swell("arena", "serve", "custom", "--name", "bert", "--version", "v1", "--gpus", "1",
                                     "--restful-port", "5000", "--image", "python", "-n", "serving", "true",
                                     kubeconfig=file))
        url, code = self.url(kubeconfig=file)
        sara = Pages(url)
        self.assertEqual(sara.login(code=code)[0], 200)
        rows = lambda: [row for row in sara.view("workloads")["rows"] if row["kind"] == "Deployment"]  # noqa: E731
        self.until(lambda: [row["status"] for row in rows()] == ["Running"], lambda: str(rows()))
        server = rows()[0]
        self.assertEqual((server["project"], server["workload"]), ("serving", "inference"))
        params = {"namespace": "serving", "name": server["name"], "kind": "Deployment"}
        self.until(lambda: sara.view("job", **params)["addresses"], lambda: str(sara.view("job", **params)))
        page = sara.view("job", **params)
        self.assertEqual([port["port"] for port in page["addresses"][0]["ports"]], [5000])
        self.assertEqual(len(page["members"]), 1)
        self.assertTrue(page["logs"][0]["live"], page["logs"])


class Questions(PagesTest):
    def test_job_page(self):
        pages = self.admin()
        self.submit("lives", 2)
        params = {"namespace": "default", "name": "lives", "kind": "PyTorchJob"}
        self.until(lambda: pages.view("workloads")["rows"])
        self.until(lambda: pages.view("job", **params)["sizes"][-1:] and
                   pages.view("job", **params)["sizes"][-1]["members"] == 2)
        job = pages.view("job", **params)
        self.assertEqual([member["pod"] for member in job["members"]], ["lives-worker-0", "lives-worker-1"])
        self.assertEqual(job["members"][0]["attempt"], 1)
        lanes = {(lane["member"], lane["state"]) for lane in job["timeline"]}
        self.assertIn(("lives-worker-1", "running"), lanes)
        self.assertIn((None, "running"), lanes)
        self.assertEqual(job["actions"]["suspend"], True)
        self.assertIn("2 of 2 members", job["sentence"])
        self.assertEqual(pages.json("GET", "/ui/api/views/job?namespace=default&name=nobody")[0], 404)

    def test_why_and_what_would_follow(self):
        pages = self.admin()
        self.submit("large", 9)
        self.until(lambda: "large" in json.dumps(pages.view("workloads")))
        params = {"namespace": "default", "name": "large", "kind": "PyTorchJob"}
        self.until(lambda: pages.view("why", **params)["waits"])
        why = pages.view("why", **params)
        self.assertIn("large waits for 9 GPUs", why["sentence"])
        self.assertTrue(why["lines"])
        self.assertEqual(why["needs"]["gpus"], 9)
        self.assertTrue(any("node" in change for change in why["wouldStartWith"]), why)
        live = pages.live()
        live.send({"op": "subscribe", "id": 1, "view": "why", "params": params})
        self.assertIn("large waits", live.message()["data"]["sentence"])
        more = {"addNodes": [{"like": "node-1", "count": 2}]}
        status, answer = pages.json("POST", "/ui/api/whatif", more)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["after"]["gpus"]["total"], answer["before"]["gpus"]["total"] + 8)
        # Pods of the system are not workloads.
        overview = pages.view("overview")["jobs"]
        self.assertEqual({word: answer["before"]["jobs"][word] for word in ("running", "pending")},
                         {word: overview[word] for word in ("running", "pending")})
        self.assertIn("large", json.dumps([one for one in answer["decisions"] if one["kind"] == "Started"]))
        for wrong in ({"addNodes": [{"like": "nobody"}]}, {"quota": [{"project": "nobody", "gpu": 1}]}):
            self.assertEqual(pages.json("POST", "/ui/api/whatif", wrong)[0], 404, wrong)
        self.assertEqual(pages.json("POST", "/ui/api/whatif", "nonsense")[0], 400)
        self.done(self.cluster.kubectl("delete", "pytorchjob", "large"))

    def test_crons_are_found_and_explained(self):
        pages = self.admin()
        self.done(self.cluster.kubectl("create", "cronjob", "yearly", "--image", "python:3.11",
                                       "--schedule", "0 3 1 1 *", "--", "true"))
        self.done(self.cluster.kubectl("apply", "-f", "-", input=CRON))
        self.until(lambda: len(pages.view("crons")["rows"]) == 2)
        states = {row["name"]: (row["kind"], row["state"], bool(row["next"])) for row in pages.view("crons")["rows"]}
        self.assertEqual(states, {"yearly": ("CronJob", "Active", True), "nightly": ("Cron", "Suspended", False)})
        for kind, name, says in (("CronJob", "yearly", "yearly starts its next job at "),
                                 ("Cron", "nightly", "nightly is suspended, and starts no jobs")):
            why = pages.view("why", namespace="default", name=name, kind=kind)
            self.assertTrue(why["sentence"].startswith(says), why)
            self.assertTrue(why["lines"], why)
            page = pages.view("cron", namespace="default", name=name, kind=kind)
            self.assertEqual((page["summary"]["name"], page["runs"]), (name, []))
        self.done(self.cluster.kubectl("delete", "cronjob/yearly", "cron/nightly"))

    def test_plan(self):
        pages = self.admin()
        container = {"name": "pytorch", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
               "metadata": {"name": "planned", "namespace": "default"},
               "spec": {"pytorchReplicaSpecs": {"Worker": {
                   "replicas": 2, "template": {"spec": {"containers": [container]}}}}}}
        status, plan = pages.json("POST", "/ui/api/plan", job)
        self.assertEqual((status, plan["starts"], plan["displaces"]), (200, True, []))
        self.assertEqual(sum(place["members"] for place in plan["placement"]), 2)
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = "two"
        status, refused = pages.json("POST", "/ui/api/plan", job)
        self.assertEqual(status, 422)
        self.assertIn("replicas", refused["details"]["causes"][0]["field"])
        self.assertEqual(pages.json("POST", "/ui/api/plan", {"kind": "Song"})[0], 406)

    def test_history_survives_a_restart(self):
        pages = self.admin()
        series = "/ui/api/history?series=gpu_total,queue_*&points=100"
        read = lambda: pages.json("GET", series)[1]["series"]  # noqa: E731
        self.until(read)
        total = next(one for one in read() if one["name"] == "gpu_total")
        self.assertEqual((total["labels"], total["v"][-1]), ({"pool": ""}, 8))
        self.assertEqual({one["name"] for one in read()}, {"gpu_total", "queue_length", "queue_gpus",
                                                           "queue_wait_p50_seconds", "queue_wait_p95_seconds"})
        self.cluster.down()
        self.cluster.up()
        again = self.admin()
        _, answer = again.json("GET", series)
        first = next(one for one in answer["series"] if one["name"] == "gpu_total")
        self.assertEqual(first["t"][0], total["t"][0])
        self.assertEqual(again.json("GET", "/ui/api/history")[0], 400)

    def test_timeline_survives_a_restart(self):
        pages = self.admin()
        self.submit("lasts", 1)
        params = {"namespace": "default", "name": "lasts", "kind": "PyTorchJob"}
        self.until(lambda: "lasts" in json.dumps(pages.view("workloads")))

        def runs(of):
            lanes = of.view("job", **params)["timeline"]
            return [lane for lane in lanes if lane["member"] and lane["state"] == "running"]

        self.until(lambda: runs(pages))
        first = runs(pages)[0]
        self.cluster.down()
        self.cluster.up()
        again = self.admin()
        self.until(lambda: "lasts" in json.dumps(again.view("workloads")))
        self.until(lambda: runs(again) and runs(again)[0]["from"] == first["from"],
                   lambda: f"{first} is not in {runs(again)}")

    def test_metrics_tell_what_the_history_hears(self):
        self.submit("waits", 9)
        metrics = lambda: self.cluster.kubectl("get", "--raw", "/metrics").stdout  # noqa: E731
        self.until(lambda: re.search(r"(?m)^swell_queue_jobs [1-9]", metrics()))
        text = metrics()
        self.assertRegex(text, r"(?m)^swell_queue_gpus 9")
        self.assertRegex(text, r"(?m)^swell_queue_wait_p95_seconds ")
        self.done(self.cluster.kubectl("delete", "pytorchjob", "waits"))


class Api(PagesTest):
    def test_errors_name_their_fields(self):
        pages = self.admin()
        status, document = pages.json("POST", "/ui/api/k8s/apis/swell.dev/v1/projects", {
            "apiVersion": "swell.dev/v1", "kind": "Project", "metadata": {"name": "wrong"},
            "spec": {"priority": "high"}})
        self.assertEqual((status, document["kind"]), (422, "Status"))
        self.assertEqual(document["details"]["causes"][0]["field"], "spec.priority")

    def test_headers_of_the_browser_do_not_change_the_user(self):
        pages = self.admin()
        forged = {"Authorization": "Bearer forged", "Impersonate-User": "somebody"}
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status, document = pages.json("POST", "/ui/api/k8s/apis/authentication.k8s.io/v1/selfsubjectreviews", review,
                                      headers=forged)
        self.assertEqual((status, document["status"]["userInfo"]["username"]), (201, "swell-admin"))

    def test_what_pods_serve_is_not_shown(self):
        pages = self.admin()
        for path in ("namespaces/default/pods/x/proxy/", "namespaces/default/services/x/proxy",
                     "nodes/node-1/%70roxy/"):
            self.assertEqual(pages.json("GET", f"/ui/api/k8s/api/v1/{path}")[0], 403, path)

class Logs(PagesTest):
    flags = ("--runtime", "process", "--nodes", "1", "--gpus-per-node", "0")

    def test_log_is_followed_while_it_is_written(self):
        pod = """
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: busybox
    command: [sh, -c, 'i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.2; done']
"""
        self.done(self.cluster.kubectl("apply", "-f", "-", input=pod))
        phase = ("get", "pod", "talker", "-o", "jsonpath={.status.phase}")
        self.until(lambda: self.cluster.kubectl(*phase).stdout == "Running")
        pages = self.admin()
        connection = http.client.HTTPConnection(pages.host, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/ui/api/k8s/api/v1/namespaces/default/pods/talker/log?follow=true",
                           headers={"Cookie": pages.cookie})
        log = connection.getresponse()
        first = log.readline().decode().strip()
        self.assertTrue(first.startswith("line-"), first)
        # Lines come while the pod runs, not at its end.
        for _ in range(5):
            self.assertTrue(log.readline().startswith(b"line-"))
        self.assertEqual(self.cluster.kubectl(*phase).stdout, "Running")
        self.done(self.cluster.kubectl("delete", "pod", "talker"))
        self.assertIsNotNone(log.read())

    def test_log_of_a_pod_that_is_gone_is_found_by_the_jobs_page(self):
        job = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: again, namespace: default}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - {name: pytorch, image: busybox, command: [sh, -c, 'echo begun; exec sleep 1000']}
"""
        self.done(self.cluster.kubectl("apply", "-f", "-", input=job))
        pages = self.admin()
        params = {"namespace": "default", "name": "again", "kind": "PyTorchJob"}

        def logs(live):
            if "again" not in json.dumps(pages.view("workloads")):
                return []
            return [log for log in pages.view("job", **params)["logs"] if log["live"] == live]

        self.until(lambda: logs(live=True))
        first = logs(live=True)[0]
        self.assertEqual((first["member"], first["attempt"], first["start"]), ("again-worker-0", 1, 1))
        # kubectl itself may wait for ever: it does not notice that the next pod of the name is another one.
        self.done(self.cluster.kubectl("delete", "pod", "again-worker-0", "--wait=false"))
        self.until(lambda: [log["attempt"] for log in logs(live=True)] == [2])
        gone = logs(live=False)[0]
        self.assertEqual((gone["uid"], gone["attempt"], gone["running"]), (first["uid"], 1, False))
        path = (f"/ui/api/k8s/api/v1/namespaces/default/pods/{gone['member']}/log/{gone['uid']}"
                f"?node={gone['node']}&container={gone['container']}&restart={gone['start'] - 1}")
        status, _, text = pages.ask("GET", path)
        self.assertEqual((status, text), (200, b"begun\n"))
        self.assertEqual(pages.view("job", **params)["members"][0]["attempt"], 2)
        self.done(self.cluster.kubectl("delete", "pytorchjob", "again"))


if __name__ == "__main__":
    unittest.main()
