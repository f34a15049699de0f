"""examples/elastic-ddp: the plain script and the elastic one learn the same, and four new lines make the difference."""

import difflib
import os
import re
import unittest

import support

_EXAMPLE = os.path.join(support.ROOT, "examples", "elastic-ddp")


def _accuracy(output):
    return float(re.search(r"accuracy ([\d.]+)", output).group(1))


class ExampleTest(support.FolderTest):
    def run_ranks(self, script, world, **extra):
        port = support.free_port()
        processes = [
            support.start(
                self,
                [os.path.join(_EXAMPLE, script)],
                RANK=rank,
                WORLD_SIZE=world,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                OMP_NUM_THREADS=1,
                SWELL_CHECKPOINT_DIR=self.path("checkpoints"),
                **extra,
            )
            for rank in range(world)
        ]
        outputs = []
        for process in processes:
            code, output = support.finish(process)
            self.assertEqual(code, 0, output)
            outputs.append(output)
        return [_accuracy(output) for output in outputs]

    def test_both_learn(self):
        plain = self.run_ranks("plain.py", 2)
        # With a minimum of 2, neither starts without the other.
        elastic = self.run_ranks("elastic.py", 2, PET_NNODES="2:3", PET_RDZV_ID="x")
        self.assertEqual(elastic[0], elastic[1])
        self.assertGreater(min(plain), 0.9)
        self.assertAlmostEqual(elastic[0], plain[0], delta=0.03)

    def test_outside_swell(self):
        code, output = support.finish(
            support.start(self, [os.path.join(_EXAMPLE, "elastic.py")], SWELL_CHECKPOINT_DIR=self.path("c"))
        )
        self.assertEqual(code, 0, output)
        self.assertGreater(_accuracy(output), 0.9)

    def test_four_lines_are_added(self):
        texts = []
        for name in ("plain.py", "elastic.py"):
            with open(os.path.join(_EXAMPLE, name), encoding="utf-8") as file:
                # Stripped, because the elastic script has no loop over epochs and less indentation.
                texts.append([line.strip() for line in file.read().split('"""', 2)[2].splitlines()])
        changes = list(difflib.unified_diff(*texts, n=0, lineterm=""))[2:]
        new = [line for line in changes if line.startswith("+") and line[1:]]
        # The import, Job, parallel and batches.
        self.assertEqual(len(new), 4, "\n".join(new))
        self.assertLess(len(texts[1]), len(texts[0]), "the elastic script must be the shorter one")


if __name__ == "__main__":
    unittest.main()
