"""`python3 -m swell.launch`: torchrun with preemption.

Used instead of `torchrun` in elastic jobs: same options, same PET_* variables. The differences:

* It starts with torch 1.13 on Python 3.11. `torchrun` fails there, because its defaults for --redirects and --tee
  parse to None. It also takes the names that torch has since 2.0, such as --nproc-per-node.
* Workers get the whole grace period (SWELL_GRACE_SECONDS) to save, not 30 seconds. Further SIGTERMs do not shorten it.
* If workers exit with 143 because a peer was preempted, the group forms again without using up --max_restarts.
* A node that must stop leaves the rendezvous at once, and other nodes wait 5 s for late nodes, not 30
  (--rdzv_conf last_call_timeout=). So peers form a group again after seconds, not after 45 s.
* The back ends etcd and etcd-v2 do not need the package python-etcd; see `swell.etcd`.
* Workers continue to train while the rendezvous store does not answer. Nodes that come or go meanwhile are noticed
  later.
* After a change of size all nodes use a new store. torch 2.15 lets nodes keep the store of the first rank 0, which may
  have left.
* When nodes have left the group for 10 s and the workers still run, for example because they wait in
  init_process_group for ranks that are gone, the workers are started again in a smaller group.
* A script that fails five times in a row within a minute of its start, with the same nodes, is not started again.
* It prints `swell.launch: 2 nodes train` when a group starts, for programs that read the log.
* It exits with 143 after a notice, and it checks its workers every second instead of every 5.

What always holds: when the launcher has ended, none of its workers is alive.
"""

import os
import re
import signal
import sys
import time

from swell.notice import EXIT_NOTICED, Notice

_DEFAULT_GRACE_SECONDS = 30.0
_LAST_CALL_SECONDS = 5
_QUICK_FAILURES, _QUICK_SECONDS = 5, 60
_PEERS_GONE_SECONDS = 10
_RENDEZVOUS_WITH_LAST_CALL = ("c10d", "etcd", "etcd-v2")


def main(arguments=None):
    # Before there are workers, a notice ends the launcher at once, also while it waits for a rendezvous host.
    notice = Notice(hold=False)
    os.environ.setdefault("PET_MONITOR_INTERVAL", "1")
    # Newer torch shares one store among launcher and workers. Nodes then cache the address of the node that has it.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    options = _parser(run).parse_args(arguments)
    _stand_alone(options)
    config, command, command_arguments = _config(run, options)
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


def _parser(run):
    parser = run.get_args_parser()
    # torch before 2.0 knows --nproc_per_node alone. Its parser finds an option by its name: the other name is added.
    names = parser._option_string_actions
    for name, action in list(names.items()):
        names.setdefault(name.replace("_", "-"), action)
    return parser


def _config(run, options):
    redirects, tee = parse_streams(options.redirects), parse_streams(options.tee)
    if not hasattr(run.LaunchConfig, "redirects"):
        return run.config_from_args(options)
    # config_from_args of torch 1.13 turns "0" into None on Python 3.11. So it gets another value.
    options.redirects = options.tee = "1"
    config, *command = run.config_from_args(options)
    config.redirects, config.tee = redirects, tee
    return (config, *command)


def parse_streams(text):
    """The streams of workers that go to files, from "0".."3" or "rank:value,..."."""
    from torch.distributed.elastic.multiprocessing import Std

    if re.fullmatch(r"[0-3]", text):
        return Std(int(text))
    if not re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", text):
        raise SystemExit(f"swell.launch: bad value {text!r} for --redirects or --tee; examples: 3, or 0:1,1:2")
    pairs = (part.split(":") for part in text.split(","))
    return {int(rank): Std(int(value)) for rank, value in pairs}


def _stand_alone(options):
    if not options.standalone:
        return
    import uuid

    # A free port, where torchrun always takes 29400: several jobs can share one machine.
    options.rdzv_backend = "c10d"
    options.rdzv_endpoint = "localhost:0"
    options.rdzv_id = str(uuid.uuid4())


def _adapt_torch(notice):
    from torch.distributed.elastic.multiprocessing import api as processes
    from torch.distributed.launcher import api as launcher

    raise_once = processes._terminate_process_handler
    received = []

    def on_signal(signum, frame):
        # Only the first signal raises: a second exception would interrupt the orderly stop of the workers.
        if not received:
            received.append(signum)
            notice.note()
            raise_once(signum, frame)

    on_signal.__module__ = "swell.launch"  # not "__main__", which would be a handler of the script's own
    processes._terminate_process_handler = on_signal
    close = processes.PContext.close
    grace = _grace_seconds()

    def close_within_grace(self, death_sig=None, timeout=None):
        # Not `timeout`: newer torch passes its own default.
        close(self, death_sig, grace)

    processes.PContext.close = close_within_grace
    launcher.LocalElasticAgent = _agent_class(launcher.LocalElasticAgent, notice, on_signal)


