"""Where this process stands in its job: rank, world size, where rank 0 listens.

Used by `swell.train` and by scripts that start torch.distributed themselves. Reads the variables that the
PyTorchJob controller and torch's elastic agent set: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
What always holds: 0 <= rank < world; with none of the variables set, the process is rank 0 of 1.
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Env:
    rank: int = 0
    world: int = 1
    local_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 29500

    @property
    def distributed(self):
        return self.world > 1

    @property
    def leader(self):
        """True on the one rank that writes files and talks for the job."""
        return self.rank == 0

    @classmethod
    def read(cls, environ=None):
        environ = os.environ if environ is None else environ
        world = _integer(environ, "WORLD_SIZE", 1)
        rank = _integer(environ, "RANK", 0)
        if world < 1 or not 0 <= rank < world:
            raise ValueError(f"RANK={rank} does not fit WORLD_SIZE={world}")
        return cls(
            rank=rank,
            world=world,
            local_rank=_integer(environ, "LOCAL_RANK", 0),
            master_addr=environ.get("MASTER_ADDR") or cls.master_addr,
            master_port=_integer(environ, "MASTER_PORT", cls.master_port),
        )


def _integer(environ, name, default):
    text = environ.get(name, "")
    if text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not a whole number") from None
