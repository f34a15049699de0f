"""Runs a training script that gets SIGTERM right after a given step of its own: `noticed.py STEP SCRIPT ARGS...`.

Used by the end-to-end tests, so that a preemption hits an exact step. A real signal goes through the real handler;
only its moment is arranged. With several ranks, NOTICED_RANK says which one is hit.
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
            # A hurried operator signals twice; the save must survive it.
            os.kill(os.getpid(), signal.SIGTERM)

    swell.ResumableDistributedSampler.commit = commit_and_signal
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")


main()
