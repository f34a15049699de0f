"""KubeDL's Crons, by arena and kubectl."""

import json

from support import BIN, ClusterTest, run

CRONS = "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons"


class Crons(ClusterTest):
    flags = ("--nodes", "1", "--gpus-per-node", "2")

    def arena(self, *words):
        return self.done(run(BIN / "arena", *words, "--config", self.cluster.kubeconfig))

    def jobs(self):
        return self.cluster.get("tfjobs.kubeflow.org")["items"]

    def miss_a_run(self, name):
        """The last run was long ago, so the next starts at once."""
        cron = self.cluster.get("crons", name)
        cron["status"] = {"lastScheduleTime": "2020-01-01T00:00:00Z"}
        self.done(self.cluster.kubectl("replace", "--raw", f"{CRONS}/{name}/status", "-f", "-", input=json.dumps(cron)))

    def test_a_cron_of_arena_starts_jobs(self):
        out = self.arena("cron", "tfjob", "--schedule=@yearly", "--suspend", "--history-limit=3", "--name=yearly",
                         "--gpus=1", "--image=x", "sleep 600")
        self.assertIn("cron.apps.kubedl.io/yearly created", out)
        row = self.arena("cron", "list").split("\n")[1]
        self.assertEqual(row.split(), ["yearly", "TFJob", "@yearly", "true", "Allow"])
        self.miss_a_run("yearly")
        self.assertEqual(self.jobs(), [])

        self.assertEqual(self.arena("cron", "resume", "yearly"), "cron yearly resume success\n")
        self.until(lambda: len(self.jobs()) == 1, lambda: self.arena("cron", "get", "yearly"))
        job = self.jobs()[0]
        name = job["metadata"]["name"]
        self.assertRegex(name, r"^yearly-\d{10}$")
        self.assertEqual(job["metadata"]["labels"]["kubedl.io/cron-name"], "yearly")
        self.assertEqual(job["metadata"]["ownerReferences"][0]["kind"], "Cron")
        self.until(lambda: "RUNNING" in self.arena("list"), lambda: self.arena("list"))
        self.until(lambda: f"{name}  Running" in self.arena("cron", "get", "yearly"),
                   lambda: self.arena("cron", "get", "yearly"))
        self.assertIn(name, self.done(self.cluster.swell("list")))
        self.assertIn(f"Created workload: {name}", self.done(self.cluster.kubectl("describe", "cron", "yearly")))
        columns = self.done(self.cluster.kubectl("get", "crons")).split("\n")
        self.assertEqual(columns[0].split(), ["NAME", "TYPE", "SCHEDULE", "SUSPEND", "LAST-SCHEDULE", "AGE"])
        self.assertEqual(columns[1].split()[:4], ["yearly", "TFJob", "@yearly", "false"])

        self.assertEqual(self.arena("cron", "suspend", "yearly"), "cron yearly suspend success\n")
        self.assertEqual(self.arena("cron", "delete", "yearly"),
                         'cron yearly has deleted\nconfigmap "yearly-tfjob" deleted\n')
        self.until(lambda: self.jobs() == [], lambda: str(self.jobs()))

    def test_a_cron_that_could_start_nothing_is_refused_by_field(self):
        cron = {"apiVersion": "apps.kubedl.io/v1alpha1", "kind": "Cron", "metadata": {"name": "wrong"},
                "spec": {"schedule": "0 0 22 * * ?", "historyLimit": -1,
                         "template": {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "workload": {"spec": {}}}}}

        def refused(field):
            self.refused(self.cluster.kubectl("create", "-f", "-", input=json.dumps(cron)), field)

        refused("spec.historyLimit")
        cron["spec"]["historyLimit"] = 1
        refused("spec.schedule")
        cron["spec"]["schedule"] = "0 22 * * *"
        refused("spec.template.workload.spec.tfReplicaSpecs")
        cron["spec"]["template"]["kind"] = "MarsJob"
        refused("spec.template.kind")
