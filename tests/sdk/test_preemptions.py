"""Preemptions do not change what a job learns: loss and accuracy after 0, 1, 5 and 20 preemptions, and the noise
between seeds for comparison.
"""

import random
import signal
import statistics
import sys
import unittest

import support
from members import RECORDS, Members

_EPOCHS = 5
_SEEDS = (1, 2, 3, 4, 5)
# The most that sums in another order change in this training: the loss, and the accuracy by records near a tie.
_ROUNDING = 1e-4
_TIES = 5 / RECORDS


class PreemptionsTest(support.FolderTest):
    def undisturbed(self, seed):
        job = Members(self, most=2, epochs=_EPOCHS, seed=seed)
        job.start(0, 1)
        self.assertEqual(job.finish(0, 1), [0, 0])
        return job.end_of(0)

    def preempted(self, times, seed):
        """At random steps one of the two members gets a notice and comes back. If it is alone, the whole job stops."""
        job = Members(self, most=2, epochs=_EPOCHS, seed=seed, step_seconds=0.01, in_turn=True)
        chance = random.Random(f"{seed}/{times}")
        steps = sorted(chance.sample(range(1, job.steps - 1), times))
        alive = {0, 1}
        job.start(0, 1, lose_at=steps)
        left = 0
        while alive:
            for ordinal in sorted(alive):
                process = job.processes[ordinal]
                process.join(0.01)
                if process.exitcode is None:
                    continue
                self.assertIn(process.exitcode, (0, 143, -signal.SIGTERM), job.all_logs())
                if process.exitcode == 143:
                    left += 1
                    job.start(ordinal, lose_at=steps)
                    continue
                alive.discard(ordinal)
                if process.exitcode == 0 and alive and "ends rank 0 of 1" in job.log(ordinal):
                    # The other member came back too late and has no group to join. A controller would stop it, too.
                    job.notice(*alive)
        job.assert_each_record_once()
        ends = [job.end_of(ordinal) for ordinal in (0, 1) if "ends rank" in job.log(ordinal)]
        self.assertEqual({end["step"] for end in ends}, {job.steps})
        return ends[0], left

    def test_loss_and_accuracy_agree(self):
        undisturbed = {seed: self.undisturbed(seed) for seed in _SEEDS}
        noise = {name: statistics.stdev(end[name] for end in undisturbed.values()) for name in ("loss", "accuracy")}
        bounds = {"loss": max(_ROUNDING, noise["loss"] / 10), "accuracy": max(_TIES, noise["accuracy"])}
        row = "{:24} {:>10} {:>12} {:>10} {:>12}".format
        print(row("preemptions", "loss", "difference", "accuracy", "difference"), file=sys.stderr)
        for seed, end in undisturbed.items():
            print(row(f"0, seed {seed}", f"{end['loss']:.6f}", "", f"{end['accuracy']:.4f}", ""), file=sys.stderr)
        print(row("noise of seeds", f"{noise['loss']:.6f}", "", f"{noise['accuracy']:.4f}", ""), file=sys.stderr)
        for times in (0, 1, 5, 20):
            end, left = self.preempted(times, seed=1)
            off = {name: end[name] - undisturbed[1][name] for name in bounds}
            print(row(f"{times}, seed 1 ({left} left)", f"{end['loss']:.6f}", f"{off['loss']:+.7f}",
                      f"{end['accuracy']:.4f}", f"{off['accuracy']:+.4f}"), file=sys.stderr)
            for name, bound in bounds.items():
                self.assertLessEqual(abs(off[name]), bound, name)
            self.assertEqual(left, times)


if __name__ == "__main__":
    unittest.main()
