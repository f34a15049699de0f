"""Cases and steps: what a file under cases/ is made of, and how an answer is held against it.

    CASES = [
        Case('configmap-created-twice',
             post('configmaps', {'metadata': {'name': 'a'}}, 201),
             post('configmaps', {'metadata': {'name': 'a'}}, 409,
                  failure('AlreadyExists', 'configmaps "a" already exists'))),
        Case('configmap-with-a-bad-name',
             post('configmaps', {'metadata': {'name': 'A'}}, 422, invalid('metadata.name: Invalid value'))),
    ]

A path without a leading slash is of core/v1 in the case's own namespace. In paths, bodies and
expectations `$ns` is that namespace, `$run` a word that no other case has, and `$name` what a step
before saved. An expected object names the fields that count; lists are compared whole.

A fault is written as the server tells it, "field: kind: value and words". Its field, its kind and the
reason of its cause count; value and words are for people, and each version chooses its own.
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


class Worded:
    """A text of which the faults count, each with its field and its kind, and not their words."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f'Worded({self.text!r})'


class Each:
    """A list of exactly these items, in any order; what it has twice counts once."""

    def __init__(self, *items):
        self.items = items

    def __repr__(self):
        return f'Each{self.items!r}'


class Having:
    """A list that has these items, in any order and among others."""

    def __init__(self, *items):
        self.items = items

    def __repr__(self):
        return f'Having{self.items!r}'


ABSENT, PRESENT = Absent(), Present()

# What Kubernetes calls the kinds of faults in messages, and the reasons in their causes.
REASONS = {
    'Required value': 'FieldValueRequired', 'Invalid value': 'FieldValueInvalid',
    'Duplicate value': 'FieldValueDuplicate', 'Unsupported value': 'FieldValueNotSupported',
    'Not found': 'FieldValueNotFound', 'Forbidden': 'FieldValueForbidden', 'Too long': 'FieldValueTooLong',
    'Too many': 'FieldValueTooMany', 'Too few': 'FieldValueTooFew', 'Too short': 'FieldValueTooShort',
    'Internal error': 'InternalError'}
_FAULT = re.compile(r'(?:^|([^\s:]+): )(' + '|'.join(REASONS) + r')\b')
_CAUSE = re.compile(r'(.*?): (' + '|'.join(REASONS) + r')\b')


LAST = 1000  # a minor version that is yet to come


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
    since: int = 0          # 1.since is the first Kubernetes that it holds for, and 1.until the last;
    until: int = LAST       # the embedded server is asked all

    def __init__(self, name, *steps, accounts=False, since=0, until=LAST):
        self.name, self.steps, self.accounts = name, list(steps), accounts
        self.since, self.until = since, until


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
        out['message'] = Worded(message) if isinstance(message, str) else message
    if code is not None:
        out['code'] = code
    if details:
        out['details'] = details
    return out


def cause(fault, reason=None):
    """This fault as an item of details.causes. Its reason follows from its kind, unless it is given."""
    found = _CAUSE.match(fault)
    if not found:
        raise ValueError(f'{fault!r} is no "field: kind"')
    return {'field': found[1], 'reason': reason or REASONS[found[2]], 'message': Worded(fault[found.start(2):])}


def mistyped(fault):
    """A value of another type or format: its kind reads as that of any wrong value, and its reason says more."""
    return cause(fault, 'FieldValueTypeInvalid')


def invalid(*faults, **details):
    """A metav1.Status that tells exactly these faults, in any order; those that are not texts are causes already."""
    causes = [cause(fault) if isinstance(fault, str) else fault for fault in faults]
    return failure('Invalid', None, 422, causes=Each(*causes), **details)


def counted(text):
    """What counts: the text before the faults, and these by field and kind; without faults all of it."""
    faults = list(_FAULT.finditer(text))
    if not faults:
        return text
    return text[:faults[0].start()] + '; '.join(f'{fault[1] or ""}: {fault[2]}' for fault in faults)


def differences(expected, got, path='', missing=False, words=None):
    """What differs, a line each. What is worded otherwise goes to the list `words`, when there is one."""
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
    if isinstance(expected, Worded):
        return _other_words(expected.text, got, where, words)
    if isinstance(expected, Having):
        return _missing_items(expected, got, where)
    if isinstance(expected, Each):
        return _other_items(expected, got, where, words)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return [f'{where}: is {got!r}, should be an object']
        out = []
        for key, value in expected.items():
            out += differences(value, got.get(key), f'{path}.{key}'.lstrip('.'), key not in got, words)
        return out
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return [f'{where}: is {got!r}, should be {expected!r}']
        out = []
        for i, (want, have) in enumerate(zip(expected, got)):
            out += differences(want, have, f'{path}[{i}]', False, words)
        return out
    same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return [] if same else [f'{where}: is {got!r}, should be {expected!r}']


def _other_words(expected, got, where, words):
    if not isinstance(got, str) or counted(got) != counted(expected):
        return [f'{where}: is {got!r}, should be {expected!r}']
    if words is not None and not got.startswith(expected):
        words.append(f'{where}: {got!r} instead of {expected!r}')
    return []


def _other_items(expected, got, where, words):
    if not isinstance(got, list):
        return [f'{where}: is {got!r}, should be a list']
    left, out = [], []
    for have in got:  # older servers tell some faults twice
        if have not in left:
            left.append(have)
    for item in expected.items:
        # Where two agree in the words that count, the one with the same words.
        fitting = sorted((have for have in left if not differences(item, have)),
                         key=lambda have: _count_other_words(item, have))
        if fitting:
            differences(item, fitting[0], f'{where}[]', False, words)
            left.remove(fitting[0])
        else:
            out.append(f'{where}: has no item {item!r}')
    return out + [f'{where}: has {item!r}, too' for item in left]


def _count_other_words(expected, got):
    words = []
    differences(expected, got, words=words)
    return len(words)


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
    if isinstance(value, (Pattern, Worded)):
        return type(value)(substitute(value.text, words))
    if isinstance(value, (Having, Each)):
        return type(value)(*[substitute(item, words) for item in value.items])
    return value
