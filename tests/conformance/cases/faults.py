"""All faults of an object are told together, in the order of its fields' checks.

faults.jsonl has more of them, an object a line, with what kube-apiserver says: "field: message",
in any order, "…" for any end.
"""

import itertools
import json
import re
from pathlib import Path

from conformance.case import Case, Having, Pattern, post

APPS = '/apis/apps/v1/namespaces/$ns/'
BATCH = '/apis/batch/v1/namespaces/$ns/'
NETWORK = '/apis/networking.k8s.io/v1/namespaces/$ns/'
RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/'

NAME = r'a lowercase RFC 1123 label must consist of'
SUBDOMAIN = r'a lowercase RFC 1123 subdomain must consist of'
KEY = r'name part must consist of alphanumeric characters'


def container(**more):
    return {'name': 'c', 'image': 'i', **more}


def template(**spec):
    return {'metadata': {'labels': {'app': 'w'}}, 'spec': {'containers': [container()], **spec}}


def faults(path, kind, body, *patterns):
    """A post that is refused with exactly these causes, "field: message", in this order."""
    causes = []
    for pattern in patterns:
        field, message = pattern.split(': ', 1)
        causes.append({'field': field, 'message': Pattern(f'^{message}')})
    return post(path, {'metadata': {'name': 'w'}, **body}, 422, {
        'reason': 'Invalid', 'details': {'name': 'w', 'kind': kind, 'causes': causes}})


def pod(*patterns, **spec):
    return faults('pods', 'Pod', {'spec': spec}, *patterns)