class QuickFailures:
    """Whether a script fails by itself again and again: torch would start it a hundred times, and nobody would notice.

    Nodes that come or go, and processes that a signal ended, are not the script's fault.
    """

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._began, self._nodes, self._count = 0.0, None, 0

    def begin(self, nodes):
        if nodes != self._nodes:
            self._count = 0
        self._began, self._nodes = self._clock(), nodes

    def end(self, codes):
        """`codes`: the exit codes of this node's failed processes. True if it was the last failure to bear."""
        quick = self._clock() - self._began < _QUICK_SECONDS and all(code > 0 for code in codes)
        self._count = self._count + 1 if quick else 0
        return self._count >= _QUICK_FAILURES


class MissingPeers:
    """Whether nodes have left the group for so long that its workers do not end by themselves.

    Workers that train lose the connection and end at once. Those in init_process_group wait half an hour.
    """

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._since, self._ignored = None, False

    def begin(self):
        self._since, self._ignored = None, False

    def ignore(self):
        """The rendezvous was away: nodes that could not report to it meanwhile look as if they had left."""
        self._ignored = True

    def look(self, nodes, present):
        """`nodes`: as many began. `present`: as many are there now; None: not known. True: start the workers again."""
        if self._ignored or present is None or present >= nodes:
            self._since = None
            return False
        if self._since is None:
            self._since = self._clock()
        return self._clock() - self._since >= _PEERS_GONE_SECONDS


def _nodes_present(handler):
    try:
        return len(handler._state_holder.state.participants)
    except AttributeError:
        return None  # a static rendezvous, or torch's internals have changed


def _agent_class(base, notice, on_signal):
    from torch.distributed.elastic.agent.server.api import WorkerState
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError

    class Agent(base):
        quick_failures = QuickFailures()
        missing_peers = MissingPeers()

        def _start_workers(self, worker_group):
            notice.hold()
            signal.signal(signal.SIGTERM, on_signal)
            if notice.requested:
                on_signal(signal.SIGTERM, None)
            # Readers of the log need the size of the group that the following lines come from.
            nodes = worker_group.group_world_size
            print(f"swell.launch: {nodes} {'node trains' if nodes == 1 else 'nodes train'}", flush=True)
            self._tolerate_outages(worker_group.spec.rdzv_handler)
            self.quick_failures.begin(nodes)
            self.missing_peers.begin()
            return super()._start_workers(worker_group)

        def _tolerate_outages(self, handler):
            waiting = type(handler).num_nodes_waiting
            outage = []

            def num_nodes_waiting():
                try:
                    number = waiting(handler)
                except RendezvousConnectionError as error:
                    self.missing_peers.ignore()
                    if not outage:
                        outage.append(error)
                        print(f"swell.launch: training continues without the rendezvous: {error}", flush=True)
                    return 0
                outage.clear()
                return number

            handler.num_nodes_waiting = num_nodes_waiting

        def _shutdown(self, *arguments, **named):
            super()._shutdown(*arguments, **named)
            if notice.requested:
                _leave_rendezvous(self._worker_group.spec.rdzv_handler)

        def _monitor_workers(self, worker_group):
            result = super()._monitor_workers(worker_group)
            nodes, present = worker_group.group_world_size, _nodes_present(worker_group.spec.rdzv_handler)
            if result.state == WorkerState.HEALTHY and self.missing_peers.look(nodes, present):
                print(f"swell.launch: {nodes - present} of {nodes} nodes are gone; the workers start again", flush=True)
                # As torch does when nodes join: a change of size does not count as a failure.
                self._remaining_restarts += 1
                result.state = WorkerState.UNHEALTHY
            if result.state == WorkerState.FAILED and result.failures:
                codes = {failure.exitcode for failure in result.failures.values()}
                if codes == {EXIT_NOTICED}:
                    # A preempted peer is not a failure of the job: undo the retry that torch is about to count.
                    self._remaining_restarts += 1
                elif self.quick_failures.end(codes):
                    print(
                        f"swell.launch: the script failed {_QUICK_FAILURES} times in a row within {_QUICK_SECONDS} s "
                        "of its start, with the same nodes; it is not started again",
                        file=sys.stderr,
                        flush=True,
                    )
                    self._remaining_restarts = 0
            return result

    return Agent


def _leave_rendezvous(handler):
    """Leaves at once. Otherwise peers wait until they have missed this node's heartbeats, 15 seconds."""
    try:
        from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

        if isinstance(handler, dynamic.DynamicRendezvousHandler):
            handler._stop_heartbeats()
            deadline = handler._get_deadline(handler._settings.timeout.close)
            handler._op_executor.run(dynamic._RendezvousExitOp(), deadline)
    except Exception as error:
        # The rendezvous host left first, or torch's internals have changed. Peers notice later by themselves.
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
