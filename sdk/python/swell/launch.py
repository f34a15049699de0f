"""`python3 -m swell.launch`: torchrun's command line, started in a way that works and that can be preempted.

Used in place of `torchrun` (same options, same PET_* variables) in elastic jobs. It differs in this:

* It starts with torch 1.13 on Python 3.11, where `torchrun` fails because its defaults for --redirects and
  --tee parse to None.
* Workers get the whole grace period (SWELL_GRACE_SECONDS) to save, not 30 seconds; further SIGTERMs meanwhile
  do not cut it short.
* A worker group that leaves with 143 because a peer was preempted re-forms without using up --max_restarts.
* Peers re-form seconds after a node was told to leave, not 45 s later: that node takes itself off the list of
  the rendezvous, and peers below their maximum wait 5 s for latecomers, not 30 (--rdzv_conf last_call_timeout=).
* The back ends etcd and etcd-v2 need no package python-etcd; see `swell.etcd`.
* Workers train on while the store of the rendezvous does not answer; who comes or goes meanwhile is seen afterwards.
* It says `swell.launch: 2 nodes train` whenever a group begins, for the log's readers.
* It exits with 143 when it was told to leave, and it looks after its workers every second instead of every 5.

What always holds: when the launcher ends, none of its workers is alive.
"""

import os
import re
import signal
import sys

from swell.notice import EXIT_NOTICED, Notice

_DEFAULT_GRACE_SECONDS = 30.0
_LAST_CALL_SECONDS = 5
_RENDEZVOUS_WITH_LAST_CALL = ("c10d", "etcd", "etcd-v2")


def main(arguments=None):
    # Until there are workers a notice ends the launcher at once, also while it waits for a rendezvous host.
    notice = Notice(hold=False)
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
    if config.rdzv_backend in _RENDEZVOUS_WITH_LAST_CALL:
        config.rdzv_configs.setdefault("last_call_timeout", _LAST_CALL_SECONDS)
    if config.rdzv_backend in ("etcd", "etcd-v2"):
        from swell import etcd

        etcd.register()
        config.rdzv_backend = etcd.NAME
    _adapt_torch(notice)
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
    import uuid

    # Whichever port is free when it is taken, unlike torchrun's fixed 29400: several jobs can share one machine.
    options.rdzv_backend = "c10d"
    options.rdzv_endpoint = "localhost:0"
    options.rdzv_id = str(uuid.uuid4())


def _adapt_torch(notice):
    from torch.distributed.elastic.multiprocessing import api as processes
    from torch.distributed.launcher import api as launcher

    raise_once = processes._terminate_process_handler
    told = []

    def on_signal(signum, frame):
        # Later signals are swallowed: raising again would break off the orderly stop of the workers.
        if not told:
            told.append(signum)
            notice.note()
            raise_once(signum, frame)

    processes._terminate_process_handler = on_signal
    close = processes.PContext.close
    grace = _grace_seconds()

    def close_patiently(self, death_sig=None, timeout=grace):
        close(self, death_sig, timeout)

    processes.PContext.close = close_patiently
    launcher.LocalElasticAgent = _agent_class(launcher.LocalElasticAgent, notice, on_signal)


def _agent_class(base, notice, on_signal):
    from torch.distributed.elastic.agent.server.api import WorkerState
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError

    class Agent(base):
        def _start_workers(self, worker_group):
            notice.hold()
            signal.signal(signal.SIGTERM, on_signal)
            if notice.requested:
                on_signal(signal.SIGTERM, None)
            # Who reads the log learns which lines are of a group of which size.
            nodes = worker_group.group_world_size
            print(f"swell.launch: {nodes} {'node trains' if nodes == 1 else 'nodes train'}", flush=True)
            self._watch(worker_group.spec.rdzv_handler)
            return super()._start_workers(worker_group)

        def _watch(self, handler):
            waiting = type(handler).num_nodes_waiting
            away = []

            def num_nodes_waiting():
                try:
                    number = waiting(handler)
                except RendezvousConnectionError as error:
                    if not away:
                        away.append(error)
                        print(f"swell.launch: training goes on without the rendezvous: {error}", flush=True)
                    return 0
                away.clear()
                return number

            handler.num_nodes_waiting = num_nodes_waiting

        def _shutdown(self, death_sig=signal.SIGTERM):
            super()._shutdown(death_sig)
            if notice.requested:
                _leave_rendezvous(self._worker_group.spec.rdzv_handler)

        def _monitor_workers(self, worker_group):
            result = super()._monitor_workers(worker_group)
            if result.state == WorkerState.FAILED and result.failures:
                codes = {failure.exitcode for failure in result.failures.values()}
                if codes == {EXIT_NOTICED}:
                    # A preempted peer is not this job's fault: undo the retry torch is about to count.
                    self._remaining_restarts += 1
            return result

    return Agent


def _leave_rendezvous(handler):
    """Peers would otherwise wait for this node's heartbeats to be missed, a quarter of a minute."""
    try:
        from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

        if isinstance(handler, dynamic.DynamicRendezvousHandler):
            handler._stop_heartbeats()
            deadline = handler._get_deadline(handler._settings.timeout.close)
            handler._op_executor.run(dynamic._RendezvousExitOp(), deadline)
    except Exception as error:
        # Torch's internals or a rendezvous host that left first: peers then find out by themselves, later.
        print(f"swell.launch: could not leave the rendezvous: {error}", file=sys.stderr, flush=True)


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
