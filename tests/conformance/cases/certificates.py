"""Certificates that are asked for: who may approve, what is issued, what nobody may ask for; and who serves what."""

import base64

from cases.access import RBAC, as_user
from conformance.case import ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure, get, post, put

REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
ONE = REQUESTS + '/r-$run'
SIGNER = 'kubernetes.io/kube-apiserver-client'
# Requests of jane in the group team, and of jane among the masters.
JANE = """-----BEGIN CERTIFICATE REQUEST-----
MIHZMIGAAgEAMB4xDTALBgNVBAoMBHRlYW0xDTALBgNVBAMMBGphbmUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARBRo7dHjetYIMvZbD3q/RuvJSBg0bJwYdxj11D
mXWtM/q8XjVNMS7JnKlSmB4xdjdh7Ql2Is3p5PWLI3/jtc1UoAAwCgYIKoZIzj0E
AwIDSAAwRQIhAIK15aULOWbmHUyKtUG7g3E9gxHt87pngYNBb30TuxE6AiAXXF7s
2Ou4y7y3MznYgLsLPjsIS0V+vGaKjfOUVFrEEA==
-----END CERTIFICATE REQUEST-----
"""
MASTER = """-----BEGIN CERTIFICATE REQUEST-----
MIHkMIGKAgEAMCgxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARq
YW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQwbBLwhLoqcZVMzqQeCDva0q
Z0WjeB+xwK7br2bwUSXd48hgoOikRkPJyUr9bkZQSaQr+Vp60Uh9iLiB4VjyjqAA
MAoGCCqGSM49BAMCA0kAMEYCIQCAEfsW1OEnSVTkUDSKUvUIrtaPQbEhqYpv3Xp/
vhF7TgIhAIzE7gPaGzb6rpQN9Sj+IPkJ9yRuqr2JLkYzUyrkJyu1
-----END CERTIFICATE REQUEST-----
"""
# A PEM certificate, in base64.
CERTIFICATE = Pattern('LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t.*')


def request(pem=JANE, usages=('digital signature', 'client auth'), signer=SIGNER):
    return {'metadata': {'name': 'r-$run'},
            'spec': {'request': base64.b64encode(pem.encode()).decode(), 'signerName': signer,
                     'usages': list(usages)}}


def decided(kind, **more):
    return {**request(**more), 'status': {'conditions': [
        {'type': kind, 'status': 'True', 'reason': 'Test', 'message': 'because'}]}}


CASES = [
    Case('approved-is-issued', post(REQUESTS, request(), 201, {'spec': {'username': PRESENT}, 'status': {}}),
         get(ONE, 200, {'status': {'certificate': ABSENT}}),
         put(ONE + '/approval', decided('Approved'), 200,
             {'status': {'conditions': [{'type': 'Approved', 'status': 'True', 'lastUpdateTime': PRESENT,
                                         'lastTransitionTime': PRESENT}]}}),
         eventually(get(ONE, 200, {'status': {'certificate': CERTIFICATE}})), delete(ONE)),
    Case('denied-is-denied', post(REQUESTS, request(), 201),
         put(ONE + '/approval', decided('Denied'), 200),
         put(ONE + '/approval', {**decided('Denied'), 'status': {'conditions': [
             *decided('Denied')['status']['conditions'], *decided('Approved')['status']['conditions']]}}, 422,
             failure('Invalid')),
         get(ONE, 200, {'status': {'certificate': ABSENT}}), delete(ONE)),
    Case('usages-that-are-no-clients', post(REQUESTS, request(usages=('server auth', 'client auth')), 201),
         put(ONE + '/approval', decided('Approved', usages=('server auth', 'client auth')), 200),
         eventually(get(ONE, 200, {'status': {'certificate': ABSENT, 'conditions': Having(
             {'type': 'Failed', 'status': 'True', 'reason': 'SignerValidationFailure',
              'message': 'invalid usage for client certificate: server auth'})}})), delete(ONE)),
    Case('no-usage-of-clients', post(REQUESTS, request(usages=('digital signature',)), 201),
         put(ONE + '/approval', decided('Approved', usages=('digital signature',)), 200),
         eventually(get(ONE, 200, {'status': {'conditions': Having(
             {'type': 'Failed', 'reason': 'SignerValidationFailure',
              'message': 'missing required usage for client certificate: client auth'})}})), delete(ONE)),
    Case('nobody-becomes-a-master', post(REQUESTS, request(MASTER), 403, failure(
        'Forbidden', 'certificatesigningrequests.certificates.k8s.io "r-$run" is forbidden: use of '
        f'{SIGNER} signer with system:masters group is not allowed')),
        post(REQUESTS, request(MASTER, signer='example.com/own'), 201), delete(ONE)),
    Case('what-is-asked-for-stays', post(REQUESTS, request(), 201),
         put(ONE + '/approval', decided('Approved', pem=MASTER), 200,
             {'spec': {'request': request()['spec']['request']}}),
         delete(ONE)),
    Case('who-may-approve', post(REQUESTS, request(), 201),
         post(RBAC + 'clusterroles', {'metadata': {'name': 'approver-$run'}, 'rules': [
             {'apiGroups': ['certificates.k8s.io'], 'resources': ['certificatesigningrequests/approval'],
              'verbs': ['update']}]}, 201),
         post(RBAC + 'clusterrolebindings', {
             'metadata': {'name': 'approver-$run'},
             'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'approver-$run'},
             'subjects': [{'kind': 'User', 'name': 'jane-$run', 'apiGroup': 'rbac.authorization.k8s.io'}]}, 201),
         eventually(as_user(put(ONE + '/approval', decided('Approved'), 403, failure(
             'Forbidden', 'certificatesigningrequests.certificates.k8s.io "r-$run" is forbidden: user not permitted '
             f'to approve requests with signerName "{SIGNER}"')))),
         put(RBAC + 'clusterroles/approver-$run', {'metadata': {'name': 'approver-$run'}, 'rules': [
             {'apiGroups': ['certificates.k8s.io'], 'resources': ['certificatesigningrequests/approval'],
              'verbs': ['update']},
             {'apiGroups': ['certificates.k8s.io'], 'resources': ['signers'], 'resourceNames': ['kubernetes.io/*'],
              'verbs': ['approve']}]}, 200),
         eventually(as_user(put(ONE + '/approval', decided('Approved'), 200))),
         delete(RBAC + 'clusterrolebindings/approver-$run'), delete(RBAC + 'clusterroles/approver-$run'), delete(ONE)),
    Case('own-groups-are-served-locally',
         get('/apis/apiregistration.k8s.io/v1/apiservices/v1.apps', 200, {
             'metadata': {'creationTimestamp': PRESENT,
                          'labels': {'kube-aggregator.kubernetes.io/automanaged': 'onstart'}},
             'spec': {'group': 'apps', 'version': 'v1', 'service': ABSENT, 'versionPriority': 15},
             'status': {'conditions': [{'type': 'Available', 'status': 'True', 'reason': 'Local',
                                        'lastTransitionTime': PRESENT}]}}),
         get('/apis/apiregistration.k8s.io/v1/apiservices/v1.apiregistration.k8s.io', 404)),
]
