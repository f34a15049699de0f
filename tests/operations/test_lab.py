"""The laboratory plays what a cluster's own jobs did, also of jobs that are deleted."""

import json

from support import SWELL, ClusterTest, run

JOBS = (("a", 8), ("b", 4), ("c", 4), ("gone", 2))


class LabFromCluster(ClusterTest):
    flags = ("--nodes", "2", "--gpus-per-node", "4")

    def lab(self, *words):
        return self.cluster.swell("lab", "run", *words)

    def row(self, rows, policy):
        found = [row for row in rows if row["policy"] == policy]
        self.assertEqual(len(found), 1, rows)
        return found[0]

    def succeeded(self):
        jobs = self.cluster.get("pytorchjobs")["items"]
        ended = [job for job in jobs if any(c["type"] == "Succeeded" and c["status"] == "True"
                                            for c in job.get("status", {}).get("conditions", []))]
        return len(ended) == len(JOBS)

    def account_has(self, name):
        days = self.cluster.get("configmaps", "-n", "swell-system", "-l", "swell.dev/usage=day")["items"]
        return any(job["job"].endswith("/" + name) and "lastHeld" in job
                   for day in days for job in json.loads(day["data"]["usage"])["jobs"])

    def test_own_jobs_are_a_trace(self):
        self.refused(self.lab("--from-cluster"), "no job with GPUs was submitted in the last 7d", "--last")
        for name, gpus in JOBS:
            self.done(self.cluster.swell("submit", name, "--image", "python", "--gpus", str(gpus // 2),
                                         "--workers", "2", "--annotation", "swell.dev/run-seconds=3",
                                         "--", "true"))
        self.until(self.succeeded)
        self.until(lambda: self.account_has("gone"))
        self.done(self.cluster.swell("delete", "gone"))
        self.until(lambda: "gone" not in self.cluster.kubectl("get", "pytorchjobs").stdout)

        trace = self.scratch / "week.csv"
        words = ("--policy", "fifo", "--policy", "fair", "--resize-cost", "5", "-o", "json")
        rows = json.loads(self.done(self.lab("--from-cluster", "--last", "1h", "--save-trace", trace, *words)))
        was = self.row(rows, "as it was")
        self.assertEqual(was["jobs"], len(JOBS))
        self.assertGreater(was["averageSeconds"], 2)
        self.assertNotIn("decisionsHash", was)
        lines = trace.read_text().splitlines()
        self.assertEqual(lines[0], "job,tenant,submit_s,gpus,gpus_max,duration_s,gpus_min,priority")
        gpus = {line.split(",")[0].split("/")[1]: int(line.split(",")[3]) for line in lines[1:]}
        self.assertEqual(gpus, dict(JOBS))

        again = json.loads(self.done(run(SWELL, "lab", "run", trace, "--cluster", "2x4", *words)))
        for policy in ("fifo", "fair"):
            self.assertEqual(self.row(again, policy)["decisionsHash"], self.row(rows, policy)["decisionsHash"])
        picture = self.scratch / "week.svg"
        shown = self.done(self.lab("--from-cluster", "--policy", "fifo", "--plot", picture))
        self.assertIn("as it was</text>", picture.read_text())
        name = next(line.split(",")[0] for line in lines if line.split(",")[0].endswith("/gone"))
        life = self.done(self.cluster.swell("lab", "explain", "--from-cluster", "--policy", "fifo", "--job", name))
        self.assertIn("started on 2 GPUs\n    why: in the order of submission", life)
        self.assertRegex(shown, r"4 jobs of the cluster on 2x4 GPUs, \d+ s a start or resize \(the median of these")
        self.refused(self.lab("--from-cluster", "--quota", "nobody=4"), "no job belongs to \"nobody\"")

    def test_misuse_names_the_flag(self):
        for words, says in ((("--from-cluster", "x.csv"), "exclude each other"),
                            (("x.csv", "--last", "7d"), "--last needs --from-cluster"),
                            (("x.csv", "--save-trace", "y"), "--save-trace needs --from-cluster"),
                            (("--from-cluster", "--last", "soon"), "--last"),
                            (("x.csv", "--round", "0"), "--round 0: expected 1 to 86400"),
                            ((), "expected TRACE... or --from-cluster")):
            self.refused(self.lab(*words), says)

    def test_without_a_cluster_it_says_so(self):
        done = self.cluster.swell("lab", "run", "--from-cluster", kubeconfig=str(self.scratch / "none"))
        self.refused(done, "no cluster found")
