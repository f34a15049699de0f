"""Waiting in tests: bounded, far beyond what anything takes, also on a machine that has much else to do.

What is waited for has to stay so once it is: a state that passes may pass between two looks.
"""

import time

LIMIT_S = 240


def until(condition, seconds=LIMIT_S, pause=0.02):
    """What `condition` answers as soon as that is true; its last answer when it does not come true in time."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return answer
