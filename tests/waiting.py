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


def watched(what, condition, seconds=LIMIT_S, live=True, progress=None, style=("", "")):
    """As `until`; where `live`, a line on the terminal says what is waited for. (The answer, the seconds it took.)"""
    begin = time.monotonic()
    shown = ""

    def look():
        nonlocal shown
        answer = condition()
        if live and not answer:
            shown = (progress and progress()) or shown
            waited = time.monotonic() - begin
            print(f"\r\033[K{style[0]}  {waited:5.1f} s  {what}  {shown}{style[1]}", end="", flush=True)
        return answer

    answer = until(look, seconds, pause=0.15)
    if live:
        print("\r\033[K", end="")
    return answer, time.monotonic() - begin
