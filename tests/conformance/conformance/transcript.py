"""kubectl sessions, as one would read them on a terminal; the files under cases/kubectl.

    == created-twice
    $ kubectl create configmap a
    configmap/a created
    $ kubectl create configmap a
    Error from server (AlreadyExists): configmaps "a" already exists
    [1]

A case has a namespace and a directory of its own. `> ` continues a command, `$~ ` repeats it until it
says what it should, `[1]` is the exit status when it is not 0. `@1.32` starts what kubectl from that
version on says where versions say different things, and `@server-1.37` what every kubectl says of
Kubernetes from that version on. In outputs, what varies between runs is a word
in angle brackets (`<age>`), runs of spaces are three, and a line `...` stands for any lines. In faults
their field and kind count, and not their words. After a case's name, `pods` says that it makes pods, and
`since-1.22` or `until-1.24` which Kubernetes it holds for.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from .case import LAST, counted

DEADLINE_S = 120
PAUSE_S = 0.2

_VARIABLE = [
    (re.compile(r'\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b'), '<uid>'),
    (re.compile(r'\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z'), '<time>'),
    (re.compile(r'\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}'), '<time>'),
    (re.compile(r'(?<![\w.-])(\d+d)?(\d+h)?(\d+m)?\d+[smhd](?![\w.-])'), '<age>'),
    (re.compile(r'\bv\d+\.\d+\.\d+(\+\w+)?\b'), '<version>'),
    (re.compile(r'(resourceVersion"?: )"\d+"'), r'\1<rv>'),
    (re.compile(r'\b10\.\d+\.\d+\.\d+\b'), '<ip>'),
    (re.compile(r'-(?=[a-f]*[0-9bcdf-hj-np-tv-z])[0-9b-df-hj-np-tv-z]{8,10}-[b-df-hj-np-tv-z2-9]{5}\b'),
     '-<hash>-<gen>'),
    (re.compile(r'(?<=-<hash>)-[b-df-hj-np-tv-z2-9]{5}\b'), '-<gen>'),
    (re.compile(r'[ \t]{2,}'), '   '),
]


@dataclass
class Command:
    text: str
    until: bool = False
    outputs: dict = field(default_factory=dict)  # by kubectl's version; (0, 0): any
    newer: dict = field(default_factory=dict)  # by the server's minor version: what all say from it on


@dataclass
class Transcript:
    name: str
    commands: list
    accounts: bool = False
    kubectl: object = None
    since: int = 0  # Kubernetes' minor version, and the last one that it holds for
    until: int = LAST


class Kubectl:
    def __init__(self, path):
        self.path = os.path.realpath(path)
        said = subprocess.run([path, 'version', '--client', '-o', 'json'], check=True,
                              capture_output=True, text=True).stdout
        version = json.loads(said)['clientVersion']
        self.version = (int(version['major']), int(version['minor'].rstrip('+')))
        self.home = tempfile.TemporaryDirectory(prefix='conformance-')
        os.makedirs(f'{self.home.name}/bin')
        os.symlink(self.path, f'{self.home.name}/bin/kubectl')

    def label(self):
        return f'{self.version[0]}.{self.version[1]}'


def find_kubectls():
    """Those that KUBECTLS names (paths with colons between them), else the one on PATH and the newest that was built
    for the tests on Kubernetes."""
    if 'KUBECTLS' in os.environ:
        return [Kubectl(path) for path in os.environ['KUBECTLS'].split(':')]
    cache = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache')
    built = sorted((cache / 'swell').glob('kubernetes-*/bin/kubectl'))
    return [Kubectl(path) for path in ['kubectl', *map(str, built[-1:])]]


def _version(line):
    found = re.fullmatch(r'@(\d+)\.(\d+)', line)
    return (int(found[1]), int(found[2])) if found else None


def _server(line):
    found = re.fullmatch(r'@server-1\.(\d+)', line)
    return int(found[1]) if found else None


def _header(words):
    out = Transcript(words[0], [])
    for word in words[1:]:
        bound = re.fullmatch(r'(since|until)-1\.(\d+)', word)
        if bound:
            setattr(out, bound[1], int(bound[2]))
        elif word == 'pods':
            out.accounts = True
        else:
            raise ValueError(f'{words[0]}: no case is {word!r}')
    return out


def parse(text):
    """The transcripts of a file's text."""
    out, lines = [], None
    for line in text.splitlines():
        if line.startswith('== '):
            out.append(_header(line.split()[1:]))
            lines = None
        elif line.startswith(('$ ', '$~ ')) and out:
            until, command = line.startswith('$~'), line.split(' ', 1)[1]
            lines = []
            out[-1].commands.append(Command(command, until, {(0, 0): lines}))
        elif lines is not None and line.startswith('> ') and not any(lines):
            out[-1].commands[-1].text += '\n' + line[2:]
        elif lines is not None and _version(line):
            outputs = out[-1].commands[-1].outputs
            outputs.pop((0, 0), None)
            lines = outputs.setdefault(_version(line), [])
        elif lines is not None and _server(line):
            lines = out[-1].commands[-1].newer.setdefault(_server(line), [])
        elif lines is not None:
            lines.append(line)
    for transcript in out:
        for command in transcript.commands:
            for said in (*command.outputs.values(), *command.newer.values()):
                while said and not said[-1]:
                    said.pop()
    return out