CASES = [
    Case('pod-containers', pod(
        rf'spec.containers[0].name: Invalid value: "C": {NAME}',
        'spec.containers[0].image: Required value',
        'spec.containers[0].env[0].name: Invalid value: "=": a valid environment variable name must',
        'spec.containers[0].volumeMounts[0].name: Not found: "none"',
        rf'spec.containers[1].name: Invalid value: "C": {NAME}',
        'spec.containers[1].name: Duplicate value: "C"',
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
        '"OnFailure", "Never"$',
        restartPolicy='Sometimes', containers=[
            {'name': 'C', 'image': '', 'env': [{'name': '='}],
             'volumeMounts': [{'name': 'none', 'mountPath': '/x'}]},
            {'name': 'C', 'image': 'i'}]), accounts=True),
    Case('pod-container-fields', pod(
        "spec.containers[0].terminationMessagePolicy: Invalid value: \"y\": must be 'File' or "
        "'FallbackToLogsOnError'$",
        'spec.containers[0].ports[0].containerPort: Required value$',
        'spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and '
        '65535, inclusive$',
        'spec.containers[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", '
        '"TCP", "UDP"$',
        'spec.containers[0].ports[3].name: Duplicate value: "a"$',
        'spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: "Always", '
        '"IfNotPresent", "Never"$',
        containers=[container(imagePullPolicy='x', terminationMessagePolicy='y', ports=[
            {'containerPort': 0}, {'containerPort': 70000, 'protocol': 'X'},
            {'containerPort': 2, 'name': 'a'}, {'containerPort': 3, 'name': 'a'}])]),
        accounts=True),
    Case('pod-probes', pod(
        'spec.containers[0].lifecycle.preStop: Required value: must specify a handler type$',
        'spec.containers[0].livenessProbe: Required value: must specify a handler type$',
        'spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or '
        'equal to 0$',
        'spec.containers[0].startupProbe.successThreshold: Invalid value: 3: must be 1$',
        'spec.containers[0].readinessProbe.exec.command: Required value$',
        'spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler '
        'type$',
        containers=[container(
            livenessProbe={}, lifecycle={'preStop': {}},
            readinessProbe={'exec': {'command': []}, 'httpGet': {'port': 0}},
            startupProbe={'tcpSocket': {'port': 80}, 'periodSeconds': -1,
                          'successThreshold': 3})]), accounts=True),
    Case('pod-environment', pod(
        'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error '
        'converting fieldPath: field label not supported: spec.x$',
        'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` '
        'is not empty$',
        'spec.containers[0].env[1].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
        '`resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`$',
        'spec.containers[0].env[2].valueFrom.configMapKeyRef.key: Invalid value: "a b": a valid '
        'config key must consist of',
        containers=[container(env=[
            {'name': 'A', 'value': 'x', 'valueFrom': {'fieldRef': {'fieldPath': 'spec.x'}}},
            {'name': 'B', 'valueFrom': {}},
            {'name': 'E', 'valueFrom': {'configMapKeyRef': {'name': 'x', 'key': 'a b'}}}])]),
        accounts=True),
    Case('pod-volumes', pod(
        rf'spec.volumes[0].name: Invalid value: "A": {NAME}',
        'spec.volumes[1].hostPath.path: Required value$',
        "spec.volumes[2].hostPath.path: Invalid value: \"/a/../b\": must not contain '\\.\\.'$",
        'spec.volumes[3].secret.secretName: Required value$',
        'spec.volumes[3].secret.defaultMode: Invalid value: 9999: must be a number between 0 and '
        '0777 .octal., both inclusive$',
        'spec.volumes[4].persistentVolumeClaim.claimName: Required value$',
        'spec.volumes[5].hostPath: Forbidden: may not specify more than 1 volume type$',
        containers=[container()], volumes=[
            {'name': 'A', 'emptyDir': {}}, {'name': 'b', 'hostPath': {'path': ''}},
            {'name': 'c', 'hostPath': {'path': '/a/../b'}},
            {'name': 'd', 'secret': {'secretName': '', 'defaultMode': 9999}},
            {'name': 'f', 'persistentVolumeClaim': {'claimName': ''}},
            {'name': 'g', 'emptyDir': {}, 'hostPath': {'path': '/'}}]), accounts=True),
    Case('pod-tolerations', pod(
        rf'spec.tolerations[0].key: Invalid value: "a b": {KEY}',
        'spec.tolerations[1].operator: Unsupported value: "X": supported values: "Equal", "Exists"$',
        'spec.tolerations[2].effect: Unsupported value: "X": supported values: "NoSchedule", '
        '"PreferNoSchedule", "NoExecute"$',
        "spec.tolerations[3].effect: Invalid value: \"\": effect must be 'NoExecute' when "
        '`tolerationSeconds` is set$',
        containers=[container()], tolerations=[
            {'key': 'a b'}, {'key': 'a', 'operator': 'X'}, {'key': 'a', 'effect': 'X'},
            {'key': 'a', 'tolerationSeconds': 3}]), accounts=True),
    Case('service', faults('services', 'Service', {'spec': {
        'sessionAffinity': 'Y', 'ports': [
            {'port': 99999, 'targetPort': 'x_y'}, {'port': 1, 'name': 'a'},
            {'port': 1, 'name': 'a'}], 'selector': {'a b': 'c'}}},
        'spec.ports[0].name: Required value$',
        'spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive$',
        r'spec.ports[0].targetPort: Invalid value: "x_y": must contain only alpha-numeric characters',
        'spec.ports[2].name: Duplicate value: "a"$',
        rf'spec.selector: Invalid value: "a b": {KEY}',
        'spec.sessionAffinity: Unsupported value: "Y": supported values: "ClientIP", "None"$',
        'spec.ports[2]: Duplicate value: core.ServicePort')),
    Case('deployment', faults(APPS + 'deployments', 'Deployment', {'spec': {}},
                              'spec.selector: Required value$',
                              r'spec.template.metadata.labels: Invalid value: map\[string\]string'
                              r'\(nil\): `selector` does not match template `labels`$',
                              'spec.template.spec.containers: Required value$'),
         faults(APPS + 'deployments', 'Deployment', {'spec': {
             'selector': {'matchLabels': {'app': 'w'}}, 'template': template(),
             'progressDeadlineSeconds': 1, 'minReadySeconds': 5, 'strategy': {
                 'rollingUpdate': {'maxSurge': 'a%', 'maxUnavailable': '101%'}}}},
                'spec.strategy.rollingUpdate.maxSurge: Invalid value: .*"a%".*: a valid percent string',
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: .*"101%".*: must not be '
                'greater than 100%$',
                'spec.progressDeadlineSeconds: Invalid value: 1: must be greater than '
                'minReadySeconds$')),
    Case('job', faults(BATCH + 'jobs', 'Job', {'spec': {
        'parallelism': -1, 'backoffLimit': -1, 'template': template(
            restartPolicy='X', containers=[{'name': 'A'}])}},
        'spec.parallelism: Invalid value: -1: must be greater than or equal to 0$',
        'spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0$',
        rf'spec.template.spec.containers[0].name: Invalid value: "A": {NAME}',
        'spec.template.spec.containers[0].image: Required value$',
        'spec.template.spec.restartPolicy: Unsupported value: "X": supported values: "Always", '
        '"OnFailure", "Never"$',
        'spec.template.spec.restartPolicy: Unsupported value: "X": supported values: "OnFailure", '
        '"Never"$'),
        faults(BATCH + 'jobs', 'Job', {'spec': {'template': template()}},
               'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", '
               '"Never"$')),
    Case('cron-job', faults('/apis/batch/v1beta1/namespaces/$ns/cronjobs', 'CronJob', {'spec': {
        'schedule': '61 * * * *', 'concurrencyPolicy': 'X', 'startingDeadlineSeconds': -1,
        'successfulJobsHistoryLimit': -1,
        'jobTemplate': {'spec': {'template': template(restartPolicy='Never')}}}},
        r'spec.schedule: Invalid value: "61 \* \* \* \*": End of range \(61\) above maximum \(59\): 61$',
        'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0$',
        'spec.concurrencyPolicy: Unsupported value: "X": supported values: "Allow", "Forbid", '
        '"Replace"$',
        'spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0$')),
    Case('claim', faults('persistentvolumeclaims', 'PersistentVolumeClaim', {'spec': {
        'accessModes': ['X'], 'resources': {'requests': {'storage': '-1'}},
        'storageClassName': 'A_', 'volumeMode': 'X'}},
        'spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", '
        '"ReadWriteMany", "ReadWriteOnce"$',
        r'spec.resources[storage]: Invalid value: "-1": must be greater than zero$',
        rf'spec.storageClassName: Invalid value: "A_": {SUBDOMAIN}',
        'spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem"$'),
        faults('persistentvolumeclaims', 'PersistentVolumeClaim', {},
               'spec.accessModes: Required value: at least 1 access mode is required$',
               'spec.resources[storage]: Required value$')),
    Case('volume', faults('/api/v1/persistentvolumes', 'PersistentVolume', {},
                          'spec.accessModes: Required value$', 'spec.capacity: Required value$',
                          r'spec.capacity: Unsupported value: core.ResourceList\(nil\)',
                          'spec: Required value: must specify a volume type$'),
         faults('/api/v1/persistentvolumes', 'PersistentVolume', {'spec': {
             'accessModes': ['ReadWriteOnce'], 'capacity': {'storage': '1'},
             'local': {'path': '/x'}}},
                'spec.nodeAffinity: Required value: Local volume requires node affinity$')),
    Case('network-policy', faults(NETWORK + 'networkpolicies', 'NetworkPolicy', {'spec': {
        'podSelector': {}, 'policyTypes': ['X'], 'ingress': [{
            'ports': [{'protocol': 'X', 'port': 0}],
            'from': [{}, {'ipBlock': {'cidr': 'x'}},
                     {'ipBlock': {'cidr': '10.0.0.0/8', 'except': ['11.0.0.0/8']},
                      'podSelector': {}}]}]}},
        'spec.ingress[0].ports[0].protocol: Unsupported value: "X": supported values: "TCP", "UDP", '
        '"SCTP"$',
        'spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive$',
        'spec.ingress[0].from[0]: Required value: must specify a peer$',
        'spec.ingress[0].from[1].ipBlock.cidr: Invalid value: "x": not a valid CIDR$',
        'spec.ingress[0].from[2].ipBlock.except[0]: Invalid value: "11.0.0.0/8": must be a strict '
        'subset of `cidr`$',
        'spec.ingress[0].from[2]: Forbidden: may not specify both ipBlock and another peer$',
        'spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress"$')),
    Case('ingress', faults(NETWORK + 'ingresses', 'Ingress', {'spec': {
        'defaultBackend': {}, 'rules': [
            {'host': '1.2.3.4'}, {'host': 'A_', 'http': {'paths': []}},
            {'http': {'paths': [
                {'path': 'x', 'pathType': 'Prefix',
                 'backend': {'service': {'name': '', 'port': {}}}},
                {'backend': {'service': {'name': 's', 'port': {'number': 80}}}}]}}]}},
        'spec.defaultBackend: Invalid value: "": resource or service backend is required$',
        'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address$',
        rf'spec.rules[1].host: Invalid value: "A_": {SUBDOMAIN}',
        'spec.rules[1].http.paths: Required value$',
        'spec.rules[2].http.paths[0].path: Invalid value: "x": must be an absolute path$',
        'spec.rules[2].http.paths[0].backend.service.name: Required value$',
        'spec.rules[2].http.paths[0].backend: Required value: port name or number is required$',
        'spec.rules[2].http.paths[1].pathType: Required value: pathType must be specified$')),
    Case('role', faults(RBAC + 'roles', 'Role', {'rules': [
        {}, {'verbs': ['get'], 'nonResourceURLs': ['/a']}, {'verbs': ['get'], 'apiGroups': ['']}]},
        'rules[0].verbs: Required value: verbs must contain at least one value$',
        'rules[0].apiGroups: Required value: resource rules must supply at least one api group$',
        'rules[0].resources: Required value: resource rules must supply at least one resource$',
        r'rules[1].nonResourceURLs: Invalid value: \[\]string\{"/a"\}: namespaced rules cannot apply '
        'to non-resource URLs$',
        'rules[2].resources: Required value: resource rules must supply at least one resource$')),
    Case('role-binding', faults(RBAC + 'rolebindings', 'RoleBinding', {
        'roleRef': {'apiGroup': 'x', 'kind': 'X', 'name': ''},
        'subjects': [{'kind': 'X', 'name': ''}, {'kind': 'User', 'name': 'u', 'apiGroup': 'x'}]},
        'roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"$',
        'roleRef.kind: Unsupported value: "X": supported values: "Role", "ClusterRole"$',
        'roleRef.name: Required value$', 'subjects[0].name: Required value$',
        'subjects[0].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", '
        '"Group"$',
        'subjects[1].apiGroup: Unsupported value: "x": supported values: '
        '"rbac.authorization.k8s.io"$')),
    Case('scaler', faults('/apis/autoscaling/v1/namespaces/$ns/horizontalpodautoscalers',
                          'HorizontalPodAutoscaler', {'spec': {}},
                          'spec.maxReplicas: Invalid value: 0: must be greater than 0$',
                          'spec.maxReplicas: Invalid value: 0: must be greater than or equal to '
                          '`minReplicas`$',
                          'spec.scaleTargetRef.kind: Required value$',
                          'spec.scaleTargetRef.name: Required value$')),
    Case('budget', faults('/apis/policy/v1beta1/namespaces/$ns/poddisruptionbudgets',
                          'PodDisruptionBudget', {'spec': {
                              'minAvailable': '101%', 'selector': {'matchLabels': {'a b': 'c'}}}},
                          'spec.minAvailable: Invalid value: .*"101%".*: must not be greater than '
                          '100%$',
                          rf'spec.selector.matchLabels: Invalid value: "a b": {KEY}')),
    Case('config-map', faults('configmaps', 'ConfigMap', {'data': {'a b': 'c'},
                                                          'binaryData': {'y z': 'AA=='}},
                              r'data[a b]: Invalid value: "a b": a valid config key must consist of',
                              r'binaryData[y z]: Invalid value: "y z": a valid config key must'),
         faults('configmaps', 'ConfigMap', {'data': {'a': 'x' * 1048577}},
                r'[]: Too long: must have at most 1048576 bytes$')),
    Case('secret', faults('secrets', 'Secret', {'type': 'kubernetes.io/tls', 'data': {
        'a b': 'AA=='}},
        r'data[a b]: Invalid value: "a b": a valid config key must consist of',
        'data[tls.crt]: Required value$', 'data[tls.key]: Required value$'),
        faults('secrets', 'Secret', {'type': 'kubernetes.io/dockerconfigjson', 'data': {
            '.dockerconfigjson': 'eA=='}},
               r"data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid "
               r"character 'x' looking for beginning of value$")),
    Case('node-taints', faults('/api/v1/nodes', 'Node', {'spec': {'taints': [
        {'key': 'a b', 'effect': 'X'}, {'key': 'a', 'effect': 'NoSchedule'},
        {'key': 'a', 'effect': 'NoSchedule'}, {'key': 'a'}]}},
        rf'metadata.taints[0].key: Invalid value: "a b": {KEY}',
        'metadata.taints[0].effect: Unsupported value: "X": supported values: "NoSchedule", '
        '"PreferNoSchedule", "NoExecute"$',
        r'metadata.taints[2]: Duplicate value: core.Taint',
        'metadata.taints[3].effect: Required value$')),
    Case('storage-class', faults('/apis/storage.k8s.io/v1/storageclasses', 'StorageClass', {
        'provisioner': 'a b', 'reclaimPolicy': 'X', 'volumeBindingMode': 'X'},
        rf'provisioner: Invalid value: "a b": {KEY}',
        'reclaimPolicy: Unsupported value: "X": supported values: "Delete", "Retain"$',
        'volumeBindingMode: Unsupported value: "X": supported values: "Immediate", '
        '"WaitForFirstConsumer"$')),
]


def recorded(line):
    """The kind in its name, and a post that is refused with these causes."""
    case = json.loads(line)
    causes = []
    for told in case['causes']:
        field, message = told.split(': ', 1)
        pattern = re.escape(message.rstrip('…')) + ('' if message.endswith('…') else '$')
        causes.append({'field': field, 'message': Pattern(f'^{pattern}')})
    details = {'kind': case['kind'], 'causes': Having(*causes)}
    if case['object']:
        details['name'] = case['object']
    return case['name'].split('-')[0], post(case['path'] + ('&' if '?' in case['path'] else '?') +
                                            'dryRun=All', case['body'], 422,
                                            {'reason': 'Invalid', 'details': details})


def all_recorded():
    text = (Path(__file__).parent / 'faults.jsonl').read_text(encoding='utf-8')
    steps = [recorded(line) for line in text.splitlines()]
    for kind, group in itertools.groupby(steps, lambda step: step[0]):
        yield Case(f'all-{kind}', *[step for _, step in group], accounts=True)


CASES += all_recorded()
