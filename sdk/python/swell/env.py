"""The place of this process in its job: rank, world size, address of rank 0.

Used by `swell.train` and by scripts that start torch.distributed themselves. Reads the variables that job controllers
and torch's elastic agent set: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT. Elastic jobs have PET_NNODES
("minimum:maximum") and PET_RDZV_ID too, which torchrun also reads. SWELL_ELASTIC=0 makes any job rigid.

What always holds: 0 <= rank < world. If none of the variables is set, the process is rank 0 of 1.
"""

import os
from dataclasses import dataclass

from swell import report


@dataclass(frozen=True)
class Env:
    rank: int = 0
    world: int = 1
    local_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 29500
    # Members may come and go while this process runs, and the SDK handles it, not torch's agent.
    elastic: bool = False
    least: int = 1  # members that the job needs
    # torch's agent (torchrun, swell.launch) started this process and starts it again after a failure.
    under_agent: bool = False
    job_id: str = ""
    processes: int = 1  # that a launcher is to start in this pod, where it is a number

    def complain_of_no_launcher(self):
        """Says so if this process is alone where several were asked for."""
        if self.processes > 1 and not self.under_agent and self.leader:
            report.complain(
                f"the job asks for {self.processes} processes in each pod (PET_NPROC_PER_NODE), and this script is the "
                "only one in its pod: start it by torchrun or python -m swell.launch"
            )

    @property
    def distributed(self):
        return self.world > 1

    @property
    def leader(self):
        """True on rank 0, which writes the files of the job."""
        return self.rank == 0

    @classmethod
    def read(cls, environ=None):
        environ = os.environ if environ is None else environ
        world = _integer(environ, "WORLD_SIZE", 1)
        rank = _integer(environ, "RANK", 0)
        if world < 1 or not 0 <= rank < world:
            raise ValueError(f"RANK={rank} does not fit WORLD_SIZE={world}")
        least, most = _range(environ.get("PET_NNODES", ""))
        # Under torch's agent a change of size restarts the processes. A member with several processes needs that agent.
        under_agent = bool(environ.get("TORCHELASTIC_RUN_ID"))
        processes = environ.get("PET_NPROC_PER_NODE", "1")
        alone = not under_agent and processes == "1"
        return cls(
            elastic=least < most and alone and environ.get("SWELL_ELASTIC", "1") != "0",
            least=least,
            under_agent=under_agent,
            job_id=environ.get("PET_RDZV_ID", ""),
            processes=int(processes) if processes.isdecimal() else 1,
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
