"""An elastic TrainingJob while what runs it dies: API server, scheduler and node agents, in one process or apart."""

import os
import signal
import subprocess
import unittest

from cluster import BIN, LIMIT_S, ClusterTest


class ChaosTest(ClusterTest):
    def kill_swell(self):
        self.cluster.send_signal(signal.SIGKILL)
        self.cluster.wait(LIMIT_S)
        self.cluster.stdout.close()

    def test_the_training_goes_on_while_swell_is_killed_and_is_steered_again(self):
        self.submit(replicas=2, steps=100000)
        self.wait_world(2)
        before = self.all_running(2)
        for _ in range(2):
            self.kill_swell()
            reached = self.steps()[-1][1]
            self.wait("steps without a cluster", lambda reached=reached: self.steps()[-1][1] > reached + 20)
            self.up()
        self.wait("the pods are known again", lambda: self.running() == before)
        self.run_command("swell", "scale", "train", "--replicas", "4")
        self.wait_world(4)
        self.run_command("swell", "scale", "train", "--replicas", "1")
        self.wait_world(1)
        self.assertEqual(self.all_running(1), before[:1])
        steps = [step for _, step, _ in self.steps()]
        self.assertEqual(steps, list(range(1, len(steps) + 1)), "a step was lost or done twice")

    def test_a_member_that_died_while_nobody_looked_is_replaced(self):
        self.submit(replicas=2, steps=100000)
        self.wait_world(2)
        self.kill_swell()
        members = self.processes(b"RANK=1")
        self.assertTrue(members)
        for process in members:
            os.kill(process, signal.SIGKILL)
        self.up()
        self.wait("it is started anew", lambda: self.restarts("train-worker-1") > 0)
        reached = self.steps()[-1][1]
        self.wait("two train again", lambda: self.steps()[-1][1] > reached + 5)
        self.wait_world(2)

    def test_a_member_that_is_killed_costs_one_step_whichever_it_is(self):
        self.pace(0.1)
        self.submit(replicas=3, steps=100000)
        for victim in (0, 2):
            self.wait_world(3)
            others = [pod for pod in self.all_running(3) if pod[0] != f"train-worker-{victim}"]
            restarts, reached = self.restarts(f"train-worker-{victim}"), self.steps()[-1][1]
            for process in self.processes(b"RANK=%d" % victim):
                os.kill(process, signal.SIGKILL)
            self.wait("it is started anew", lambda: self.restarts(f"train-worker-{victim}") > restarts)
            self.wait("the others train", lambda: self.steps()[-1][1] > reached + 10)
            self.wait_world(3)
            # The others kept their processes.
            self.assertLessEqual(set(others), set(self.all_running(3)))
        steps = [step for _, step, _ in self.steps()]
        # Rank 0 may die between the end of a step and its line. Any other step has one line, and at most two have two.
        self.assertLessEqual(len(set(range(1, steps[-1] + 1)) - set(steps)), 2)
        self.assertLessEqual(len(steps) - len(set(steps)), 2)

    def restarts(self, name):
        return sum(status["restartCount"] for pod in self.pods() if pod["metadata"]["name"] == name
                   for status in pod["status"].get("containerStatuses", []))

    def processes(self, variable):
        """The processes of this test's job that were given the variable at their start."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as words, open(f"/proc/{entry}/environ", "rb") as environment:
                    line = words.read()
                    ours = line.startswith(b"python3") and str(self.steps_file).encode() in line
                    if ours and variable in environment.read().split(b"\0"):
                        found.append(int(entry))
            except (OSError, ValueError):
                continue
        return found


class AgentTest(ClusterTest):
    """The GPUs are on a node of an agent of its own."""

    gpus = 0

    def setUp(self):
        super().setUp()
        self.start_agent()
        self.addCleanup(self.stop_agent)

    def start_agent(self):
        self.agent = subprocess.Popen(
            [BIN / "swell", "agent", "--data-dir", self.folder / "agent", "--nodes", "1", "--node-name", "gpus",
             "--gpus-per-node", "4", "--cpus", "16", "--log-level", "warning", "--stop-pods"],
            env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.agent.stdout.close)
        self.assertTrue(self.agent.stdout.readline())

    def stop_agent(self):
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait(LIMIT_S)

    def test_the_training_goes_on_while_the_agent_is_killed(self):
        self.submit(replicas=2, steps=100000)
        self.wait_world(2)
        before = self.all_running(2)
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait(LIMIT_S)
        reached = self.steps()[-1][1]
        # What is decided meanwhile is done when somebody is there to do it.
        self.run_command("swell", "scale", "train", "--replicas", "3")
        self.wait("steps without an agent", lambda: self.steps()[-1][1] > reached + 20)
        self.start_agent()
        self.wait_world(3)
        self.assertEqual(self.all_running(3)[:2], before)
        steps = [step for _, step, _ in self.steps()]
        self.assertEqual(steps, list(range(1, len(steps) + 1)), "a step was lost or done twice")


if __name__ == "__main__":
    unittest.main()
