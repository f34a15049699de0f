"""The SDK refuses to save state that is spread over the ranks as rank 0's, names it, and says what saves it."""

import unittest
import warnings

import support
import torch
import torch.distributed as dist
from swell.checkpoint import CheckpointManager
from swell.loop import batches
from swell.memory import MemoryCopies
from swell.snapshot import size_of

_REFUSED = r"state\['model'\]\['weight'\] is spread over the ranks \(FSDP, tensor parallel\).*save with swell.Sharded"


@support.torch_since(2, 6)
class SpreadTest(support.FolderTest):
    def setUp(self):
        super().setUp()
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)
        self.model = torch.nn.Linear(2, 3)

    def spread(self, *placements):
        from torch.distributed.tensor import distribute_tensor

        mesh = dist.init_device_mesh("cpu", (1,))
        return distribute_tensor(torch.ones(2), mesh, placements)

    def test_a_checkpoint_refuses_a_part(self):
        from torch.distributed.tensor import Shard

        state = {"model": {"weight": self.spread(Shard(0))}}
        copies = MemoryCopies(self.path("checkpoints"), {"SWELL_MEMORY_DIR": self.folder})
        copies.run = "run"
        for save in (lambda: size_of(state), lambda: CheckpointManager(self.path("checkpoints")).save(1, state),
                     lambda: copies.write(1, state, "now")):
            with copies.alone(), self.assertRaisesRegex(TypeError, _REFUSED):
                save()
        self.assertEqual(CheckpointManager(self.path("checkpoints")).steps(), [])

    def test_what_every_rank_has_whole_is_saved(self):
        from torch.distributed.tensor import Replicate

        CheckpointManager(self.path("checkpoints")).save(1, {"weight": self.spread(Replicate())})
        self.assertEqual(CheckpointManager(self.path("checkpoints")).load().state["weight"].to_local().tolist(), [1, 1])

    def refused(self, keep, name):
        with self.assertRaisesRegex(TypeError, rf"^keep\['{name}'\] is spread over the ranks .*; use a loop of your "
                                               r"own with swell.Sharded$"):
            next(batches(None, [1.0], 1, 1, keep, 0, 0, {}))

    def test_batches_refuses_fsdp2_and_its_optimizer(self):
        from torch.distributed.fsdp import fully_shard

        whole = torch.nn.Linear(2, 3)
        fully_shard(self.model, mesh=dist.init_device_mesh("cpu", (1,)))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.refused({"whole": whole, "model": self.model}, "model")
        self.refused({"whole": whole, "optimizer": optimizer}, "optimizer")

    def test_batches_refuses_fsdp(self):
        from torch.distributed.fsdp import FullyShardedDataParallel

        warnings.simplefilter("ignore")  # torch says that one rank alone shards nothing
        model = torch.nn.Sequential(FullyShardedDataParallel(self.model, device_id=torch.device("cpu")))
        self.refused({"model": model}, "model")


if __name__ == "__main__":
    unittest.main()
