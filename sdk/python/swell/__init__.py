"""The Swell SDK: what a training script needs to be preempted without losing work.

Training scripts use `Job` (four lines, see README.md); the other names are its parts, for scripts that want
only some of them. What always holds: importing this package imports the standard library only and changes
nothing in the process; without Swell around it (no environment, no notice) every part still works.
"""

from swell.checkpoint import Checkpoint, CheckpointManager
from swell.env import Env
from swell.notice import EXIT_NOT_SAVED, EXIT_NOTICED, Notice
from swell.sampler import ResumableDistributedSampler
from swell.sharded import Sharded
from swell.train import Job

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "EXIT_NOTICED",
    "EXIT_NOT_SAVED",
    "Env",
    "Job",
    "Notice",
    "ResumableDistributedSampler",
    "Sharded",
]
