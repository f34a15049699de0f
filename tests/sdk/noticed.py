"""Runs a training script that gets SIGTERM right after a given step of its own: `noticed.py STEP SCRIPT ARGS...`.

Used by the end-to-end tests, so that a preemption comes at an exact step. The signal and its handler are real. With
several ranks, NOTICED_RANK names the one that gets the signal.
"""

import os
import runpy
import signal
import sys

import swell


def main():
    step, script = int(sys.argv[1]), sys.argv[2]
    commit = swell.ResumableDistributedSampler.commit
    commits = []

    def commit_and_signal(self):
        commit(self)
        commits.append(None)
        if len(commits) == step and self.rank == int(os.environ.get("NOTICED_RANK", "0")):
            os.kill(os.getpid(), signal.SIGTERM)
            # A second signal must not interrupt the save.
            os.kill(os.getpid(), signal.SIGTERM)

    swell.ResumableDistributedSampler.commit = commit_and_signal
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")


main()
