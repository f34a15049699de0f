"""Where this process stands in its job: rank, world size, where rank 0 listens.

Used by `swell.train` and by scripts that start torch.distributed themselves. Reads the variables that the
job controllers and torch's elastic agent set: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; and of an elastic
job PET_NNODES ("least:most") and PET_RDZV_ID, which torchrun reads too. SWELL_ELASTIC=0 makes any job a rigid one.
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
    # Members may come and go while this process lives, and nobody but the SDK looks after that.
    elastic: bool = False
    least: int = 1
    job_id: str = ""

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
        least, most = _range(environ.get("PET_NNODES", ""))
        # Below torch's own agent ranks change by restarting; a member with several processes needs that agent.
        alone = not environ.get("TORCHELASTIC_RUN_ID") and environ.get("PET_NPROC_PER_NODE", "1") == "1"
        return cls(
            elastic=least < most and alone and environ.get("SWELL_ELASTIC", "1") != "0",
            least=least,
            job_id=environ.get("PET_RDZV_ID", ""),
            rank=rank,
            world=world,
            local_rank=_integer(environ, "LOCAL_RANK", 0),
            master_addr=environ.get("MASTER_ADDR") or cls.master_addr,
            master_port=_integer(environ, "MASTER_PORT", cls.master_port),
        )


def _range(text):
    least, _, most = text.partition(":")
    try:
        least = int(least)
        return max(1, least), int(most) if most else least
    except ValueError:
        return 1, 1


def _integer(environ, name, default):
    text = environ.get(name, "")
    if text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not a whole number") from None
