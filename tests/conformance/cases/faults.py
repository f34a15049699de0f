"""All faults of an object are told together.

faults.jsonl has more of them, an object a line, with what kube-apiserver says, each "field: message"; `reasons` are
those that the message does not say, by its place.
`../run --record cases/faults.jsonl` writes it anew.
"""

import itertools
import json
from pathlib import Path

from conformance.case import Case, cause, invalid, patch, post

APPS = '/apis/apps/v1/namespaces/$ns/'
BATCH = '/apis/batch/v1/namespaces/$ns/'
NETWORK = '/apis/networking.k8s.io/v1/namespaces/$ns/'
SCALERS = '/apis/autoscaling/v1/namespaces/$ns/horizontalpodautoscalers'
RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/'


def container(**more):
    return {'name': 'c', 'image': 'i', **more}


def template(**spec):
    return {'metadata': {'labels': {'app': 'w'}}, 'spec': {'containers': [container()], **spec}}


def faults(path, kind, body, *told):
    """A post that is refused with exactly these faults."""
    return post(path, {'metadata': {'name': 'w'}, **body}, 422, invalid(*told, name='w', kind=kind))


def scaler(kind, version):
    return {'metadata': {'name': kind.lower()}, 'spec': {
        'scaleTargetRef': {'kind': kind, 'name': 'x', 'apiVersion': version}, 'maxReplicas': 1}}


def pod(*told, **spec):
    return faults('pods', 'Pod', {'spec': spec}, *told)


def cron_job(name, version, **bounds):
    return Case(name, faults(f'/apis/batch/{version}/namespaces/$ns/cronjobs', 'CronJob', {'spec': {
        'schedule': '61 * * * *', 'concurrencyPolicy': 'X', 'startingDeadlineSeconds': -1,
        'successfulJobsHistoryLimit': -1,
        'jobTemplate': {'spec': {'template': template(restartPolicy='Never')}}}},
        'spec.schedule: Invalid value',
        'spec.startingDeadlineSeconds: Invalid value',
        'spec.concurrencyPolicy: Unsupported value',
        'spec.successfulJobsHistoryLimit: Invalid value'), **bounds)


def budget(name, version, **bounds):
    return Case(name, faults(f'/apis/policy/{version}/namespaces/$ns/poddisruptionbudgets',
                             'PodDisruptionBudget', {'spec': {
                                 'minAvailable': '101%', 'selector': {'matchLabels': {'a b': 'c'}}}},
                             'spec.minAvailable: Invalid value',
                             'spec.selector.matchLabels: Invalid value'), **bounds)


