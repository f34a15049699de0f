"""Cases and steps: what a file under cases/ is made of, and how an answer is held against it.

    CASES = [
        Case('configmap-created-twice',
             post('configmaps', {'metadata': {'name': 'a'}}, 201),
             post('configmaps', {'metadata': {'name': 'a'}}, 409,
                  failure('AlreadyExists', 'configmaps "a" already exists'))),
    ]

A path without a leading slash is of core/v1 in the case's own namespace. In paths, bodies and
expectations `$ns` is that namespace, `$run` a word that no other case has, and `$name` what a step
before saved. An expected object names the fields that count; lists are compared whole.
"""

import re
from dataclasses import dataclass, field


class Absent:
    def __repr__(self):
        return 'ABSENT'


class Present:
    def __repr__(self):
        return 'PRESENT'


class Pattern:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f'Pattern({self.text!r})'


class Having:
    """A list that has these items, in any order and among others."""

    def __init__(self, *items):
        self.items = items

    def __repr__(self):
        return f'Having{self.items!r}'


ABSENT, PRESENT = Absent(), Present()


@dataclass
class Step:
    method: str
    path: str
    body: object = None
    status: int = 200
    expect: object = None
    content_type: str = 'application/json'
    headers: dict = field(default_factory=dict)
    save: dict = field(default_factory=dict)
    anonymous: bool = False
    text: str = ''           # a pattern that the body's text contains
    until: bool = False      # ask again until it holds or the deadline is over
    events: list = None      # of a watch: what its lines say, in order
    warnings: list = None


@dataclass
class Case:
    name: str
    steps: list
    accounts: bool = False  # pods are made: wait for the namespace's service account
    since: int = 0          # 1.since is the first Kubernetes that it holds for

    def __init__(self, name, *steps, accounts=False):
        self.name, self.steps, self.accounts = name, list(steps), accounts


def get(path, status=200, expect=None, **more):
    return Step('GET', path, None, status, expect, **more)


def post(path, body, status=201, expect=None, **more):
    return Step('POST', path, body, status, expect, **more)


def put(path, body, status=200, expect=None, **more):
    return Step('PUT', path, body, status, expect, **more)


def delete(path, status=200, expect=None, body=None, **more):
    return Step('DELETE', path, body, status, expect, **more)


PATCH_TYPES = {
    'json': 'application/json-patch+json',
    'merge': 'application/merge-patch+json',
    'strategic': 'application/strategic-merge-patch+json',
    'apply': 'application/apply-patch+yaml',
}


def patch(kind, path, body, status=200, expect=None, **more):
    return Step('PATCH', path, body, status, expect, content_type=PATCH_TYPES[kind], **more)


def watch(path, *events):
    return Step('GET', path, events=list(events))


def eventually(step):
    step.until = True
    return step


def failure(reason, message=None, code=None, **details):
    """A metav1.Status."""
    out = {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'reason': reason}
    if message is not None:
        out['message'] = message
    if code is not None:
        out['code'] = code
    if details:
        out['details'] = details
    return out


def differences(expected, got, path='', missing=False):
    """What differs, a line each."""
    where = path or '(the answer)'
    if isinstance(expected, Absent):
        return [] if missing else [f'{where}: should be absent, is {got!r}']
    if missing:
        return [f'{where}: is missing, should be {expected!r}']
    if isinstance(expected, Present):
        return []
    if isinstance(expected, Pattern):
        if isinstance(got, str) and re.search(expected.text, got):
            return []
        return [f'{where}: {got!r} does not match {expected.text!r}']
    if isinstance(expected, Having):
        return _missing_items(expected, got, where)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return [f'{where}: is {got!r}, should be an object']
        out = []
        for key, value in expected.items():
            out += differences(value, got.get(key), f'{path}.{key}'.lstrip('.'), key not in got)
        return out
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return [f'{where}: is {got!r}, should be {expected!r}']
        out = []
        for i, (want, have) in enumerate(zip(expected, got)):
            out += differences(want, have, f'{path}[{i}]')
        return out
    same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return [] if same else [f'{where}: is {got!r}, should be {expected!r}']


def _missing_items(expected, got, where):
    if not isinstance(got, list):
        return [f'{where}: is {got!r}, should be a list']
    return [f'{where}: has no item {item!r}' for item in expected.items
            if not any(not differences(item, have) for have in got)]


def substitute(value, words):
    if isinstance(value, str):
        return re.sub(r'\$([a-z][a-z0-9]*)\b',
                      lambda found: str(words.get(found.group(1), found.group(0))), value)
    if isinstance(value, dict):
        return {substitute(k, words): substitute(v, words) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(item, words) for item in value]
    if isinstance(value, Pattern):
        return Pattern(substitute(value.text, words))
    if isinstance(value, Having):
        return Having(*[substitute(item, words) for item in value.items])
    return value