def render(transcripts):
    out = []
    for transcript in transcripts:
        out.append(f'== {transcript.name}' + (' pods' if transcript.accounts else '') +
                   (f' since-1.{transcript.since}' if transcript.since else '') +
                   (f' until-1.{transcript.until}' if transcript.until != LAST else ''))
        for command in transcript.commands:
            first, *more = command.text.split('\n')
            out.append(f'{"$~" if command.until else "$"} {first}')
            out += [f'> {line}' for line in more]
            for version, lines in sorted(command.outputs.items()):
                out += ([f'@{version[0]}.{version[1]}'] if version != (0, 0) else []) + lines
            for minor, lines in sorted(command.newer.items()):
                out += [f'@server-1.{minor}', *lines]
        out.append('')
    return '\n'.join(out)


def expected_of(command, version, minor):
    """What kubectl of this version should say of a server of 1.`minor`: the newest that is not newer, else the
    oldest."""
    of_server = [one for one in command.newer if one <= minor]
    if of_server:
        return command.newer[max(of_server)]
    known = sorted(command.outputs)
    fitting = [v for v in known if v <= version]
    return command.outputs[fitting[-1] if fitting else known[0]]


def lines_match(expected, got):
    if not expected:
        return not got
    if expected[0] == '...':
        return any(lines_match(expected[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and counted(expected[0]) == counted(got[0]) and lines_match(expected[1:], got[1:])


class Terminal:
    """Where the commands of one case are typed."""

    def __init__(self, server, kubectl, namespace):
        self.server, self.kubectl, self.namespace = server, kubectl, namespace
        self.minor = server.minor()
        self.directory = tempfile.TemporaryDirectory(prefix='conformance-')
        config = json.loads(json.dumps(server.config))
        for context in config['contexts']:
            context['context']['namespace'] = namespace
        self.kubeconfig = os.path.join(kubectl.home.name, f'{namespace}.json')
        with open(self.kubeconfig, 'w', encoding='utf-8') as file:
            json.dump(config, file)
        self.environment = {
            'PATH': f'{kubectl.home.name}/bin:' + os.environ['PATH'], 'HOME': kubectl.home.name,
            'KUBECONFIG': self.kubeconfig, 'ns': namespace, 'TZ': 'UTC', 'LC_ALL': 'C.UTF-8'}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(self.kubeconfig)
        self.directory.cleanup()

    def type(self, command):
        """The lines that it says, made comparable."""
        try:
            done = subprocess.run(['/bin/sh', '-c', command], cwd=self.directory.name, text=True,
                                  env=self.environment, stdin=subprocess.DEVNULL, errors='replace',
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_S)
            text, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired:
            text, status = 'does not end', 124
        text = text.replace(self.namespace, '$ns').replace(self.server.url, '<server>')
        text = text.replace(self.directory.name, '<dir>')
        for pattern, word in _VARIABLE:
            text = pattern.sub(word, text)
        lines = [line.rstrip() for line in text.split('\n')]
        while lines and not lines[-1]:
            lines.pop()
        return lines + ([f'[{status}]'] if status else [])

    def problem(self, command):
        end = time.monotonic() + (DEADLINE_S if command.until else 0)
        expected = expected_of(command, self.kubectl.version, self.minor)
        while True:
            got = self.type(command.text)
            if lines_match(expected, got):
                return None
            if time.monotonic() >= end:
                return '\n      '.join([f'$ {command.text}', 'says:', *got, 'should say:', *expected])
            time.sleep(PAUSE_S)
