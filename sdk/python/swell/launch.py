"""`python3 -m swell.launch`: torchrun's command line, started in a way that works and that can be preempted.

Used in place of `torchrun` (same options, same PET_* variables) in elastic jobs. It differs in four ways:

* It starts with torch 1.13 on Python 3.11, where `torchrun` fails because its defaults for --redirects and
  --tee parse to None.
* Workers get the whole grace period (SWELL_GRACE_SECONDS) to save, not 30 seconds; further SIGTERMs meanwhile
  do not cut it short.
* A worker group that leaves with 143 because a peer was preempted re-forms without using up --max_restarts.
* It exits with 143 when it was told to leave, and it looks after its workers every second instead of every 5.

What always holds: when the launcher ends, none of its workers is alive.
"""

import os
import re
import signal
import sys

from swell.notice import EXIT_NOTICED

_DEFAULT_GRACE_SECONDS = 30.0


def main(arguments=None):
    # A signal before the workers exist has nothing to forward it to; PID 1 would ignore the default action.
    signal.signal(signal.SIGTERM, lambda signum, frame: os._exit(EXIT_NOTICED))
    os.environ.setdefault("PET_MONITOR_INTERVAL", "1")
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    options = run.parse_args(arguments)
    _stand_alone(options)
    redirects, tee = options.redirects, options.tee
    # config_from_args would turn "0" into None on Python 3.11; the real values are set right after.
    options.redirects = options.tee = "1"
    config, command, command_arguments = run.config_from_args(options)
    config.redirects, config.tee = parse_streams(redirects), parse_streams(tee)
    _adapt_torch()
    try:
        elastic_launch(config=config, entrypoint=command)(*command_arguments)
    except SignalException as stopped:
        return 128 + int(stopped.sigval)
    except ChildFailedError as failed:
        return _failure_code(failed)
    return 0


def parse_streams(text):
    """Std from "0".."3" or "rank:value,...": which streams of which worker go to files."""
    from torch.distributed.elastic.multiprocessing import Std

    if re.fullmatch(r"[0-3]", text):
        return Std(int(text))
    if not re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", text):
        raise SystemExit(f"swell.launch: bad stream choice {text!r}; like 3 or 0:1,1:2")
    pairs = (part.split(":") for part in text.split(","))
    return {int(rank): Std(int(value)) for rank, value in pairs}


def _stand_alone(options):
    if not options.standalone:
        return
    import socket
    import uuid

    # Any free port, unlike torchrun's fixed 29400: several jobs can share one machine.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options.rdzv_backend = "c10d"
    options.rdzv_endpoint = f"localhost:{port}"
    options.rdzv_id = str(uuid.uuid4())


def _adapt_torch():
    from torch.distributed.elastic.multiprocessing import api as processes
    from torch.distributed.launcher import api as launcher

    raise_once = processes._terminate_process_handler
    told = []

    def on_signal(signum, frame):
        # Later signals are swallowed: raising again would break off the orderly stop of the workers.
        if not told:
            told.append(signum)
            raise_once(signum, frame)

    processes._terminate_process_handler = on_signal
    close = processes.PContext.close
    grace = _grace_seconds()

    def close_patiently(self, death_sig=None, timeout=grace):
        close(self, death_sig, timeout)

    processes.PContext.close = close_patiently
    launcher.LocalElasticAgent = _agent_class(launcher.LocalElasticAgent)
    # From here on SIGTERM unwinds through torch, which also covers the wait at the rendezvous.
    signal.signal(signal.SIGTERM, on_signal)


def _agent_class(base):
    from torch.distributed.elastic.agent.server.api import WorkerState

    class Agent(base):
        def _monitor_workers(self, worker_group):
            result = super()._monitor_workers(worker_group)
            if result.state == WorkerState.FAILED and result.failures:
                codes = {failure.exitcode for failure in result.failures.values()}
                if codes == {EXIT_NOTICED}:
                    # A preempted peer is not this job's fault: undo the retry torch is about to count.
                    self._remaining_restarts += 1
            return result

    return Agent


def _grace_seconds():
    try:
        return float(os.environ.get("SWELL_GRACE_SECONDS", ""))
    except ValueError:
        return _DEFAULT_GRACE_SECONDS


def _failure_code(failed):
    print(f"swell.launch: {failed}", file=sys.stderr, flush=True)
    codes = [failure.exitcode for failure in failed.failures.values()]
    if codes and all(code == EXIT_NOTICED for code in codes):
        return EXIT_NOTICED
    return 1


if __name__ == "__main__":
    sys.exit(main())
