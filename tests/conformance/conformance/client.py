"""A small HTTP client for one Kubernetes server, as its kubeconfig describes it."""

import base64
import functools
import http.client
import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

TIMEOUT_S = 120


class Answer:
    """What the server said: status, headers (names in lower case), body as bytes."""

    def __init__(self, status, headers, body, warnings=()):
        self.status = status
        self.headers = headers
        self.body = body
        self.warnings = list(warnings)

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode('utf-8', 'replace')


def load_kubeconfig(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if not text.lstrip().startswith('{'):
        text = subprocess.run(['kubectl', 'config', 'view', '--raw', '-o', 'json', '--kubeconfig',
                               path], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def _named(items, name):
    return next(item for item in items if item['name'] == name)


class Server:
    """Thread-safe: each thread keeps a connection of its own."""

    def __init__(self, kubeconfig):
        config = load_kubeconfig(kubeconfig)
        context = _named(config['contexts'], config['current-context'])['context']
        cluster = _named(config['clusters'], context['cluster'])['cluster']
        self.config = config
        self.user = _named(config['users'], context['user'])['user']
        self.url = cluster['server']
        split = urllib.parse.urlsplit(self.url)
        self.host, self.port = split.hostname, split.port
        self.directory = tempfile.TemporaryDirectory(prefix='conformance-')
        authority = self._material(cluster, 'certificate-authority', 'ca.crt')
        self._anonymous = ssl.create_default_context(cafile=authority)
        self._admin = ssl.create_default_context(cafile=authority)
        certificate = self._material(self.user, 'client-certificate', 'client.crt')
        if certificate:
            key = self._material(self.user, 'client-key', 'client.key')
            self._admin.load_cert_chain(certificate, key)
        self._local = threading.local()

    def _material(self, where, field, name):
        if f'{field}-data' in where:
            path = os.path.join(self.directory.name, name)
            with open(path, 'wb') as file:
                file.write(base64.b64decode(where[f'{field}-data']))
            return path
        return where.get(field)

    @functools.cached_property
    def version(self):
        return self.send('GET', '/version').json()

    def minor(self):
        """37 for Kubernetes 1.37."""
        return int(re.match(r'\d+', self.version['minor']).group())

    def connect(self, anonymous=False, timeout=TIMEOUT_S):
        context = self._anonymous if anonymous else self._admin
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)

    def _headers(self, headers, anonymous):
        out = {'Accept': 'application/json'}
        if not anonymous and 'token' in self.user:
            out['Authorization'] = 'Bearer ' + self.user['token']
        out.update(headers or {})
        return out

    def send(self, method, path, body=None, headers=None, anonymous=False):
        """Sends one request; a kept connection that the server closed meanwhile is opened anew."""
        kept = f'connection{int(anonymous)}'
        for attempt in (1, 2):
            connection = getattr(self._local, kept, None)
            fresh = connection is None
            if fresh:
                connection = self.connect(anonymous)
                setattr(self._local, kept, connection)
            try:
                connection.request(method, path, body, self._headers(headers, anonymous))
                response = connection.getresponse()
                data = response.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                setattr(self._local, kept, None)
                if fresh or attempt == 2:
                    raise
                continue
            if response.will_close:
                connection.close()
                setattr(self._local, kept, None)
            warnings = response.headers.get_all('Warning') or []
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, data,
                          warnings)
        raise AssertionError('unreachable')

    def stream(self, path, headers=None):
        """Opens a watch; returns its connection and response, whose lines are the events."""
        connection = self.connect()
        connection.request('GET', path, headers=self._headers(headers, False))
        return connection, connection.getresponse()
