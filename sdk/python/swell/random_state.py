"""The random generators of Python, NumPy and torch: a run that resumes draws the numbers of an undisturbed one.

Used by `swell.train`. What always holds: only modules that the script has imported are asked.
"""

import random
import sys


def whole():
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return {
        **of_step(),
        "numpy": numpy.random.get_state() if numpy is not None else None,
        "cuda": torch.cuda.get_rng_state() if torch is not None and torch.cuda.is_initialized() else None,
    }


def of_step():
    """What a step takes with it in case it must be repeated. Without NumPy's and the GPU's, which take too long."""
    torch = sys.modules.get("torch")
    return {"python": random.getstate(), "torch": torch.get_rng_state() if torch is not None else None}


def restore(state):
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    random.setstate(state["python"])
    if numpy is not None and state.get("numpy") is not None:
        numpy.random.set_state(state["numpy"])
    if torch is not None and state["torch"] is not None:
        torch.set_rng_state(state["torch"])
    if torch is not None and state.get("cuda") is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
