"""Slurm's commands within a job: scripts that requeue, cancel and follow themselves, as a user of a project."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
SWELL = str(BIN / "swell")
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402

# Root has a right to the machine's root that users lack.
UID = os.getuid() or 1000
AS_USER = {"user": UID, "group": UID, "extra_groups": []} if os.getuid() == 0 else {}


class InJob(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-slurm-"))
        cls.scratch.chmod(0o755)
        cls.home = cls.scratch / "home"
        cls.work = cls.home / "work"
        cls.work.mkdir(parents=True)
        if os.getuid() == 0:
            for path in (cls.home, cls.work):
                os.chown(path, UID, UID)
        cls.admin("up", "--detach", "--data-dir", cls.scratch / "cluster", "--nodes", "2", "--gpus-per-node", "2")
        cls.admin("slurm", "links", cls.scratch / "bin")
        for user, project in (("ada", "vision"), ("bob", "nlp")):
            cls.admin("project", "create", project, "--gpu-quota", "2", "--allow-host-path", cls.home)
            cls.create_user(user, project)
            if not until(lambda ns=project: "slurm-job" in cls.admin("get", "serviceaccounts", "-n", ns)):
                raise RuntimeError(f"{project} has no account for jobs")

    @classmethod
    def tearDownClass(cls):
        subprocess.run([SWELL, "down", "--data-dir", str(cls.scratch / "cluster")], capture_output=True,
                       timeout=LIMIT_S, check=False)
        shutil.rmtree(cls.scratch, ignore_errors=True)

    @classmethod
    def admin(cls, *words):
        environment = dict(os.environ, KUBECONFIG=str(cls.scratch / "cluster" / "kubeconfig"))
        if words[0] == "up":
            environment.pop("KUBECONFIG")
        done = subprocess.run([SWELL, *map(str, words)], env=environment, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    @classmethod
    def create_user(cls, user, project):
        cls.admin("user", "create", user, "--data-dir", cls.scratch / "cluster", "--role", "researcher", "--project",
                  project, "--run-as", f"{UID}:{UID}", "-o", cls.scratch / user)
        (cls.scratch / user).chmod(0o644)

    def done(self, *words, user="ada"):
        environment = {"KUBECONFIG": str(self.scratch / user), "HOME": str(self.home), "USER": user,
                       "PWD": str(self.work), "PATH": os.environ["PATH"]}
        process = subprocess.run([str(self.scratch / "bin" / words[0]), *map(str, words[1:])], env=environment,
                                 cwd=self.work, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                                 stdin=subprocess.DEVNULL, **AS_USER)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout

    def submit(self, name, *lines, flags=(), user="ada"):
        """The number of the job of a script with these lines; its output is in NAME.out unless it says where."""
        (self.work / (name + ".sh")).write_text("#!/bin/bash\n" + "\n".join(lines) + "\n")
        return self.done("sbatch", "--parsable", "-o", name + ".out", *flags, name + ".sh", user=user).strip()

    def field(self, job, name):
        return self.done("sacct", "-n", "-P", "-j", job, "-o", name).split("\n")[0]

    def ends(self, job, state):
        until(lambda: self.field(job, "State") not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
        self.assertEqual(self.field(job, "State"), state, self.done("scontrol", "show", "job", job))

    def lines(self, name):
        """What the script said, without what was said of it.

        The shell says that its command was terminated if the signal found it still at work, such as scancel itself.
        """
        text = (self.work / (name + ".out")).read_text()
        return [line for line in text.splitlines() if not line.startswith("slurmstepd") and line != "Terminated"]

    def test_a_script_requeues_itself_before_its_limit(self):
        job = self.submit("limit", "#SBATCH --time=0:50 --signal=B:USR1@45",
                          "again() { echo saved; scontrol requeue $SLURM_JOB_ID; echo asked $?; exit 0; }",
                          "trap again USR1",
                          "echo run ${SLURM_RESTART_COUNT:-0}",
                          '[ -z "$SLURM_RESTART_COUNT" ] || exit 0',
                          "sleep 600 & wait")
        self.ends(job, "COMPLETED")
        self.assertEqual(self.lines("limit")[:2], ["run 0", "saved"])
        self.assertEqual(self.lines("limit")[-1], "run 1")
        self.assertEqual(self.field(job, "User"), "ada")

    def test_a_task_on_another_node_requeues_the_job_from_python(self):
        job = self.submit("python", "#SBATCH -N2", "echo run ${SLURM_RESTART_COUNT:-0}",
                          '[ -z "$SLURM_RESTART_COUNT" ] || exit 0',
                          "srun -w $(scontrol show hostnames | tail -n1) -N1 -n1 python3 -c '",
                          "import os, subprocess",
                          'subprocess.check_call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])',
                          "os._exit(1)'")
        self.ends(job, "COMPLETED")
        self.assertEqual([line for line in self.lines("python") if line.startswith("run")], ["run 0", "run 1"])

    def test_without_an_agents_reports_the_pods_last_words_are_the_request(self):
        """As on a node of a kubelet: of the second node, then of the first."""
        job = self.submit("words", "#SBATCH -N2", "echo run ${SLURM_RESTART_COUNT:-0}",
                          "export -n SWELL_REPORT_FILE",
                          "case ${SLURM_RESTART_COUNT:-0} in",
                          "  0) srun -w $(scontrol show hostnames | tail -n1) -N1 -n1 env -u SWELL_REPORT_FILE "
                          "scontrol requeue; sleep 600 ;;",
                          "  1) scontrol requeue; sleep 600 ;;",
                          "esac")
        self.ends(job, "COMPLETED")
        self.assertEqual([line for line in self.lines("words") if line.startswith("run")], ["run 0", "run 1", "run 2"])

    def test_a_task_of_an_array_requeues_itself_alone(self):
        array = self.submit("part", 'echo run ${SLURM_RESTART_COUNT:-0} >>part-$SLURM_ARRAY_TASK_ID',
                            '[ "$SLURM_ARRAY_TASK_ID" = 1 ] || [ -n "$SLURM_RESTART_COUNT" ] || {',
                            "  scontrol requeue $SLURM_JOB_ID; sleep 600; }", flags=("--array=0-1",))
        self.ends(array + "_0", "COMPLETED")
        self.ends(array + "_1", "COMPLETED")
        self.assertEqual((self.work / "part-0").read_text(), "run 0\nrun 1\n")
        self.assertEqual((self.work / "part-1").read_text(), "run 0\n")

    def test_a_job_that_may_not_be_requeued_says_so(self):
        job = self.submit("once", "scontrol requeue", "echo code $?", flags=("--no-requeue",))
        self.ends(job, "COMPLETED")
        self.assertEqual(self.lines("once"), ["scontrol: Requested operation is presently disabled: job "
                                              f"{job} was submitted with --no-requeue", "code 1"])

    def test_a_script_cancels_itself(self):
        job = self.submit("cancel", "trap 'echo stopped; exit 0' TERM", "echo runs", "scancel $SLURM_JOB_ID",
                          "sleep 600 & wait")
        self.ends(job, "CANCELLED by ada")
        self.assertTrue(until(lambda: self.lines("cancel") == ["runs", "stopped"]), self.lines("cancel"))

    def test_a_task_cancels_its_job_whose_tasks_save_themselves_on_all_nodes(self):
        (self.work / "saves").write_text(
            "#!/bin/bash\ntrap 'echo term $SLURM_PROCID; sleep 1; echo saved $SLURM_PROCID; exit 0' TERM\n"
            "touch ready-$SLURM_PROCID\nuntil [ -e ready-0 ] && [ -e ready-1 ]; do sleep 0.1; done\n"
            "[ $SLURM_PROCID = 0 ] || scancel $SLURM_JOB_ID &\nwhile :; do sleep 0.1; done\n")
        (self.work / "saves").chmod(0o755)
        job = self.submit("two", "#SBATCH -N2", "srun ./saves")
        self.ends(job, "CANCELLED by ada")
        said = until(lambda: sorted(line for line in self.lines("two") if line.startswith(("term", "saved")))
                     == ["saved 0", "saved 1", "term 0", "term 1"])
        self.assertTrue(said, self.lines("two"))

    def test_a_script_signals_its_tasks(self):
        job = self.submit("signal", "srun bash -c 'trap \"echo heard; exit 0\" USR1; touch ready; sleep 600 & wait' &",
                          "until [ -e ready ]; do sleep 0.1; done", "scancel -s USR1 $SLURM_JOB_ID", "wait")
        self.ends(job, "COMPLETED")
        self.assertEqual(self.lines("signal"), ["heard"])

    def test_a_script_asks_for_itself_and_submits_the_next(self):
        (self.work / "next.sh").write_text("#!/bin/bash\n#SBATCH -o next.out\necho next of $1 as $(id -u) in $PWD\n"
                                           "echo gpus ${CUDA_VISIBLE_DEVICES-none}\n")
        job = self.submit("first", "#SBATCH --time=30:00 --gpus=1",
                          "squeue -h -j $SLURM_JOB_ID -o '%t %u %j'",
                          "squeue -h --me -o %i",
                          "squeue -h -j $SLURM_JOB_ID -o %L",
                          "scontrol show job $SLURM_JOB_ID | grep -o 'JobState=[A-Z]*'",
                          "sacct -n -P -j $SLURM_JOB_ID -o State",
                          "sinfo -h -o %D",
                          "sbatch --parsable --dependency=afterok:$SLURM_JOB_ID next.sh $SLURM_JOB_ID >next.id")
        self.ends(job, "COMPLETED")
        lines = self.lines("first")
        self.assertEqual([lines[0], lines[3], lines[4]], ["R ada first.sh", "JobState=RUNNING", "RUNNING"], lines)
        self.assertIn(job, lines[1:-4])
        self.assertRegex("\n".join(lines), r"(?m)^29:\d\d$")
        then = (self.work / "next.id").read_text().strip()
        self.ends(then, "COMPLETED")
        self.assertEqual(self.field(then, "User"), "ada")
        self.assertEqual(self.lines("next"), [f"next of {job} as {UID} in {self.work}", "gpus none"])

    def test_a_job_of_two_nodes_submits_the_next_and_cancels_it(self):
        job = self.submit("wide", "#SBATCH -N2", "srun true && next=$(sbatch --parsable --hold --wrap true)",
                          "scancel $next && sacct -n -P -j $next -o State")
        self.ends(job, "COMPLETED")
        self.assertEqual(self.lines("wide"), ["CANCELLED by ada"])

    def test_other_projects_are_out_of_reach(self):
        of_bob = self.submit("bobs", "sleep 600", user="bob")
        until(lambda: self.done("squeue", "-h", "-j", of_bob, "-o", "%t", user="bob").strip() == "R")
        job = self.submit("reach", f"squeue -h -j {of_bob}; scancel {of_bob}; scontrol requeue {of_bob}",
                          "export KUBECONFIG=/dev/null",
                          '"$SWELL_SLURM_PROGRAM" list -n nlp; "$SWELL_SLURM_PROGRAM" get secrets',
                          '"$SWELL_SLURM_PROGRAM" get configmaps -n nlp; echo end')
        self.ends(job, "COMPLETED")
        lines = self.lines("reach")
        self.assertEqual(lines[-1], "end")
        self.assertFalse([line for line in lines if "bobs" in line], lines)
        self.assertGreaterEqual(sum("forbidden" in line or "Invalid job id" in line for line in lines), 4, lines)
        self.assertEqual(self.done("squeue", "-h", "-j", of_bob, "-o", "%t", user="bob").strip(), "R")
        self.done("scancel", of_bob, user="bob")

    def test_an_administrators_account_serves_where_the_cluster_makes_none(self):
        manifest = (ROOT / "examples" / "slurm" / "account.yaml").read_text()
        namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: hand}\n---\n"
        (self.scratch / "account.yaml").write_text(namespace + manifest.replace("vision", "hand"))
        self.admin("apply", "-f", self.scratch / "account.yaml")
        shutil.copy(self.scratch / "cluster" / "kubeconfig", self.scratch / "root")
        (self.scratch / "root").chmod(0o644)
        self.submit("hand", "sbatch --parsable --hold -J then --wrap true >then.id", "squeue -h -n then -o %j",
                    "sacct -n -P -j $SLURM_JOB_ID -o State", "sinfo -h -o %D",
                    flags=("--namespace", "hand"), user="root")
        self.assertTrue(until(lambda: (self.work / "hand.out").exists() and len(self.lines("hand")) > 2))
        self.assertEqual(self.lines("hand")[:2], ["then", "RUNNING"])
        self.assertNotEqual((self.work / "then.id").read_text(), "")

    def test_a_job_of_a_deleted_user_has_no_rights_left(self):
        self.create_user("eve", "vision")
        job = self.submit("gone", "squeue -h -j $SLURM_JOB_ID -o %u", "touch seen",
                          "until [ -e deleted ]; do sleep 0.1; done", "sbatch --wrap true; echo code $?", user="eve")
        self.assertTrue(until((self.work / "seen").exists))
        self.admin("user", "delete", "eve", "--data-dir", self.scratch / "cluster")
        (self.work / "deleted").touch()
        self.ends(job, "COMPLETED")
        lines = self.lines("gone")
        self.assertEqual([lines[0], lines[-1]], ["eve", "code 1"], lines)


if __name__ == "__main__":
    unittest.main()
