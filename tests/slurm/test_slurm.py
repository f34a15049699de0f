"""A day with Slurm's commands on a cluster of this machine: scripts, files, arrays, dependencies, signals."""

import os
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SWELL_BIN", ROOT / "build" / "dev" / "bin"))
SWELL = str(BIN / "swell")
sys.path.insert(0, str(ROOT / "tests"))

from waiting import LIMIT_S, until  # noqa: E402


def read_terminal(leader):
    """What was written to the terminal; nothing once nobody has it open."""
    try:
        return os.read(leader, 4096)
    except OSError:
        return b""


class Day(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-slurm-"))
        cls.home = cls.scratch / "home"
        cls.work = cls.home / "work"
        cls.work.mkdir(parents=True)
        done = subprocess.run([SWELL, "up", "--detach", "--data-dir", str(cls.scratch / "cluster"), "--nodes", "2",
                               "--gpus-per-node", "2"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        done = subprocess.run([SWELL, "slurm", "links", str(cls.scratch / "bin")], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        subprocess.run([SWELL, "down", "--data-dir", str(cls.scratch / "cluster")], capture_output=True,
                       timeout=LIMIT_S, check=False)
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def environment(self):
        return dict(os.environ, KUBECONFIG=str(self.scratch / "cluster" / "kubeconfig"), HOME=str(self.home),
                    USER="ada", PWD=str(self.work))

    def run_(self, *words, text=None):
        given = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        return subprocess.run([str(self.scratch / "bin" / words[0]), *map(str, words[1:])], env=self.environment(),
                              cwd=self.work, capture_output=True, text=True, timeout=LIMIT_S, check=False, **given)

    def done(self, *words):
        process = self.run_(*words)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout

    def script(self, name, text):
        (self.work / name).write_text(text)
        return name

    def submit(self, *words):
        return self.done("sbatch", "--parsable", *words).strip()

    def state(self, job):
        return self.done("sacct", "-n", "-P", "-j", job, "-o", "State").split("\n")[0]

    def ends(self, job, state):
        until(lambda: self.state(job) not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
        self.assertEqual(self.state(job).split(" by ")[0], state, self.done("scontrol", "show", "job"))

    def output(self, name):
        return (self.work / name).read_text()

    def test_a_script_runs_where_it_was_submitted(self):
        script = self.script("train.sh", "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --ntasks=2 --gpus=2\n"
                             "#SBATCH --gpus-per-task=1\n"
                             'echo "job $SLURM_JOB_ID $SLURM_JOB_NAME of $(basename "$PWD") with $1"\n'
                             "srun -l sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS gpu $CUDA_VISIBLE_DEVICES'\n"
                             "srun sh -c 'nvidia-smi -L >smi-$SLURM_PROCID'\n")
        job = self.submit(script, "--epochs")
        self.ends(job, "COMPLETED")
        lines = sorted(self.output(f"slurm-{job}.out").splitlines())
        self.assertEqual(lines[2], f"job {job} train of work with --epochs")
        self.assertTrue(lines[0].startswith("0: rank 0 of 2 gpu "), lines)
        self.assertTrue(lines[1].startswith("1: rank 1 of 2 gpu "), lines)
        self.assertNotEqual(lines[0].split()[-1], lines[1].split()[-1])
        seen = [self.output(f"smi-{task}").splitlines() for task in (0, 1)]
        self.assertEqual([len(gpus) for gpus in seen], [1, 1], seen)
        self.assertNotEqual(seen[0], seen[1])

    def test_tasks_run_on_all_nodes_of_a_job(self):
        script = self.script("two.sh", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2 --gpus-per-node=2 -o two.out\n"
                             "export GREETING='hello there'\n"
                             "scontrol show hostnames >two.names\n"
                             "master=$(head -n1 two.names)\n"
                             "srun sh -c 'echo $GREETING $SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID $(hostname)'\n"
                             "srun -w \"$master\" -N1 -n1 hostname\n"
                             "srun -n4 sh -c 'exit $SLURM_PROCID'\n"
                             "echo code $?\n")
        job = self.submit(script)
        self.ends(job, "COMPLETED")
        noise = ("srun: error", "command terminated with")
        lines = [line for line in self.output("two.out").splitlines() if not line.startswith(noise)]
        tasks = sorted(line for line in lines if line.startswith("hello"))
        self.assertEqual([line.split()[2:5] for line in tasks],
                         [["0", "0", "0"], ["1", "0", "1"], ["2", "1", "0"], ["3", "1", "1"]], lines)
        self.assertEqual(len({line.split()[5] for line in tasks}), 2, lines)
        self.assertEqual(f"two-sh-{job}-launcher", lines[-2])
        self.assertEqual(self.output("two.names").split(), [f"two-sh-{job}-launcher", f"two-sh-{job}-worker-0"])
        self.assertEqual(lines[-1], "code 3")

    def test_tasks_know_their_step(self):
        """What JAX and TensorFlow read, and what srun is told of variables."""
        script = self.script("step.sh", "#!/bin/bash\n#SBATCH -N2 -t 10 --gpus-per-node=1 -o step.out\n"
                             "srun -n3 -c2 --export=ALL,GREETING='hello there',EMPTY= sh -c '"
                             "echo $SLURM_PROCID $SLURM_STEP_NODELIST $SLURM_STEP_TASKS_PER_NODE"
                             " $SLURM_CPUS_PER_TASK $GREETING ${EMPTY-unset}."
                             " $((SLURM_JOB_END_TIME - SLURM_JOB_START_TIME))'\n"
                             "last=$(scontrol show hostnames | tail -n1)\n"
                             "srun -w $last -N1 -n2 sh -c 'echo only $SLURM_STEP_NODELIST $SLURM_TASKS_PER_NODE'\n"
                             "echo gpus $SLURM_JOB_GPUS greeting ${GREETING-unset} of $SLURM_JOB_NODELIST\n"
                             "srun --export=2A=b true || echo refused\n")
        job = self.submit(script)
        self.ends(job, "COMPLETED")
        lines = [line for line in self.output("step.out").splitlines() if not line.startswith("srun: ")]
        nodes = lines[-2].split()[-1]
        self.assertEqual(sorted(lines[:3]), [f"{task} {nodes} 2,1 2 hello there . 600" for task in (0, 1, 2)])
        self.assertEqual(lines[3:5], [f"only {nodes.split(',')[1]} 2"] * 2)
        self.assertRegex(lines[5], r"^gpus \d greeting unset of ")
        self.assertEqual(lines[6], "refused")

    def test_srun_prints_and_exits_as_its_command(self):
        done = self.run_("srun", "-n2", "sh", "-c", "echo task $SLURM_PROCID; exit 7")
        self.assertEqual(sorted(line for line in done.stdout.splitlines() if line.startswith("task")),
                         ["task 0", "task 1"], done.stderr)
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_an_array_runs_some_at_once_and_a_dependent_after_it(self):
        script = self.script("part.sh", '#!/bin/sh\n#SBATCH -o part-%A-%a.out\necho part "$SLURM_ARRAY_TASK_ID"\n')
        array = self.submit("--array=0-3%2", script)
        then = self.submit("-d", f"afterok:{array}", "--wrap", "cat part-*.out")
        # It may have its node already, or be over, by the time that somebody looks.
        self.assertRegex(self.done("squeue", "-h", "-j", then, "-o", "%t %R").strip(),
                         r"^(PD \((Dependency|Priority)\)|(CF|R) .*|)$")
        self.ends(then, "COMPLETED")
        parts = self.output(f"slurm-{then}.out").splitlines()
        self.assertEqual(sorted(parts), [f"part {i}" for i in range(4)])

    def test_a_dependency_that_failed_keeps_its_dependent_waiting(self):
        first = self.submit("--wrap", "exit 3")
        then = self.submit("-d", f"afterok:{first}", "--wrap", "true")
        self.ends(first, "FAILED")
        self.assertEqual(self.done("sacct", "-n", "-P", "-j", first, "-o", "ExitCode").strip(), "3:0")
        waits = "PD (DependencyNeverSatisfied)"
        self.assertTrue(until(lambda: self.done("squeue", "-h", "-j", then, "-o", "%t %R").strip() == waits))
        self.done("scancel", then)
        self.assertEqual(self.state(then), "CANCELLED by ada")

    def test_a_held_job_waits_for_its_release(self):
        job = self.submit("--hold", "--wrap", "true")
        self.assertEqual(self.done("squeue", "-h", "-j", job, "-o", "%t %R").strip(), "PD (JobHeldUser)")
        self.done("scontrol", "release", job)
        self.ends(job, "COMPLETED")

    def test_signals_reach_tasks_before_the_limit_and_by_scancel(self):
        script = self.script("signals.sh", "#!/bin/bash\n#SBATCH -o signals.out --time=1:00 --signal=USR2@30\n"
                             "srun python3 -u -c '\nimport signal, time\n"
                             "def heard(number, frame):\n    print(signal.Signals(number).name)\n"
                             "for one in (signal.SIGUSR1, signal.SIGUSR2):\n    signal.signal(one, heard)\n"
                             "print(\"ready\")\nwhile True: time.sleep(0.1)\n'\n")
        job = self.submit(script)
        self.assertTrue(until(lambda: (self.work / "signals.out").exists() and "ready" in self.output("signals.out")))
        self.done("scancel", "-s", "USR1", job)
        self.assertTrue(until(lambda: "SIGUSR1" in self.output("signals.out")))
        self.ends(job, "TIMEOUT")
        self.assertRegex(self.output("limited.out"), r"CANCELLED AT \S+ DUE TO TIME LIMIT")
        self.assertIn("SIGUSR2", self.output("signals.out"))

    # Says that it was told to stop, takes its time, and says that it is done.
    SAVES = ("#!/bin/bash\ntrap 'echo term $SLURM_PROCID; sleep 1; echo saved $SLURM_PROCID; exit 0' TERM\n"
             "echo ready $SLURM_PROCID\nwhile :; do sleep 0.1; done\n")

    def two_savers(self, name, *flags):
        (self.work / "saves").write_text(self.SAVES)
        (self.work / "saves").chmod(0o755)
        script = self.script(name + ".sh", f"#!/bin/bash\n#SBATCH -N2 -o {name}.out\nsrun ./saves\n")
        job = self.submit(*flags, script)
        self.assertTrue(until(lambda: (self.work / (name + ".out")).exists()
                              and self.output(name + ".out").count("ready") == 2))
        return job

    def all_saved(self, name):
        return sorted(line for line in self.output(name + ".out").splitlines() if line.startswith(("term", "saved")))

    def test_a_cancelled_job_saves_on_all_nodes(self):
        job = self.two_savers("cancelled")
        self.done("scancel", job)
        self.assertTrue(until(lambda: self.all_saved("cancelled") == ["saved 0", "saved 1", "term 0", "term 1"]),
                        self.output("cancelled.out"))

    def test_a_job_saves_on_all_nodes_at_its_limit(self):
        job = self.two_savers("limited", "--time=0:40")
        self.ends(job, "TIMEOUT")
        self.assertTrue(until(lambda: self.all_saved("limited") == ["saved 0", "saved 1", "term 0", "term 1"]),
                        self.output("limited.out"))

    def test_a_requeued_job_continues_its_file(self):
        script = self.script("again.sh", "#!/bin/bash\n#SBATCH -o again.out\necho run ${SLURM_RESTART_COUNT:-first}\n"
                             "[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 600\n")
        job = self.submit(script)
        self.assertTrue(until(lambda: (self.work / "again.out").exists() and "run first" in self.output("again.out")))
        self.done("scontrol", "requeue", job)
        self.ends(job, "COMPLETED")
        lines = self.output("again.out").splitlines()
        self.assertEqual([line for line in lines if line.startswith("run ")], ["run first", "run 1"])
        self.assertIn(f"*** JOB {job} ON ", lines[1])

    def test_steps_that_ask_for_gpus_have_them_to_themselves(self):
        """Four steps at once on the four GPUs of two nodes; the fifth waits for one of them."""
        script = self.script("farm.sh", "#!/bin/bash\n#SBATCH -N2 --gpus-per-node=2 -o farm.out\n"
                             "mkdir farm\n"
                             "for i in 1 2 3 4 5; do\n"
                             "  srun -N1 -n1 --gpus=1 --exact sh -c '\n"
                             "    mkdir farm/$SLURMD_NODENAME.$(hostname).$CUDA_VISIBLE_DEVICES || echo shared\n"
                             "    until [ -e farm.go ]; do sleep 0.2; done\n"
                             "    rmdir farm/$SLURMD_NODENAME.$(hostname).$CUDA_VISIBLE_DEVICES; echo done $0' $i &\n"
                             "done\n"
                             "wait\n"
                             "srun -n1 --gpus=3 true || echo too many\n")
        job = self.submit(script)
        held = self.work / "farm"
        self.assertTrue(until(lambda: held.exists() and len(list(held.iterdir())) == 4), job)
        (self.work / "farm.go").touch()
        self.ends(job, "COMPLETED")
        lines = self.output("farm.out").splitlines()
        self.assertEqual(sorted(line for line in lines if line.startswith("done")), [f"done {i}" for i in range(1, 6)])
        self.assertNotIn("shared", lines)
        self.assertEqual(lines[-1], "too many")

    def test_a_preempted_script_that_exits_with_0_runs_again(self):
        script = self.script("saves.sh", "#!/bin/bash\n#SBATCH -N2 --gpus-per-node=2 -q train -o saves.out\n"
                             "trap 'echo saved; exit 0' TERM\n"
                             "echo run ${SLURM_RESTART_COUNT:-first}\n"
                             "[ -z \"$SLURM_RESTART_COUNT\" ] || exit 0\nsleep 600 & wait\n")
        job = self.submit(script)
        self.assertTrue(until(lambda: (self.work / "saves.out").exists() and "run first" in self.output("saves.out")))
        self.submit("-N2", "--gpus-per-node=2", "-q", "interactive", "-o", "/dev/null", "--wrap", "sleep 1")
        self.ends(job, "COMPLETED")
        lines = self.output("saves.out").splitlines()
        self.assertEqual([line for line in lines if not line.startswith("slurmstepd")], ["run first", "saved", "run 1"])

    def test_srun_takes_its_job_along(self):
        words = [str(self.scratch / "bin" / "srun"), "-J", "along", "sh", "-c", "echo ready; sleep 600"]
        with subprocess.Popen(words, env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as srun:
            self.assertEqual(srun.stdout.readline(), "ready\n")
            job = self.done("squeue", "-h", "-n", "along", "-o", "%i").strip()
            srun.terminate()
            said = srun.communicate(timeout=LIMIT_S)[1]
        self.assertEqual(said, f"srun: interrupted: job {job} is cancelled\n")
        self.assertEqual(srun.returncode, 130)
        self.assertEqual(self.state(job), "CANCELLED by ada")

    def test_srun_waits_for_the_time_of_its_job(self):
        words = [str(self.scratch / "bin" / "srun"), "--begin=now+1hour", "true"]
        with subprocess.Popen(words, env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as srun:
            said = srun.stderr.readline()
            self.assertIn(": starts at ", said)
            srun.terminate()
            said = srun.communicate(timeout=LIMIT_S)[1]
        self.assertIn("is cancelled", said)
        self.assertEqual(srun.returncode, 130)

    def test_srun_passes_its_input_to_the_first_task(self):
        done = self.run_("srun", "-n2", "cat", text="hello\nthere\n")
        self.assertEqual((done.returncode, done.stdout), (0, "hello\nthere\n"), done.stderr)
        script = self.script("input.sh", "#!/bin/bash\n#SBATCH -o input.out\nsrun cat <input.sh\n")
        self.ends(self.submit(script), "COMPLETED")
        self.assertEqual(self.output("input.out"), self.output("input.sh"))

    def test_login_shells_find_the_commands_and_tasks_have_files(self):
        script = self.script("login.sh", "#!/bin/bash -l\n#SBATCH -n2 -o login.out\nsrun -o step-%t.out sh -c "
                             "'echo task $SLURM_PROCID'\nbash -lc 'type -t srun'\n")
        self.ends(self.submit(script), "COMPLETED")
        self.assertEqual([self.output("step-0.out"), self.output("step-1.out")], ["task 0\n", "task 1\n"])

    def test_functions_that_the_users_shell_has_exported_go_along(self):
        script = self.script("module.sh", "#!/bin/bash\n#SBATCH -N2 -n2 -o module.out\nmodule load cuda\n"
                             "srun -N2 bash -c 'module list'\nmodule() { echo own; }\nexport -f module\n"
                             "bash -c module\n")
        with_module = dict(self.environment(), **{"BASH_FUNC_module%%": "() {  echo module \"$@\"\n}"})
        with mock.patch.object(self, "environment", lambda: with_module):
            job = self.submit(script)
        self.ends(job, "COMPLETED")
        self.assertEqual(self.output("module.out"), "module load cuda\nmodule list\nmodule list\nown\n")

    def test_a_script_that_makes_its_path_anew_finds_the_commands(self):
        script = self.script("profile.sh", "#!/bin/bash\n#SBATCH -o profile.out\nsource /etc/profile\n"
                             "PATH=/usr/bin:/bin\nsrun echo one\nsrun sh -c 'exit 3' 2>/dev/null\necho $?\nno-such\n")
        self.ends(self.submit(script), "FAILED")
        out = self.output("profile.out")
        self.assertTrue(out.startswith("one\n3\n"), out)
        self.assertIn("line 8: no-such: command not found", out)

    def test_tasks_have_files_for_errors_and_lists_of_nodes_are_read(self):
        script = self.script("errors.sh", "#!/bin/bash\n#SBATCH -n2 -o errors.out\nsrun -e errors-%t.err sh -c "
                             "'echo out; echo task $SLURM_PROCID >&2'\nscontrol show hostnames 'a[08-10,2]x,b'\n")
        self.ends(self.submit(script), "COMPLETED")
        self.assertEqual([self.output("errors-0.err"), self.output("errors-1.err")], ["task 0\n", "task 1\n"])
        self.assertEqual(self.output("errors.out"), "out\nout\na08x\na09x\na10x\na2x\nb\n")

    def test_a_job_repairs_what_an_array_left(self):
        script = self.script("some.sh", "#!/bin/bash\n#SBATCH -o some-%a.out\nexit $SLURM_ARRAY_TASK_ID\n")
        array = self.submit("--array=0-1", script)
        repair = self.submit("-d", f"afternotok:{array}", "-o", "repair.out", "--wrap", "echo repaired")
        self.ends(repair, "COMPLETED")

    def test_a_step_runs_in_a_job_from_outside(self):
        job = self.submit("-J", "outside", "--wrap", "echo ready; sleep 600")
        self.assertTrue(until(lambda: self.state(job) == "RUNNING"))
        done = self.run_("srun", "--overlap", "--jobid", job, "sh", "-c", "echo $SLURM_JOB_ID $SLURM_PROCID")
        self.assertEqual((done.returncode, done.stdout), (0, f"{job} 0\n"), done.stderr)
        self.done("scancel", job)

    def test_a_command_has_the_terminal_of_srun(self):
        job = self.submit("-J", "outside", "--wrap", "echo ready; sleep 600")
        self.assertTrue(until(lambda: self.state(job) == "RUNNING"))
        for where in (["--gpus=1"], ["--jobid", job]):
            leader, follower = pty.openpty()
            srun = [str(self.scratch / "bin" / "srun"), *where, "--pty", "sh", "-c",
                    "tty && command -v srun && srun --pty tty; echo job $SLURM_JOB_ID; exit 3"]
            with subprocess.Popen(srun, env=self.environment(), cwd=self.work, stdin=follower, stdout=follower,
                                  stderr=follower) as process:
                os.close(follower)
                said = b""
                while chunk := read_terminal(leader):
                    said += chunk
                code = process.wait(LIMIT_S)
            os.close(leader)
            self.assertEqual(code, 3, said)
            self.assertRegex(said.decode(), r"(/dev/pts/\d+)\s+/var/spool/slurm/srun\s+\1\s+job \d+\s")
        self.done("scancel", job)

    def test_what_cannot_be_is_refused(self):
        for words, says in ((("--gres=gpu:3",), "Requested node configuration is not available"),
                            (("-c", "100000"), "the largest node has"),
                            (("-D", "/nonexistent"), "the directory /nonexistent does not exist"),
                            (("-o", "/nonexistent/x.out"), "the directory /nonexistent does not exist")):
            done = self.run_("sbatch", *words, "--wrap", "true")
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(says, done.stderr)
        self.assertFalse(Path("/nonexistent").exists())

    def test_a_job_whose_dependency_fails_ends_with_it(self):
        first = self.submit("--wrap", "exit 3")
        then = self.submit("-d", f"afterok:{first}", "--kill-on-invalid-dep=yes", "--wrap", "true")
        self.assertTrue(until(lambda: self.state(then) == "CANCELLED"))

    def test_nodes_are_shown_as_slurm_shows_them(self):
        lines = self.done("sinfo", "-h", "-N", "-o", "%N %G").splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["node-1", "node-2"])
        self.assertIn("NodeName=node-1", self.done("scontrol", "show", "node", "node-1"))


if __name__ == "__main__":
    unittest.main()
