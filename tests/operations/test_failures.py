"""What fails is said in one sentence everywhere, and what it wrote stays readable, with real processes."""

import json
import subprocess
import textwrap

from support import SWELL, ClusterTest, os


def training_job(name, command, *, replicas=1, restart="Never", gpus=0, memory="", priority="", more=""):
    """A TrainingJob whose workers run the shell's command."""
    amounts = [f"nvidia.com/gpu: {gpus}"] * bool(gpus) + [f"memory: {memory}"] * bool(memory)
    limits = f"resources: {{limits: {{{', '.join(amounts)}}}}}" if amounts else ""
    return textwrap.dedent(f"""
        apiVersion: swell.dev/v1
        kind: TrainingJob
        metadata: {{name: {name}}}
        spec:
          {f'priorityClassName: {priority}' if priority else ''}
          roles:
            worker:
              replicas: {replicas}
              restartPolicy: {restart}
              template:
                spec:
                  {more}
                  containers:
                  - {{name: main, image: busybox, command: [sh, -c, {json.dumps(command)}], {limits}}}
        """)


class Failures(ClusterTest):
    flags = ("--nodes", "1", "--gpus-per-node", "2", "--runtime", "process")

    def apply(self, text):
        self.done(self.cluster.swell("apply", "-f", "-", input=text))

    def test_waiting_ends_where_no_image_can_be_pulled(self):
        for flag in ("--wait", "--logs"):
            done = self.cluster.swell("submit", "odd", "--force", "--image", "NO/such image", flag, "--", "true")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("InvalidImageName", done.stdout + done.stderr)
            self.assertIn("can never start", done.stdout + done.stderr)
        self.done(self.cluster.swell("delete", "odd"))

    def test_following_the_log_ends_with_the_result_of_the_job(self):
        fails = ("sh", "-c", "echo said; exit 3")
        done = self.cluster.swell("submit", "ends", "--image", "python", "--logs", "--", *fails)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (3, "said"), done.stderr)
        self.assertIn("exited with 3", done.stderr)
        done = self.cluster.swell("submit", "ends", "--force", "--image", "python", "--logs", "--", "echo", "said")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "said"), done.stderr)
        self.done(self.cluster.swell("delete", "ends"))

    def test_a_priority_class_that_does_not_exist_is_refused(self):
        for name in ("unclassed", "classed"):
            if name == "classed":
                self.apply(training_job(name, "sleep 600"))
            done = self.cluster.swell("apply", "-f", "-", input=training_job(name, "sleep 600", priority="gold"))
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn('spec.priorityClassName: Invalid value: "gold": no PriorityClass with name gold was found',
                          done.stderr)
        self.done(self.cluster.swell("delete", "classed"))

    def said(self, *words):
        done = self.cluster.swell(*words)
        return done.stdout + done.stderr

    def status(self, name):
        return self.cluster.get("trainingjob", name)["status"]

    def row(self, name):
        lines = self.done(self.cluster.swell("list")).splitlines()
        return next((line for line in lines if line.startswith(name + " ")), "")

    def waits_for(self, name, word):
        self.until(lambda: word in self.row(name), lambda: self.row(name))

    def test_a_command_that_is_not_there(self):
        self.apply(training_job("typo", "trian.py", replicas=2))
        self.waits_for("typo", "Failed: exit 127")
        sentence = 'container main exited with 127; its last line: "sh: 1: trian.py: not found"; check the command'
        for words in (("why", "typo"), ("describe", "typo"), ("events",), ("list", "-o", "wide")):
            self.assertIn(sentence, " ".join(self.said(*words).split()), words)
        self.assertIn(sentence, self.status("typo")["failure"]["message"])
        self.assertEqual(self.status("typo")["failure"]["class"], "UserError")

    def test_a_container_that_fails_again_and_again(self):
        self.apply(training_job("loop", "echo working; echo broken >&2; exit 3", restart="OnFailure"))
        self.waits_for("loop", "CrashLoopBackOff")
        self.assertIn("loop keeps failing: CrashLoopBackOff", self.said("why", "loop"))
        self.assertIn('container main exited with 3; its last line: "broken"', self.said("why", "loop"))
        self.assertIn("broken", self.said("logs", "loop"))
        self.until(lambda: "==> loop-worker-0, attempt 1, start 2 <==" in self.said("logs", "loop"))

    def test_an_init_container_that_fails(self):
        init = ("initContainers: [{name: fetch, image: busybox, "
                "command: [sh, -c, 'echo no data >&2; exit 4']}]")
        self.apply(training_job("fetches", "sleep 60", restart="OnFailure", more=init))
        self.waits_for("fetches", "CrashLoopBackOff")
        self.assertIn('init container fetch exited with 4; its last line: "no data"', self.said("why", "fetches"))
        self.assertIn("no data", self.said("logs", "fetches"))

    def test_a_sidecar_that_fails_takes_nothing_back(self):
        sidecar = ("initContainers: [{name: sync, image: busybox, restartPolicy: Always, "
                   "command: [sh, -c, 'exit 7']}]")
        self.apply(training_job("beside", "sleep 60", more=sidecar))
        self.waits_for("beside", "CrashLoopBackOff")
        pod = self.cluster.get("pod", "beside-worker-0")
        if any("running" in one["state"] for one in pod["status"]["containerStatuses"]):
            self.assertEqual(pod["status"]["phase"], "Running")

    def test_logs_outlive_preemption_and_go_with_the_job(self):
        self.apply("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: first}, "
                   "value: 1000}")
        victim = ("trap 'echo saved; exit 143' TERM; echo begun $HOSTNAME; "
                  "if [ -e $SWELL_CHECKPOINT_DIR/again ]; then echo finished; exit 0; fi; "
                  "touch $SWELL_CHECKPOINT_DIR/again; while true; do sleep 0.1; done")
        self.apply(training_job("victim", victim, gpus=2))
        self.until(lambda: "begun" in self.said("logs", "victim"))
        env = dict(os.environ, KUBECONFIG=self.cluster.kubeconfig)
        follower = subprocess.Popen([SWELL, "logs", "victim", "-f"], env=env, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)
        self.assertIn("begun", follower.stdout.readline())
        self.apply(training_job("urgent", "sleep 1", gpus=2, priority="first"))
        rest, _ = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0)
        shells = ("begun", "Terminated")  # what shells say of the end of a child is theirs
        self.assertEqual([line for line in rest.splitlines() if not line.startswith(shells)],
                         ["saved", "==> victim-worker-0, attempt 2 <==", "finished"])
        whole = self.done(self.cluster.swell("logs", "victim"))
        self.assertTrue(whole.startswith("==> victim-worker-0, attempt 1, preempted <==\n"), whole)
        first = self.done(self.cluster.swell("logs", "victim", "--attempt", "1"))
        self.assertIn("saved", first.splitlines())
        self.assertEqual(self.done(self.cluster.swell("logs", "victim", "--previous")), first)
        self.refused(self.cluster.swell("logs", "victim", "--attempt", "9"), "the last one is 2")
        self.assertEqual([one["result"] for one in self.status("victim")["attempts"]], ["Preempted"])
        uid = self.cluster.get("trainingjob", "victim")["metadata"]["uid"]
        kept = self.cluster.directory / "kept-logs" / uid
        self.assertTrue(kept.is_dir())
        self.done(self.cluster.swell("delete", "trainingjob", "victim"))
        self.until(lambda: self.cluster.swell("get", "pod", "victim-worker-0").returncode != 0)
        self.until(lambda: not kept.exists())
        # Its successor knows nothing of it.
        self.apply(training_job("victim", "true"))
        self.waits_for("victim", "Succeeded")
        self.assertNotIn("Preempted", self.said("describe", "victim"))

    def test_a_pod_that_was_deleted(self):
        self.apply(training_job("deleted", "echo begun; sleep 60"))
        self.until(lambda: "begun" in self.said("logs", "deleted"))
        self.done(self.cluster.swell("delete", "pod", "deleted-worker-0", "--grace-period", "1"))
        self.until(lambda: "==> deleted-worker-0, attempt 2 <==" in self.said("logs", "deleted"),
                   lambda: self.said("logs", "deleted"))
        self.assertIn("attempt 1, stopped <==", self.said("logs", "deleted"))

    def test_an_error_that_every_start_repeats_ends_the_job(self):
        self.apply(training_job("hopeless", "trian.py", restart="OnFailure"))
        self.waits_for("hopeless", "Failed")
        failed = next(one for one in self.status("hopeless")["conditions"] if one["type"] == "Failed")
        self.assertEqual(failed["reason"], "UserError")
        self.assertIn("starting it again cannot help", failed["message"])
        self.assertIn("trian.py: not found", failed["message"])

    def test_a_member_that_was_killed_for_lack_of_memory_gets_more(self):
        use = "exec python3 -c 'print(len(bytearray(110 << 20)))'"
        self.apply(training_job("hungry", use, restart="ExitCode", memory="64Mi"))
        self.waits_for("hungry", "Succeeded")
        job = self.cluster.get("trainingjob", "hungry")
        self.assertEqual(job["metadata"]["annotations"]["swell.dev/memory-raised"], "worker/main=144Mi")
        self.assertNotIn("restarts", job["status"])
        told = "killed at its limit of 96Mi of memory. New pods of role worker get 144Mi"
        self.assertIn(told, self.said("events", "hungry"))
        self.assertIn(told, " ".join(self.said("describe", "hungry").split()))

    def test_a_job_that_keeps_failing_preempts_nobody_for_a_while(self):
        self.apply("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: loud}, "
                   "value: 90}")
        self.apply(training_job("looper", "sleep 1; exit 139", restart="ExitCode", gpus=2, priority="loud"))
        self.apply(training_job("quiet", "trap 'exit 143' TERM; while true; do sleep 0.1; done", gpus=2))
        self.until(lambda: "it preempts nobody until" in self.said("why", "looper"),
                   lambda: self.said("why", "looper"))
        why = json.loads(self.said("why", "looper", "-o", "json"))
        self.assertIn("Running", self.row("quiet"))
        # Its time comes: the job of lower priority gives way.
        self.until(lambda: any(one["type"] == "Preempted" and one["lastTransitionTime"] >= why["preemptsFrom"]
                               for one in self.status("quiet")["conditions"]),
                   lambda: self.said("why", "looper"))

        def used():
            report = json.loads(self.done(self.cluster.swell("report", "--by", "job", "-o", "json")))
            return {row["job"]: row for row in report["rows"]}

        self.until(lambda: "default/looper" in used() and "default/quiet" in used(), used)
        row = used()["default/quiet"]
        self.assertGreater(row["gpuHoursByUse"]["training"], 0)
        self.assertAlmostEqual(sum(row["gpuHoursByUse"].values()), row["gpuHours"], delta=0.001)
        for name in ("looper", "quiet"):
            self.done(self.cluster.swell("delete", "trainingjob", name))

    def test_an_elastic_job_from_flags_starts_with_what_there_is(self):
        self.done(self.cluster.swell("submit", "bends", "--image", "busybox", "--min", "1", "--max", "3", "--gpus", "1",
                                     "--", "sleep", "60"))
        self.until(lambda: "2/3 (1-3)" in self.row("bends"), lambda: self.row("bends"))
        self.done(self.cluster.swell("delete", "bends"))

    def test_a_job_whose_gpus_are_idle_is_suspended(self):
        def with_timeout(name, timeout):
            return training_job(name, "sleep 600", gpus=1).replace(
                f"{{name: {name}}}", f"{{name: {name}, annotations: {{swell.dev/idle-timeout: {timeout}}}}}", 1)

        self.refused(self.cluster.swell("apply", "-f", "-", input=with_timeout("desk", "soon")),
                     "must be a duration such as 30m or 2h")
        self.apply(with_timeout("desk", "20s"))
        self.waits_for("desk", "Suspended")
        self.until(lambda: "Start it again with: swell resume desk" in " ".join(self.said("events").split()))
        self.done(self.cluster.swell("delete", "trainingjob", "desk"))
