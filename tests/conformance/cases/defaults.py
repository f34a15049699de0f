"""What is filled in, and what is refused, kind by kind."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure, get,
                              invalid, patch, post, put)

APPS = '/apis/apps/v1/namespaces/$ns/'
BATCH = '/apis/batch/v1/namespaces/$ns/'


def pod(name='p', **spec):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name},
            'spec': {'containers': [{'name': 'c', 'image': 'i'}], **spec}}


def workload(kind, name='w', **spec):
    return {'apiVersion': 'apps/v1', 'kind': kind, 'metadata': {'name': name},
            'spec': {'selector': {'matchLabels': {'app': name}},
                     'template': {'metadata': {'labels': {'app': name}},
                                  'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}, **spec}}


def two_limits(version):
    return post(f'/apis/policy/{version}/namespaces/$ns/poddisruptionbudgets', {
        'metadata': {'name': 'b'}, 'spec': {'minAvailable': 1, 'maxUnavailable': 1}}, 422,
        invalid('spec: Invalid value'))


CASES = [
    Case('pod', post('pods', pod(), 201, {
        'spec': {'restartPolicy': 'Always', 'terminationGracePeriodSeconds': 30,
                 'dnsPolicy': 'ClusterFirst', 'securityContext': {},
                 'serviceAccountName': 'default',
                 'serviceAccount': 'default', 'enableServiceLinks': True,
                 'preemptionPolicy': 'PreemptLowerPriority', 'priority': 0,
                 'tolerations': Having(
                     {'key': 'node.kubernetes.io/not-ready', 'operator': 'Exists',
                      'effect': 'NoExecute', 'tolerationSeconds': 300},
                     {'key': 'node.kubernetes.io/unreachable', 'operator': 'Exists',
                      'effect': 'NoExecute', 'tolerationSeconds': 300}),
                 'containers': [{'name': 'c', 'image': 'i', 'imagePullPolicy': 'Always',
                                 'resources': {}, 'terminationMessagePath': '/dev/termination-log',
                                 'terminationMessagePolicy': 'File'}]},
        'status': {'phase': 'Pending', 'qosClass': 'BestEffort'}}), accounts=True),
    Case('pod-scheduler', post('pods', pod(), 201, {'spec': {
        'schedulerName': 'default-scheduler'}}), accounts=True),
    Case('pod-image-pull-policy', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i:1'}, {'name': 'b', 'image': 'i:latest'}]), 201,
        {'spec': {'containers': [{'imagePullPolicy': 'IfNotPresent'},
                                 {'imagePullPolicy': 'Always'}]}}), accounts=True),
    Case('pod-limits-are-requests-too', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'resources': {'limits': {'cpu': '1', 'memory': '1Gi'}}}]), 201,
        {'spec': {'containers': [{'resources': {'limits': {'cpu': '1', 'memory': '1Gi'},
                                                'requests': {'cpu': '1', 'memory': '1Gi'}}}]},
         'status': {'qosClass': 'Guaranteed'}}), accounts=True),
    Case('pod-probes', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'ports': [{'containerPort': 80}],
         'livenessProbe': {'httpGet': {'port': 80}}}]), 201,
        {'spec': {'containers': [{'ports': [{'containerPort': 80, 'protocol': 'TCP'}],
                                  'livenessProbe': {
            'httpGet': {'path': '/', 'port': 80, 'scheme': 'HTTP'}, 'timeoutSeconds': 1,
            'periodSeconds': 10, 'successThreshold': 1, 'failureThreshold': 3}}]}}),
        accounts=True),
    Case('pod-volumes', post('pods', pod(volumes=[
        {'name': 'm', 'configMap': {'name': 'x'}}, {'name': 's', 'secret': {'secretName': 'x'}},
        {'name': 'e', 'emptyDir': {}}, {'name': 'h', 'hostPath': {'path': '/x'}}]), 201,
        {'spec': {'volumes': Having(
            {'name': 'm', 'configMap': {'name': 'x', 'defaultMode': 420}},
            {'name': 's', 'secret': {'secretName': 'x', 'defaultMode': 420}},
            {'name': 'e', 'emptyDir': {}}, {'name': 'h', 'hostPath': {'path': '/x', 'type': ''}})}}),
        accounts=True),
    Case('pod-quantities-are-canonical', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'resources': {'requests': {'cpu': '1000m',
                                                               'memory': '1024Mi'}}}]), 201,
        {'spec': {'containers': [{'resources': {'requests': {'cpu': '1', 'memory': '1Gi'}}}]}}),
        accounts=True),
    Case('pod-without-containers', post('pods', pod(containers=[]), 422, failure(
        'Invalid', 'Pod "p" is invalid: spec.containers: Required value', 422, name='p',
        kind='Pod', causes=[{'reason': 'FieldValueRequired', 'message': 'Required value',
                             'field': 'spec.containers'}])), accounts=True),
    Case('pod-container-names', post('pods', pod(containers=[
        {'name': 'Bad_Name', 'image': 'i'}]), 422, invalid(
            'spec.containers[0].name: Invalid value')),
        post('pods', pod(containers=[{'name': 'a', 'image': 'i'}, {'name': 'a', 'image': 'i'}]),
             422, invalid('spec.containers[1].name: Duplicate value')), accounts=True),
    Case('pod-without-image', post('pods', pod(containers=[{'name': 'a'}]), 422, invalid(
        'spec.containers[0].image: Required value')), accounts=True),
    Case('pod-with-unknown-policy', post('pods', pod(restartPolicy='Sometimes'), 422, invalid(
        'spec.restartPolicy: Unsupported value')), accounts=True),
    Case('pod-with-bad-quantity', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'resources': {'requests': {'cpu': 'lots'}}}]), 400, failure(
            'BadRequest', Pattern('quantities must match the regular expression'))),
        accounts=True),
    Case('pod-request-above-limit', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'resources': {'requests': {'cpu': '2'},
                                                  'limits': {'cpu': '1'}}}]), 422, invalid(
        'spec.containers[0].resources.requests: Invalid value')), accounts=True),
    Case('pod-mount-of-unknown-volume', post('pods', pod(containers=[
        {'name': 'a', 'image': 'i', 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]}]), 422,
        invalid('spec.containers[0].volumeMounts[0].name: Not found')),
        accounts=True),
    Case('pod-with-unknown-priority-class', post('pods', pod(priorityClassName='none'), 403, failure(
        'Forbidden', Pattern('no PriorityClass with name none was found'))), accounts=True),
    Case('pod-with-unknown-account', post('pods', pod(serviceAccountName='none'), 403, failure(
        'Forbidden', Pattern(r'error looking up service account .*/none: serviceaccount "none" not '
                             'found'))), accounts=True),
    Case('pod-spec-is-mostly-immutable', post('pods', pod(), 201),
         patch('merge', 'pods/p', {'spec': {'nodeSelector': {'a': 'b'}}}, 422, invalid(
             'spec: Forbidden')),
         patch('strategic', 'pods/p', {'spec': {'containers': [{'name': 'c', 'image': 'j'}]}}, 200,
               {'spec': {'containers': [{'image': 'j'}]}}), accounts=True),
    Case('pod-status-is-its-own', post('pods', pod(schedulerName='none'), 201),
         patch('merge', 'pods/p', {'status': {'phase': 'Running'}}, 200,
               {'status': {'phase': 'Pending'}}),
         patch('merge', 'pods/p/status', {'status': {'message': 'm'}}, 200,
               {'status': {'message': 'm', 'phase': 'Pending'}}), accounts=True),
    Case('pod-binding', post('/api/v1/nodes', {
        'metadata': {'name': 'n-$run'}, 'spec': {'unschedulable': True}, 'status': {'allocatable': {
            'pods': '9', 'cpu': '4', 'memory': '4Gi'}}}, 201),
         post('pods', pod(schedulerName='none'), 201),
         post('pods/p/binding', {'target': {'kind': 'Node', 'name': 'n-$run'}}, 400, failure(
             'BadRequest', 'name in URL does not match name in Binding object')),
         post('pods/p/binding', {'metadata': {'name': 'p'},
                                 'target': {'kind': 'Node', 'name': 'n-$run'}}, 201,
              {'kind': 'Status', 'status': 'Success'}),
         get('pods/p', 200, {'spec': {'nodeName': 'n-$run'}, 'status': {'conditions': Having(
             {'type': 'PodScheduled', 'status': 'True'})}}),
         post('pods/p/binding', {'metadata': {'name': 'p'},
                                 'target': {'kind': 'Node', 'name': 'm'}}, 409, failure(
             'Conflict', Pattern('pod p is already assigned to node "n-$run"'))),
         delete('/api/v1/nodes/n-$run', 200), accounts=True),
    Case('pod-log-before-it-runs', post('pods', pod(schedulerName='none'), 201),
         get('pods/none/log', 404, failure(
             'NotFound', 'pods "none" not found')), accounts=True),
    Case('service', post('services', {'metadata': {'name': 's'}, 'spec': {
        'selector': {'a': 'b'}, 'ports': [{'port': 80}]}}, 201, {
            'spec': {'type': 'ClusterIP', 'sessionAffinity': 'None',
                     'clusterIP': Pattern(r'^\d+\.\d+\.\d+\.\d+$'),
                     'ports': [{'port': 80, 'protocol': 'TCP', 'targetPort': 80}]},
            'status': {'loadBalancer': {}}})),
    Case('service-headless', post('services', {'metadata': {'name': 's'}, 'spec': {
        'clusterIP': 'None', 'selector': {'a': 'b'}}}, 201, {'spec': {'clusterIP': 'None'}})),
    Case('service-ports', post('services', {'metadata': {'name': 's'}, 'spec': {
        'ports': [{'port': 80}, {'port': 81}]}}, 422, invalid(
            'spec.ports[0].name: Required value', 'spec.ports[1].name: Required value')),
        post('services', {'metadata': {'name': 's'}, 'spec': {'ports': [{'port': 0}]}}, 422, invalid(
            'spec.ports[0].port: Invalid value', 'spec.ports[0].targetPort: Invalid value'))),
    Case('service-name', post('services', {'metadata': {'name': '-s'}, 'spec': {
        'ports': [{'port': 80}]}}, 422, invalid('metadata.name: Invalid value'))),
    Case('service-name-with-a-digit', post('services', {'metadata': {'name': '1s'}, 'spec': {
        'ports': [{'port': 80}]}}, 201), since=36),
    Case('service-address-is-immutable', post('services', {'metadata': {'name': 's'}, 'spec': {
        'ports': [{'port': 80}]}}, 201),
        patch('merge', 'services/s', {'spec': {'clusterIP': 'None'}}, 422, invalid(
            'spec.clusterIPs[0]: Invalid value'))),
    Case('deployment', post(APPS + 'deployments', workload('Deployment', replicas=0), 201, {
        'metadata': {'generation': 1},
        'spec': {'replicas': 0, 'revisionHistoryLimit': 10, 'progressDeadlineSeconds': 600,
                 'strategy': {'type': 'RollingUpdate', 'rollingUpdate': {
                     'maxSurge': '25%', 'maxUnavailable': '25%'}},
                 'template': {'spec': {'restartPolicy': 'Always', 'dnsPolicy': 'ClusterFirst',
                                       'securityContext': {}}}}})),
    Case('deployment-generation', post(APPS + 'deployments', workload('Deployment', replicas=0),
                                       201),
         patch('merge', APPS + 'deployments/w', {'metadata': {'labels': {'a': 'b'}}}, 200,
               {'metadata': {'generation': 1}}),
         patch('merge', APPS + 'deployments/w', {'spec': {'paused': True}}, 200,
               {'metadata': {'generation': 2}})),
    Case('deployment-selector-must-match', post(APPS + 'deployments', workload(
        'Deployment', selector={'matchLabels': {'app': 'other'}}), 422, invalid(
            'spec.template.metadata.labels: Invalid value'))),
    Case('deployment-selector-is-immutable', post(APPS + 'deployments', workload(
        'Deployment', replicas=0), 201),
        patch('merge', APPS + 'deployments/w', {'spec': {
            'selector': {'matchLabels': {'app': 'w', 'x': 'y'}},
            'template': {'metadata': {'labels': {'x': 'y'}}}}}, 422, invalid(
                'spec.selector: Invalid value'))),
    Case('deployment-restarts-always', post(APPS + 'deployments', workload('Deployment', template={
        'metadata': {'labels': {'app': 'w'}}, 'spec': {
            'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}), 422, invalid(
                'spec.template.spec.restartPolicy: Unsupported value'))),
    Case('deployment-replicas', post(APPS + 'deployments', workload('Deployment', replicas=-1), 422,
                                     invalid('spec.replicas: Invalid value'))),
    Case('scale', post(APPS + 'deployments', workload('Deployment', replicas=0), 201),
         get(APPS + 'deployments/w/scale', 200, {
             'kind': 'Scale', 'apiVersion': 'autoscaling/v1', 'metadata': {'name': 'w'},
             'spec': {'replicas': ABSENT}, 'status': {'replicas': 0, 'selector': 'app=w'}}),
         patch('merge', APPS + 'deployments/w', {'spec': {'paused': True}}, 200),
         put(APPS + 'deployments/w/scale', {'metadata': {'name': 'w', 'namespace': '$ns'}, 'spec': {'replicas': 1}},
             200, {'spec': {'replicas': 1}}),
         get(APPS + 'deployments/w', 200, {'spec': {'replicas': 1}})),
    Case('stateful-set', post(APPS + 'statefulsets', workload(
        'StatefulSet', serviceName='s', replicas=0), 201, {
            'spec': {'podManagementPolicy': 'OrderedReady', 'revisionHistoryLimit': 10,
                     'updateStrategy': {'type': 'RollingUpdate',
                                        'rollingUpdate': {'partition': 0}}}})),
    Case('stateful-set-is-mostly-immutable', post(APPS + 'statefulsets', workload(
        'StatefulSet', serviceName='s', replicas=0), 201),
        *[patch('merge', APPS + 'statefulsets/w', {'spec': {field: value}}, 422,
                invalid(f'spec.{field}: Invalid value'))
          for field, value in (('serviceName', 't'), ('podManagementPolicy', 'Parallel'),
                               ('volumeClaimTemplates', [{'metadata': {'name': 'd'}, 'spec': {
                                   'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1'}}}}]))],
        patch('merge', APPS + 'statefulsets/w', {'spec': {'revisionHistoryLimit': 3, 'minReadySeconds': 1}}, 200),
        since=37),
    Case('daemon-set', post(APPS + 'daemonsets', workload('DaemonSet', template={
        'metadata': {'labels': {'app': 'w'}}, 'spec': {
            'nodeSelector': {'no': 'node'}, 'containers': [{'name': 'c', 'image': 'i'}]}}), 201, {
                'spec': {'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': {
                    'maxUnavailable': 1}}, 'revisionHistoryLimit': 10}})),
    Case('job', post(BATCH + 'jobs', {'metadata': {'name': 'j'}, 'spec': {
        'parallelism': 0, 'template': {'spec': {'restartPolicy': 'Never', 'containers': [
            {'name': 'c', 'image': 'i'}]}}}}, 201, {
                'spec': {'parallelism': 0, 'completions': ABSENT, 'backoffLimit': 6,
                         'selector': {'matchLabels': PRESENT},
                         'template': {'metadata': {'labels': {'job-name': 'j'}}}}})),
    Case('job-must-not-restart-always', post(BATCH + 'jobs', {'metadata': {'name': 'j'}, 'spec': {
        'template': {'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}, 422, invalid(
            'spec.template.spec.restartPolicy: Required value'))),
    Case('job-template-is-immutable', post(BATCH + 'jobs', {'metadata': {'name': 'j'}, 'spec': {
        'parallelism': 0, 'template': {'spec': {'restartPolicy': 'Never', 'containers': [
            {'name': 'c', 'image': 'i'}]}}}}, 201),
        patch('strategic', BATCH + 'jobs/j', {'spec': {'template': {'spec': {'containers': [
            {'name': 'c', 'image': 'k'}]}}}}, 422, invalid(
                'spec.template: Invalid value'))),
    Case('priority-class', post('/apis/scheduling.k8s.io/v1/priorityclasses', {
        'metadata': {'name': 'p-$run'}, 'value': 7}, 201, {
            'value': 7, 'preemptionPolicy': 'PreemptLowerPriority', 'globalDefault': ABSENT}),
        eventually(post('pods', pod(priorityClassName='p-$run', schedulerName='none'), 201,
                        {'spec': {'priority': 7}})),
        patch('merge', '/apis/scheduling.k8s.io/v1/priorityclasses/p-$run', {'value': 8}, 422,
              invalid('value: Forbidden')), accounts=True),
    Case('priority-class-of-old', post('/apis/scheduling.k8s.io/v1/priorityclasses', {
        'metadata': {'name': 'p-$run'}, 'value': 7}, 201),
        get('/apis/scheduling.k8s.io/v1beta1/priorityclasses/p-$run', 200,
            {'apiVersion': 'scheduling.k8s.io/v1beta1', 'value': 7}), until=21),
    Case('system-priority-classes',
         get('/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical', 200,
             {'value': 2000001000})),
    Case('claim', post('persistentvolumeclaims', {'metadata': {'name': 'c'}, 'spec': {
        'storageClassName': 'none-$run', 'accessModes': ['ReadWriteOnce'],
        'resources': {'requests': {'storage': '1Gi'}}}}, 201, {
            'spec': {'volumeMode': 'Filesystem'}, 'status': {'phase': 'Pending'}}),
        patch('merge', 'persistentvolumeclaims/c', {'metadata': {'finalizers': None}}, 200)),
    Case('claim-needs-a-size', post('persistentvolumeclaims', {'metadata': {'name': 'c'}, 'spec': {
        'accessModes': ['ReadWriteOnce']}}, 422, invalid(
            'spec.resources[storage]: Required value'))),
    Case('lease', post('/apis/coordination.k8s.io/v1/namespaces/$ns/leases', {
        'metadata': {'name': 'l'}, 'spec': {'holderIdentity': 'me', 'leaseDurationSeconds': 15,
                                            'renewTime': '2026-01-01T00:00:00.000000Z'}}, 201, {
            'spec': {'renewTime': '2026-01-01T00:00:00.000000Z'}}),
        post('/apis/coordination.k8s.io/v1/namespaces/$ns/leases', {
            'metadata': {'name': 'm'}, 'spec': {'leaseDurationSeconds': 0}}, 422, invalid(
                'spec.leaseDurationSeconds: Invalid value'))),
    Case('disruption-budget', two_limits('v1'), since=21),
    Case('disruption-budget-of-old', two_limits('v1beta1'), until=24),
    Case('events-of-both-groups', post('events', {'metadata': {'name': 'e'}, 'reason': 'R',
                                                  'message': 'words', 'type': 'Normal',
                                                  'involvedObject': {'kind': 'Pod', 'name': 'p',
                                                                     'namespace': '$ns'}}, 201),
         get('/apis/events.k8s.io/v1/namespaces/$ns/events/e', 200, {
             'kind': 'Event', 'apiVersion': 'events.k8s.io/v1', 'note': 'words', 'reason': 'R',
             'regarding': {'kind': 'Pod', 'name': 'p'}})),
]