CASES = [
    Case('pod-containers', pod(
        'spec.containers[0].name: Invalid value',
        'spec.containers[0].image: Required value',
        'spec.containers[0].env[0].name: Invalid value',
        'spec.containers[0].volumeMounts[0].name: Not found',
        'spec.containers[1].name: Invalid value',
        'spec.containers[1].name: Duplicate value',
        'spec.restartPolicy: Unsupported value',
        restartPolicy='Sometimes', containers=[
            {'name': 'C', 'image': '', 'env': [{'name': '='}],
             'volumeMounts': [{'name': 'none', 'mountPath': '/x'}]},
            {'name': 'C', 'image': 'i'}]), accounts=True),
    Case('pod-container-fields', pod(
        'spec.containers[0].ports[0].containerPort: Required value',
        'spec.containers[0].ports[1].containerPort: Invalid value',
        'spec.containers[0].ports[1].protocol: Unsupported value',
        'spec.containers[0].ports[3].name: Duplicate value',
        'spec.containers[0].imagePullPolicy: Unsupported value',
        containers=[container(imagePullPolicy='x', ports=[
            {'containerPort': 0}, {'containerPort': 70000, 'protocol': 'X'},
            {'containerPort': 2, 'name': 'a'}, {'containerPort': 3, 'name': 'a'}])]),
        accounts=True),
    Case('pod-probes', pod(
        'spec.containers[0].lifecycle.preStop: Required value',
        'spec.containers[0].livenessProbe: Required value',
        'spec.containers[0].startupProbe.periodSeconds: Invalid value',
        'spec.containers[0].startupProbe.successThreshold: Invalid value',
        'spec.containers[0].readinessProbe.exec.command: Required value',
        'spec.containers[0].readinessProbe.httpGet: Forbidden',
        containers=[container(
            livenessProbe={}, lifecycle={'preStop': {}},
            readinessProbe={'exec': {'command': []}, 'httpGet': {'port': 0}},
            startupProbe={'tcpSocket': {'port': 80}, 'periodSeconds': -1,
                          'successThreshold': 3})]), accounts=True),
    Case('pod-environment', pod(
        'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value',
        'spec.containers[0].env[0].valueFrom: Invalid value',
        'spec.containers[0].env[1].valueFrom: Invalid value',
        'spec.containers[0].env[2].valueFrom.configMapKeyRef.key: Invalid value',
        containers=[container(env=[
            {'name': 'A', 'value': 'x', 'valueFrom': {'fieldRef': {'fieldPath': 'spec.x'}}},
            {'name': 'B', 'valueFrom': {}},
            {'name': 'E', 'valueFrom': {'configMapKeyRef': {'name': 'x', 'key': 'a b'}}}])]),
        accounts=True),
    Case('pod-volumes', pod(
        'spec.volumes[0].name: Invalid value',
        'spec.volumes[1].hostPath.path: Required value',
        'spec.volumes[2].hostPath.path: Invalid value',
        'spec.volumes[3].secret.secretName: Required value',
        'spec.volumes[3].secret.defaultMode: Invalid value',
        'spec.volumes[4].persistentVolumeClaim.claimName: Required value',
        'spec.volumes[5].hostPath: Forbidden',
        containers=[container()], volumes=[
            {'name': 'A', 'emptyDir': {}}, {'name': 'b', 'hostPath': {'path': ''}},
            {'name': 'c', 'hostPath': {'path': '/a/../b'}},
            {'name': 'd', 'secret': {'secretName': '', 'defaultMode': 9999}},
            {'name': 'f', 'persistentVolumeClaim': {'claimName': ''}},
            {'name': 'g', 'emptyDir': {}, 'hostPath': {'path': '/'}}]), accounts=True),
    Case('pod-tolerations', pod(
        'spec.tolerations[0].key: Invalid value',
        'spec.tolerations[1].operator: Unsupported value',
        'spec.tolerations[2].effect: Unsupported value',
        'spec.tolerations[3].effect: Invalid value',
        containers=[container()], tolerations=[
            {'key': 'a b'}, {'key': 'a', 'operator': 'X'}, {'key': 'a', 'effect': 'X'},
            {'key': 'a', 'tolerationSeconds': 3}]), accounts=True),
    Case('service', faults('services', 'Service', {'spec': {
        'sessionAffinity': 'Y', 'ports': [
            {'port': 99999, 'targetPort': 'x_y'}, {'port': 1, 'name': 'a'},
            {'port': 1, 'name': 'a'}], 'selector': {'a b': 'c'}}},
        'spec.ports[0].name: Required value',
        'spec.ports[0].port: Invalid value',
        'spec.ports[0].targetPort: Invalid value',
        'spec.ports[2].name: Duplicate value',
        'spec.selector: Invalid value',
        'spec.sessionAffinity: Unsupported value',
        'spec.ports[2]: Duplicate value')),
    Case('deployment', faults(APPS + 'deployments', 'Deployment', {'spec': {}},
                              'spec.selector: Required value',
                              'spec.template.metadata.labels: Invalid value',
                              'spec.template.spec.containers: Required value'),
         faults(APPS + 'deployments', 'Deployment', {'spec': {
             'selector': {'matchLabels': {'app': 'w'}}, 'template': template(),
             'progressDeadlineSeconds': 1, 'minReadySeconds': 5, 'strategy': {
                 'rollingUpdate': {'maxSurge': 'a%', 'maxUnavailable': '101%'}}}},
                'spec.strategy.rollingUpdate.maxSurge: Invalid value',
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value',
                'spec.progressDeadlineSeconds: Invalid value')),
    Case('job', faults(BATCH + 'jobs', 'Job', {'spec': {
        'parallelism': -1, 'backoffLimit': -1, 'template': template(
            restartPolicy='X', containers=[{'name': 'A'}])}},
        'spec.parallelism: Invalid value',
        'spec.backoffLimit: Invalid value',
        'spec.template.spec.containers[0].name: Invalid value',
        'spec.template.spec.containers[0].image: Required value',
        'spec.template.spec.restartPolicy: Unsupported value',
        'spec.template.spec.restartPolicy: Unsupported value'),
        faults(BATCH + 'jobs', 'Job', {'spec': {'template': template()}},
               'spec.template.spec.restartPolicy: Required value')),
    cron_job('cron-job', 'v1', since=21), cron_job('cron-job-of-old', 'v1beta1', until=24),
    Case('claim', faults('persistentvolumeclaims', 'PersistentVolumeClaim', {'spec': {
        'accessModes': ['X'], 'resources': {'requests': {'storage': '-1'}},
        'storageClassName': 'A_', 'volumeMode': 'X'}},
        'spec.accessModes: Unsupported value',
        'spec.resources[storage]: Invalid value',
        'spec.storageClassName: Invalid value',
        'spec.volumeMode: Unsupported value'),
        faults('persistentvolumeclaims', 'PersistentVolumeClaim', {},
               'spec.accessModes: Required value',
               'spec.resources[storage]: Required value')),
    Case('volume', faults('/api/v1/persistentvolumes', 'PersistentVolume', {},
                          'spec.accessModes: Required value', 'spec.capacity: Required value',
                          'spec.capacity: Unsupported value',
                          'spec: Required value'),
         faults('/api/v1/persistentvolumes', 'PersistentVolume', {'spec': {
             'accessModes': ['ReadWriteOnce'], 'capacity': {'storage': '1'},
             'local': {'path': '/x'}}},
                'spec.nodeAffinity: Required value')),
    Case('network-policy', faults(NETWORK + 'networkpolicies', 'NetworkPolicy', {'spec': {
        'podSelector': {}, 'policyTypes': ['X'], 'ingress': [{
            'ports': [{'protocol': 'X', 'port': 0}],
            'from': [{}, {'ipBlock': {'cidr': 'x'}},
                     {'ipBlock': {'cidr': '10.0.0.0/8', 'except': ['11.0.0.0/8']},
                      'podSelector': {}}]}]}},
        'spec.ingress[0].ports[0].protocol: Unsupported value',
        'spec.ingress[0].ports[0].port: Invalid value',
        'spec.ingress[0].from[0]: Required value',
        'spec.ingress[0].from[1].ipBlock.cidr: Invalid value',
        'spec.ingress[0].from[2].ipBlock.except[0]: Invalid value',
        'spec.ingress[0].from[2]: Forbidden',
        'spec.policyTypes[0]: Unsupported value')),
    Case('ingress', faults(NETWORK + 'ingresses', 'Ingress', {'spec': {
        'defaultBackend': {}, 'rules': [
            {'host': '1.2.3.4'}, {'host': 'A_', 'http': {'paths': []}},
            {'http': {'paths': [
                {'path': 'x', 'pathType': 'Prefix',
                 'backend': {'service': {'name': '', 'port': {}}}},
                {'backend': {'service': {'name': 's', 'port': {'number': 80}}}}]}}]}},
        'spec.defaultBackend: Invalid value',
        'spec.rules[0].host: Invalid value',
        'spec.rules[1].host: Invalid value',
        'spec.rules[1].http.paths: Required value',
        'spec.rules[2].http.paths[0].path: Invalid value',
        'spec.rules[2].http.paths[0].backend.service.name: Required value',
        'spec.rules[2].http.paths[0].backend: Required value',
        'spec.rules[2].http.paths[1].pathType: Required value')),
    Case('role', faults(RBAC + 'roles', 'Role', {'rules': [
        {}, {'verbs': ['get'], 'nonResourceURLs': ['/a']}, {'verbs': ['get'], 'apiGroups': ['']}]},
        'rules[0].verbs: Required value',
        'rules[0].apiGroups: Required value',
        'rules[0].resources: Required value',
        'rules[1].nonResourceURLs: Invalid value',
        'rules[2].resources: Required value')),
    Case('role-binding', faults(RBAC + 'rolebindings', 'RoleBinding', {
        'roleRef': {'apiGroup': 'x', 'kind': 'X', 'name': ''},
        'subjects': [{'kind': 'X', 'name': ''}, {'kind': 'User', 'name': 'u', 'apiGroup': 'x'}]},
        'roleRef.apiGroup: Unsupported value',
        'roleRef.kind: Unsupported value',
        'roleRef.name: Required value', 'subjects[0].name: Required value',
        'subjects[0].kind: Unsupported value',
        'subjects[1].apiGroup: Unsupported value')),
    Case('scaler', faults(SCALERS, 'HorizontalPodAutoscaler', {'spec': {}},
                          'spec.maxReplicas: Required value', 'spec.maxReplicas: Invalid value',
                          'spec.scaleTargetRef.kind: Required value',
                          'spec.scaleTargetRef.name: Required value',
                          'spec.scaleTargetRef.apiVersion: Invalid value'), since=37),
    Case('scaler-of-another-kind',
         *[post(SCALERS, scaler(kind, version), status) for kind, version, status in (
             ('ReplicationController', 'v1', 201), ('Pod', 'v1', 422), ('X', 'x.io/v1', 201))],
         post(SCALERS, scaler('Deployment', 'apps/v1'), 201),
         patch('merge', SCALERS + '/deployment', {'spec': {'scaleTargetRef': {'apiVersion': 'v1'}}}, 422, invalid(
             'spec.scaleTargetRef.apiVersion: Invalid value')), since=37),
    budget('budget', 'v1', since=21), budget('budget-of-old', 'v1beta1', until=24),
    Case('config-map', faults('configmaps', 'ConfigMap', {'data': {'a b': 'c'},
                                                          'binaryData': {'y z': 'AA=='}},
                              'data[a b]: Invalid value',
                              'binaryData[y z]: Invalid value'),
         faults('configmaps', 'ConfigMap', {'data': {'a': 'x' * 1048577}},
                '[]: Too long')),
    Case('secret', faults('secrets', 'Secret', {'type': 'kubernetes.io/tls', 'data': {
        'a b': 'AA=='}},
        'data[a b]: Invalid value',
        'data[tls.crt]: Required value', 'data[tls.key]: Required value'),
        faults('secrets', 'Secret', {'type': 'kubernetes.io/dockerconfigjson', 'data': {
            '.dockerconfigjson': 'eA=='}},
               'data[.dockerconfigjson]: Invalid value')),
    Case('node-taints', faults('/api/v1/nodes', 'Node', {'spec': {'taints': [
        {'key': 'a b', 'effect': 'X'}, {'key': 'a', 'effect': 'NoSchedule'},
        {'key': 'a', 'effect': 'NoSchedule'}, {'key': 'a'}]}},
        'metadata.taints[0].key: Invalid value',
        'metadata.taints[0].effect: Unsupported value',
        'metadata.taints[2]: Duplicate value',
        'metadata.taints[3].effect: Required value')),
    Case('storage-class', faults('/apis/storage.k8s.io/v1/storageclasses', 'StorageClass', {
        'provisioner': 'a b', 'reclaimPolicy': 'X', 'volumeBindingMode': 'X'},
        'provisioner: Invalid value',
        'reclaimPolicy: Unsupported value',
        'volumeBindingMode: Unsupported value')),
]


def recorded(line):
    """The case that it belongs to, the versions that this one holds for, and a post that is refused so."""
    told = json.loads(line)
    bounds = {bound: told[bound] for bound in ('since', 'until') if bound in told}
    name = '-'.join(['all', told['name'].split('-')[0], *[f'{bound}-1.{minor}' for bound, minor in bounds.items()]])
    details = {'kind': told['kind']}
    if told['object']:
        details['name'] = told['object']
    causes = {text: cause(text, told.get('reasons', {}).get(str(at))) for at, text in enumerate(told['causes'])}
    step = post(told['path'] + '?dryRun=All', told['body'], 422, invalid(*causes.values(), **details))
    return name, bounds, step


def all_recorded():
    lines = (Path(__file__).parent / 'faults.jsonl').read_text(encoding='utf-8').splitlines()
    found = sorted(map(recorded, lines), key=lambda one: one[0])
    for name, group in itertools.groupby(found, lambda one: one[0]):
        group = list(group)
        yield Case(name, *[step for _, _, step in group], accounts=True, **group[0][1])


CASES += all_recorded()
