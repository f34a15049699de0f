"""A rendezvous of torch's elastic agent in etcd, over its v2 API, with the standard library alone.

Used by `swell.launch` for --rdzv_backend etcd and etcd-v2. torch's own back ends need the package python-etcd. The
protocol between members is torch's dynamic rendezvous, as with c10d.

What always holds:
* Only a member that has read the current state can replace it (compare and swap on etcd's index).
* If etcd loses its data, a member that knows the state writes it again.
* An outage of etcd, however long, makes no member count as dead because it could not send heartbeats.
* Each run has keys of its own. SWELL_RUN_ID (Swell sets it to the job's uid) is part of them, so a job that is
  submitted again under the same name does not find the closed rendezvous of the earlier one.
"""

import base64
import json
import os
import pickle
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone

from torch.distributed import Store
from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousStateError,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, create_handler

NAME = "swell-etcd"
_PORT = 2379
_STATE_SECONDS = 7200
_ANSWER_SECONDS = 10
_CONNECT_SECONDS = 60
_POLL_SECONDS = 0.05
_COMPARE_FAILED = (101, 105)  # etcd: the index differs, or the key exists already
_NOT_FOUND = 100


def register():
    """Makes NAME a rendezvous back end of torch."""
    rendezvous_handler_registry.register(NAME, _create)


def _create(parameters):
    host, _, port = parameters.endpoint.rpartition(":")
    if not host or not port.isdigit():
        host, port = parameters.endpoint, _PORT
    keys = Keys(f"{parameters.get('protocol', 'http')}://{host}:{port}", parameters.run_id)
    keys.connect(_CONNECT_SECONDS)
    return create_handler(EtcdStore(keys), EtcdBackend(keys), parameters)


class Keys:
    """The keys of one run below /v2/keys/swell/rendezvous."""

    def __init__(self, url, run_id, run=None):
        run = os.environ.get("SWELL_RUN_ID", "") if run is None else run
        name = "-".join(part for part in (run_id, run) if part)
        self._base = f"{url}/v2/keys/swell/rendezvous/{urllib.parse.quote(name, safe='')}"
        self._url = url

    def connect(self, seconds):
        """Waits until etcd answers. It may start after the job if one manifest has both."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(f"{self._url}/version", timeout=_ANSWER_SECONDS):
                    return
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise RendezvousConnectionError(f"no etcd answers at {self._url}: {error}") from error
            time.sleep(0.5)

    def get(self, key):
        """(value, index), or None if there is no such key."""
        return self._call("GET", key)

    def put(self, key, value, seconds=None, index=None, fresh=False):
        """Writes the key. Returns its new index, or None if the comparison failed.

        `seconds`: how long the key lives. `index`: the index that the key must have. `fresh`: the key must not exist.
        """
        form = {"value": base64.b64encode(value).decode()}
        if seconds:
            form["ttl"] = str(seconds)
        if index is not None:
            form["prevIndex"] = str(index)
        if fresh:
            form["prevExist"] = "false"
        answer = self._call("PUT", key, urllib.parse.urlencode(form).encode())
        return answer and answer[1]

    def _call(self, method, key, body=None):
        request = urllib.request.Request(f"{self._base}/{key}", data=body, method=method)
        try:
            try:
                with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
                    content = json.load(answer)
            except urllib.error.HTTPError as refusal:
                with refusal:
                    content = json.load(refusal)
                if content.get("errorCode") in (_NOT_FOUND, *_COMPARE_FAILED):
                    return None
                raise RendezvousConnectionError(f"etcd at {self._url}: {content.get('message')}") from refusal
            node = content["node"]
            return base64.b64decode(node.get("value", "")), node["modifiedIndex"]
        except (OSError, ValueError) as error:
            raise RendezvousConnectionError(f"etcd at {self._url} does not answer: {error}") from error
        except (KeyError, TypeError) as error:
            raise RendezvousStateError(f"etcd at {self._url}: {key} has an unexpected value") from error


class EtcdBackend(RendezvousBackend):
    """The state of the rendezvous, in one key."""

    def __init__(self, keys):
        self._keys = keys
        self._known = None
        self._had_outage = False

    @property
    def name(self):
        return NAME

    def get_state(self):
        found = self._call(self._keys.get, "state")
        if self._known is not None and (found is None or self._had_outage):
            # Several members may do this at the same time. The first one succeeds.
            known, index = found or (self._known, None)
            self._put(_alive_now(known), index)
            found = self._call(self._keys.get, "state")
            self._had_outage = False
        if found is not None:
            self._known = found[0]
        return found

    def _put(self, state, index):
        return self._call(self._keys.put, "state", state, _STATE_SECONDS, index, fresh=index is None)

    def _call(self, call, *arguments, **named):
        try:
            return call(*arguments, **named)
        except RendezvousConnectionError:
            self._had_outage = True
            raise

    def set_state(self, state, token=None):
        if token is None or isinstance(token, int):
            state = _alive_now(state) if self._had_outage else state
            index = self._put(state, token)
            if index is not None:
                self._known, self._had_outage = state, False
                return state, index, True
        known = self.get_state()
        return known and (*known, False)


class EtcdStore(Store):
    """The store in which the members of a group exchange values."""

    def __init__(self, keys):
        super().__init__()
        self._keys = keys

    def set(self, key, value):
        self._keys.put(_path(key), _bytes(value), _STATE_SECONDS)

    def get(self, key):
        return self._await([key], None)[0]

    def add(self, key, amount):
        while True:
            known = self._keys.get(_path(key))
            value = (int(known[0]) if known else 0) + amount
            text = str(value).encode()
            index = self._keys.put(_path(key), text, _STATE_SECONDS, known and known[1], fresh=known is None)
            if index is not None:
                return value

    def wait(self, keys, override_timeout=None):
        self._await(keys, override_timeout)

    def check(self, keys):
        return all(self._keys.get(_path(key)) is not None for key in keys)

    def _await(self, keys, override_timeout):
        timeout = override_timeout or self.timeout or timedelta(minutes=5)
        deadline = time.monotonic() + timeout.total_seconds()
        values = []
        for key in keys:
            while True:
                known = self._keys.get(_path(key))
                if known is not None:
                    values.append(known[0])
                    break
                if time.monotonic() > deadline:
                    raise LookupError(f"no member has set {key} within {timeout}")
                time.sleep(_POLL_SECONDS)
        return values


def _alive_now(state):
    """The state with a heartbeat of now for each member: during the outage none could send one."""
    content = pickle.loads(state)
    now = datetime.now(timezone.utc)
    # UTC in any case, but torch 1.13 has times without a zone.
    heartbeats = {node: now.replace(tzinfo=last.tzinfo) for node, last in content.last_heartbeats.items()}
    content.last_heartbeats = heartbeats
    return pickle.dumps(content)


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def _path(key):
    return "store/" + base64.urlsafe_b64encode(_bytes(key)).decode()
