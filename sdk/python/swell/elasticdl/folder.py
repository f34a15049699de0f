"""The folder of a job's checkpoints belongs to one job.

Two jobs in one folder would write over each other, and a new job would take an old one's finished training for its own.
So a master holds a lock in its folder while it runs, and leaves the name and uid of its job there.
"""

import fcntl
import json
import os

OWNER = "job.json"
LOCK = "job.lock"


class Taken(Exception):
    """The folder is another job's."""


class Folder:
    """Makes the folder and locks it for the job; Taken where it is another job's."""

    def __init__(self, path, name, uid):
        self.path, self.name, self.uid = path, name, uid
        os.makedirs(path, exist_ok=True)
        # Open until the process ends: the lock ends with it.
        self._lock = open(os.path.join(path, LOCK), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"{self} is in use: another job trains there now; name another directory") from None
        except OSError:
            pass  # a file system without locks
        self.before = self._owner()
        if self.before and self.before["name"] != name:
            raise self.taken()

    def __str__(self):
        return f"--checkpoint_dir {self.path}"

    def of_another(self):
        """Whether what is in the folder is of an earlier job of this name. Unknown owners count as one."""
        return self.before is None or (bool(self.uid) and self.before["uid"] != self.uid)

    def taken(self):
        """The error of a job that cannot use what it finds in its folder."""
        other = f"job {self.before['name']}" if self.before and self.before["name"] != self.name else "an earlier job"
        return Taken(f"{self} has the checkpoints of {other}; name an empty directory. To start from the weights "
                     f"there, add --checkpoint_dir_for_init={self.path}")

    def _owner(self):
        try:
            with open(os.path.join(self.path, OWNER), encoding="utf-8") as file:
                owner = json.load(file)
            return {"name": str(owner["name"]), "uid": str(owner["uid"])}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def keep(self):
        """Leaves the job's name there. Not before what is in the folder has proved to be the job's to continue."""
        path = os.path.join(self.path, OWNER)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({"name": self.name, "uid": self.uid}, file)
        os.replace(path + ".part", path)
