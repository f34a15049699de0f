"""Runs cases against one server: a namespace each, several at once."""

import itertools
import json
import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor

from .case import differences, substitute
from .transcript import Terminal, Transcript

DEADLINE_S = 240  # of what happens in its own time
PAUSE_S = 0.05


class Failed(Exception):
    pass


class Runner:
    def __init__(self, server, threads=4):
        self.server = server
        self.threads = threads
        self.numbers = itertools.count(1)
        self.run = secrets.token_hex(3)
        self.words = []  # what is worded otherwise, a line each
        # Before 1.24 pods are refused until their account has a token.
        self.wait_for_tokens = server.minor() < 24

    def run_all(self, cases, report):
        with ThreadPoolExecutor(self.threads) as pool:
            for case, problem in zip(cases, pool.map(self.run_case, cases)):
                report(case, problem)

    def run_case(self, case):
        """None, or what is wrong."""
        word = f'{self.run}{next(self.numbers)}'
        words = {'ns': f'conf-{word}', 'run': word}
        try:
            self.make_namespace(words['ns'], case.accounts)
            if isinstance(case, Transcript):
                self.run_transcript(case, words['ns'])
            else:
                for number, step in enumerate(case.steps, 1):
                    self.run_step(step, words, number)
                self.words += [f'{case.name}: {line}' for line in words.pop('otherwise', [])]
        except Failed as problem:
            return str(problem)
        except (OSError, ValueError) as problem:
            return f'{type(problem).__name__}: {problem}'
        finally:
            self.remove_namespace(words['ns'])
        return None

    def run_transcript(self, case, namespace):
        with Terminal(self.server, case.kubectl, namespace) as terminal:
            problems = [terminal.problem(command) for command in case.commands]
        if any(problems):
            raise Failed('\n      '.join(problem for problem in problems if problem))

    def make_namespace(self, name, accounts):
        answer = self.server.send('POST', '/api/v1/namespaces',
                                  json.dumps({'metadata': {'name': name}}),
                                  {'Content-Type': 'application/json'})
        if answer.status != 201:
            raise Failed(f'namespace {name}: {answer.status} {answer.text()}')
        end = time.monotonic() + DEADLINE_S
        while not self.is_ready(f'/api/v1/namespaces/{name}', accounts):
            if time.monotonic() > end:
                raise Failed(f'namespace {name} is not ready')
            time.sleep(PAUSE_S)

    def new_namespace(self, accounts):
        name = f'conf-{self.run}{next(self.numbers)}'
        self.make_namespace(name, accounts)
        return name

    def remove_namespace(self, name):
        self.server.send('DELETE', f'/api/v1/namespaces/{name}')

    def is_ready(self, namespace, accounts):
        """Whether what controllers put into every namespace is there, which lists and quotas count."""
        authority = self.server.send('GET', f'{namespace}/configmaps/kube-root-ca.crt')
        return authority.status == 200 and (not accounts or self.account_ready(namespace))

    def account_ready(self, namespace):
        """Whether pods can be made; the server that admits them hears of a new account's token a moment later."""
        if not self.wait_for_tokens:
            return self.server.send('GET', f'{namespace}/serviceaccounts/default').status == 200
        pod = {'metadata': {'name': 'probe'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}
        answer = self.server.send('POST', f'{namespace}/pods?dryRun=All', json.dumps(pod),
                                  {'Content-Type': 'application/json'})
        return answer.status == 201

    def run_step(self, step, words, number):
        end = time.monotonic() + (DEADLINE_S if step.until else 0)
        while True:
            problems, request = self.try_step(step, words)
            if not problems:
                return
            if time.monotonic() >= end:
                raise Failed(f'step {number}: {request}\n      ' + '\n      '.join(problems))
            time.sleep(PAUSE_S)

    def try_step(self, step, words):
        path = substitute(step.path, words)
        if not path.startswith('/'):
            path = f'/api/v1/namespaces/{words["ns"]}/{path}'
        request = f'{step.method} {path}'
        if step.events is not None:
            return self.try_watch(step, path, words), request
        body = substitute(step.body, words)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        headers = {'Content-Type': step.content_type} if body is not None else {}
        headers.update(substitute(step.headers, words))
        answer = self.server.send(step.method, path, body, headers, step.anonymous)
        if body:
            request += f' {str(body)[:300]}'
        return self.check(step, words, answer), request

    def check(self, step, words, answer):
        if answer.status != step.status:
            return [f'status {answer.status}, should be {step.status}: {answer.text()[:600]}']
        out = []
        if step.text and not re.search(substitute(step.text, words), answer.text()):
            out.append(f'{answer.text()[:300]!r} does not match {step.text!r}')
        if step.expect is not None:
            otherwise = []
            out += differences(substitute(step.expect, words), answer.json(), words=otherwise)
            if not out:
                words['otherwise'] = words.get('otherwise', []) + otherwise
        for name, where in step.save.items():
            value = answer.json()
            for key in where.split('.'):
                value = value[int(key)] if isinstance(value, list) else value[key]
            words[name] = value
        if step.warnings is not None:
            texts = [w[w.index('"') + 1:w.rindex('"')].replace('\\"', '"') for w in answer.warnings]
            out += differences(substitute(step.warnings, words), texts, 'warnings')
        return out

    def try_watch(self, step, path, words):
        connection, response = self.server.stream(path)
        try:
            if response.status != 200:
                return [f'status {response.status}: {response.read()[:300]!r}']
            for number, want in enumerate(step.events, 1):
                line = response.readline()
                if not line:
                    return [f'the watch ended before event {number}: {want!r}']
                out = differences(substitute(want, words), json.loads(line), f'event {number}')
                if out:
                    return out
            return []
        finally:
            connection.close()
