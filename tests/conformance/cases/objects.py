"""Creating, reading, changing and deleting single objects."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure,
                              get, patch, post, put)


def config_map(name='a', **more):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, **more}


def condition(kind, reason, message, status='False'):
    return {'type': kind, 'status': status, 'reason': reason, 'message': message}


ENDING = '/api/v1/namespaces/end-$run'


CASES = [
    Case('a-namespace-says-what-holds-it-up',
         post('/api/v1/namespaces', {'metadata': {'name': 'end-$run'}}, 201),
         post(ENDING + '/configmaps', {'metadata': {'name': 'a', 'finalizers': ['x.io/a']}}, 201),
         post(ENDING + '/secrets', {'metadata': {'name': 'a'}}, 201),
         delete(ENDING, 200),
         eventually(get(ENDING, 200, {'status': {'phase': 'Terminating', 'conditions': [
             condition('NamespaceDeletionDiscoveryFailure', 'ResourcesDiscovered',
                       'All resources successfully discovered'),
             condition('NamespaceDeletionGroupVersionParsingFailure', 'ParsedGroupVersions',
                       'All legacy kube types successfully parsed'),
             condition('NamespaceDeletionContentFailure', 'ContentDeleted',
                       'All content successfully deleted, may be waiting on finalization'),
             condition('NamespaceContentRemaining', 'SomeResourcesRemain',
                       'Some resources are remaining: configmaps. has 1 resource instances', 'True'),
             condition('NamespaceFinalizersRemaining', 'SomeFinalizersRemain',
                       'Some content in the namespace has finalizers remaining: x.io/a in 1 '
                       'resource instances', 'True')]}})),
         patch('merge', ENDING + '/configmaps/a', {'metadata': {'finalizers': None}}, 200),
         eventually(get(ENDING, 404))),
    Case('create-fills-metadata',
         post('configmaps', config_map(data={'k': 'v'}), 201,
              {'kind': 'ConfigMap', 'apiVersion': 'v1', 'data': {'k': 'v'},
               'metadata': {'name': 'a', 'namespace': '$ns', 'uid': Pattern(r'^[0-9a-f-]{36}$'),
                            'resourceVersion': Pattern(r'^[0-9]+$'),
                            'creationTimestamp': Pattern(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$'),
                            'generation': ABSENT, 'deletionTimestamp': ABSENT}})),
    Case('create-twice',
         post('configmaps', config_map(), 201),
         post('configmaps', config_map(), 409,
              failure('AlreadyExists', 'configmaps "a" already exists', 409, name='a',
                      kind='configmaps'))),
    Case('create-without-name',
         post('configmaps', {'metadata': {}}, 422,
              failure('Invalid', 'ConfigMap "" is invalid: metadata.name: Required value: name or '
                      'generateName is required', 422, kind='ConfigMap',
                      causes=[{'reason': 'FieldValueRequired', 'field': 'metadata.name',
                               'message': 'Required value: name or generateName is required'}]))),
    Case('create-with-generate-name',
         post('configmaps', {'metadata': {'generateName': 'a-'}}, 201,
              {'metadata': {'name': Pattern(r'^a-[a-z0-9]{5}$'), 'generateName': 'a-'}})),
    Case('create-with-bad-name',
         post('configmaps', config_map('A_b'), 422,
              failure('Invalid', Pattern(r'^ConfigMap "A_b" is invalid: metadata\.name: Invalid '
                                         r'value: "A_b": a (lowercase RFC 1123|DNS-1123) subdomain '
                                         r'must consist of lower case'), 422, name='A_b'))),
    Case('create-in-missing-namespace',
         post('/api/v1/namespaces/$run-none/configmaps', config_map(), 404,
              failure('NotFound', 'namespaces "$run-none" not found', 404,
                      name='$run-none', kind='namespaces'))),
    Case('create-with-other-namespace',
         post('configmaps', {'metadata': {'name': 'a', 'namespace': 'other'}}, 400,
              failure('BadRequest', 'the namespace of the provided object does not match the '
                      'namespace sent on the request', 400))),
    Case('create-sets-its-own-uid',
         post('configmaps', {'metadata': {'name': 'a', 'uid': 'my-own'}}, 201,
              {'metadata': {'uid': Pattern(r'^[0-9a-f-]{36}$')}})),
    Case('create-with-wrong-kind',
         post('configmaps', {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'a'}}, 400,
              failure('BadRequest', Pattern('Secret'), 400))),
    Case('create-with-wrong-version',
         post('configmaps', {'apiVersion': 'v2', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}},
              400, failure('BadRequest', Pattern('v2'), 400))),
    Case('create-with-self-link-ignored',
         post('configmaps', {'metadata': {'name': 'a', 'creationTimestamp':
                                          '2001-01-01T00:00:00Z'}}, 201,
              {'metadata': {'creationTimestamp': Pattern('^20[2-9]')}})),
    Case('get-missing',
         get('configmaps/none', 404,
             failure('NotFound', 'configmaps "none" not found', 404, name='none',
                     kind='configmaps'))),
    Case('get-missing-of-a-group',
         get('/apis/apps/v1/namespaces/$ns/deployments/none', 404,
             failure('NotFound', 'deployments.apps "none" not found', 404, name='none',
                     group='apps', kind='deployments'))),
    Case('update-with-stale-version',
         post('configmaps', config_map(), 201, save={'rv': 'metadata.resourceVersion'}),
         put('configmaps/a', config_map(data={'k': '1'}), 200),
         put('configmaps/a', {'metadata': {'name': 'a', 'resourceVersion': '$rv'}}, 409,
             failure('Conflict', 'Operation cannot be fulfilled on configmaps "a": the object has '
                     'been modified; please apply your changes to the latest version and try '
                     'again', 409, name='a', kind='configmaps'))),
    Case('update-keeps-identity',
         post('configmaps', config_map(), 201, save={'uid': 'metadata.uid',
                                                     'at': 'metadata.creationTimestamp'}),
         put('configmaps/a', config_map(data={'k': '1'}), 200,
             {'metadata': {'uid': '$uid', 'creationTimestamp': '$at'}, 'data': {'k': '1'}})),
    Case('update-with-other-uid',
         post('configmaps', config_map(), 201),
         put('configmaps/a', {'metadata': {'name': 'a', 'uid': 'other'}}, 409,
             failure('Conflict', Pattern('Precondition failed: UID in precondition: other'), 409))),
    Case('update-without-change-keeps-version',
         post('configmaps', config_map(data={'k': 'v'}), 201,
              save={'rv': 'metadata.resourceVersion'}),
         put('configmaps/a', config_map(data={'k': 'v'}), 200,
             {'metadata': {'resourceVersion': '$rv'}})),
    Case('update-with-other-name',
         post('configmaps', config_map(), 201),
         put('configmaps/a', config_map('b'), 400,
             failure('BadRequest', 'the name of the object (b) does not match the name on the URL '
                     '(a)', 400))),
    Case('delete-answers-status',
         post('configmaps', config_map(), 201, save={'uid': 'metadata.uid'}),
         delete('configmaps/a', 200, {'kind': 'Status', 'status': 'Success',
                                      'details': {'name': 'a', 'kind': 'configmaps',
                                                  'uid': '$uid'}}),
         get('configmaps/a', 404)),
    Case('delete-missing', delete('configmaps/a', 404, failure('NotFound'))),
    Case('delete-with-precondition',
         post('configmaps', config_map(), 201),
         delete('configmaps/a', 409,
                failure('Conflict', Pattern('^Operation cannot be fulfilled on ConfigMap "a": the UID in '
                                            'the precondition .x. does not match the UID in record')),
                body={'preconditions': {'uid': 'x'}}),
         delete('configmaps/a', 409,
                failure('Conflict', Pattern('the ResourceVersion in the precondition .1. does not '
                                            'match the ResourceVersion in record')),
                body={'preconditions': {'resourceVersion': '1'}})),
    Case('finalizers-hold-an-object',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['example.com/hold']}}, 201),
         delete('configmaps/a', 200, {'kind': 'ConfigMap',
                                      'metadata': {'deletionTimestamp': PRESENT,
                                                   'deletionGracePeriodSeconds': 0,
                                                   'finalizers': ['example.com/hold']}}),
         get('configmaps/a', 200, {'metadata': {'deletionTimestamp': PRESENT}}),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': None}}, 200),
         get('configmaps/a', 404)),
    Case('finalizers-cannot-be-added-later',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['example.com/a']}}, 201),
         delete('configmaps/a', 200),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': ['example.com/b']}}, 422,
               failure('Invalid', Pattern(r'metadata\.finalizers: Forbidden: no new finalizers can '
                                          r'be added if the object is being deleted, found new '
                                          r'finalizers \[\]string\{"example\.com/b"\}'))),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': None}}, 200)),
    Case('finalizers-must-be-qualified',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['plain']}}, 422,
              failure('Invalid', Pattern('metadata.finalizers.* "plain"')))),
    Case('labels-are-checked',
         post('configmaps', {'metadata': {'name': 'a', 'labels': {'-bad': 'x'}}}, 422,
              failure('Invalid', Pattern('metadata.labels: Invalid value: "-bad": name part must '
                                         'consist of alphanumeric characters'))),
         post('configmaps', {'metadata': {'name': 'a', 'labels': {'ok': 'not ok'}}}, 422,
              failure('Invalid', Pattern('metadata.labels: Invalid value: "not ok": a valid label '
                                         'must be an empty string or consist of')))),
    Case('annotations-are-checked',
         post('configmaps', {'metadata': {'name': 'a', 'annotations': {'a b': ''}}}, 422,
              failure('Invalid', Pattern('metadata.annotations: Invalid value: "a b"')))),
    Case('dry-run-stores-nothing',
         post('configmaps?dryRun=All', config_map(), 201, {'metadata': {'uid': PRESENT}}),
         get('configmaps/a', 404),
         post('configmaps', config_map(), 201),
         delete('configmaps/a?dryRun=All', 200),
         patch('merge', 'configmaps/a?dryRun=All', {'data': {'k': 'v'}}, 200,
               {'data': {'k': 'v'}}),
         get('configmaps/a', 200, {'data': ABSENT}),
         post('configmaps?dryRun=Some', config_map('b'), 422,
              failure('Invalid', Pattern('dryRun: Unsupported value.*supported values: (\\[)?"All"')))
         ),
    Case('collection-is-deleted-by-selector',
         post('configmaps', {'metadata': {'name': 'a', 'labels': {'x': '1'}}}, 201),
         post('configmaps', {'metadata': {'name': 'b', 'labels': {'x': '2'}}}, 201),
         delete('configmaps?labelSelector=x%3D1', 200),
         get('configmaps/a', 404), get('configmaps/b', 200)),
    Case('immutable-config-map',
         post('configmaps', config_map(data={'k': 'v'}, immutable=True), 201),
         patch('merge', 'configmaps/a', {'data': {'k': 'w'}}, 422,
               failure('Invalid', Pattern('data: Forbidden: field is immutable when `immutable` is '
                                          'set')))),
    Case('secret-string-data',
         post('secrets', {'metadata': {'name': 'a'}, 'stringData': {'k': 'v'}}, 201,
              {'data': {'k': 'dg=='}, 'stringData': ABSENT, 'type': 'Opaque'})),
    Case('secret-type-is-immutable',
         post('secrets', {'metadata': {'name': 'a'}}, 201),
         patch('merge', 'secrets/a', {'type': 'other'}, 422,
               failure('Invalid', Pattern('type: Invalid value: "other": field is immutable')))),
    Case('secret-data-must-be-base64',
         post('secrets', {'metadata': {'name': 'a'}, 'data': {'k': '%%'}}, 400,
              failure('BadRequest', Pattern('illegal base64 data')))),
    Case('service-account-shape',
         post('serviceaccounts', {'metadata': {'name': 'robot'}}, 201,
              {'kind': 'ServiceAccount', 'metadata': {'name': 'robot'}})),
    Case('namespace-shape',
         get('/api/v1/namespaces/$ns', 200,
             {'spec': {'finalizers': ['kubernetes']}, 'status': {'phase': 'Active'}})),
    Case('lists-have-a-version',
         get('configmaps', 200, {'kind': 'ConfigMapList', 'apiVersion': 'v1', 'metadata':
                                 {'resourceVersion': Pattern('^[0-9]+$')}, 'items': PRESENT})),
    Case('managed-fields-are-kept',
         post('configmaps', config_map(data={'k': 'v'}), 201,
              {'metadata': {'managedFields': Having({
                  'manager': 'tester', 'operation': 'Update', 'apiVersion': 'v1',
                  'fieldsType': 'FieldsV1',
                  'fieldsV1': {'f:data': {'.': {}, 'f:k': {}}}})}},
              headers={'User-Agent': 'tester/1.0'})),
    Case('replacements-must-name-their-object',
         post('configmaps', config_map(), 201),
         put('configmaps/a', {'data': {}}, 400, failure(
             'BadRequest', 'the name of the object (a based on URL) was undeterminable: name must be '
             'provided')),
         put('configmaps/a', config_map('b'), 400, failure(
             'BadRequest', 'the name of the object (b) does not match the name on the URL (a)')),
         put('configmaps/a', {'metadata': {'name': 'a', 'namespace': 'other'}}, 400, failure(
             'BadRequest', 'the namespace of the object (other) does not match the namespace on the '
             'request ($ns)'))),
    Case('empty-lists-and-maps-are-as-good-as-none',
         post('configmaps', {'metadata': {'name': 'a', 'labels': {}, 'annotations': {},
                                          'finalizers': [], 'ownerReferences': []},
                             'data': {}, 'binaryData': {}}, 201,
              {'metadata': {'labels': ABSENT, 'annotations': ABSENT, 'finalizers': ABSENT,
                            'ownerReferences': ABSENT}, 'data': ABSENT, 'binaryData': ABSENT}),
         post('/apis/networking.k8s.io/v1/namespaces/$ns/networkpolicies',
              {'metadata': {'name': 'a'}, 'spec': {'podSelector': {'matchLabels': {}},
                                                   'ingress': []}}, 201,
              {'spec': {'podSelector': {'matchLabels': ABSENT}, 'ingress': ABSENT}}),
         post('services', {'metadata': {'name': 'a'}, 'spec': {
             'ports': [{'port': 1}], 'selector': {}, 'externalIPs': []}}, 201,
              {'spec': {'selector': ABSENT, 'externalIPs': ABSENT}})),
    Case('a-pods-empty-parts',
         post('pods', {'metadata': {'name': 'a'}, 'spec': {
             'nodeSelector': {}, 'containers': [{
                 'name': 'c', 'image': 'i', 'env': [], 'command': [], 'ports': [],
                 'resources': {'limits': {}}, 'securityContext': {}}]}}, 201,
              {'spec': {'nodeSelector': ABSENT, 'containers': [{
                  'env': ABSENT, 'command': ABSENT, 'ports': ABSENT, 'resources': {'limits': ABSENT},
                  'securityContext': {}}]}}), accounts=True),
    Case('a-daemon-sets-template-is-counted',
         post('/apis/apps/v1/namespaces/$ns/daemonsets', {'metadata': {'name': 'd'}, 'spec': {
             'selector': {'matchLabels': {'a': 'b'}}, 'template': {
                 'metadata': {'labels': {'a': 'b'}}, 'spec': {
                     'nodeSelector': {'no': 'where'},
                     'containers': [{'name': 'c', 'image': 'i'}]}}}}, 201,
              {'metadata': {'annotations': {'deprecated.daemonset.template.generation': '1'}}}),
         patch('merge', '/apis/apps/v1/namespaces/$ns/daemonsets/d',
               {'metadata': {'annotations': None}}, 200,
               {'metadata': {'annotations': {'deprecated.daemonset.template.generation': '1'}}}),
         patch('merge', '/apis/apps/v1/namespaces/$ns/daemonsets/d',
               {'spec': {'template': {'metadata': {'annotations': {'new': 'yes'}}}}}, 200,
               {'metadata': {'annotations': {'deprecated.daemonset.template.generation': '2'}}})),
    Case('what-a-node-is-given-once',
         post('/api/v1/nodes', {'metadata': {'name': 'n-$run'}}, 201, {'spec': PRESENT}),
         patch('strategic', '/api/v1/nodes/n-$run', {'spec': {'podCIDR': '10.0.0.0/24'}}, 200),
         patch('strategic', '/api/v1/nodes/n-$run', {'spec': {'podCIDR': '10.0.1.0/24'}}, 422,
               failure('Invalid', 'Node "n-$run" is invalid: [spec.podCIDRs: Forbidden: node updates '
                       'may not change podCIDR except from "" to valid, []: Forbidden: node updates '
                       'may only change labels, taints, or capacity (or configSource, if the '
                       'DynamicKubeletConfig feature gate is enabled)]')),
         delete('/api/v1/nodes/n-$run', 200)),
    Case('a-service-asks-for-an-address-that-is-none-of-the-clusters',
         post('services', {'metadata': {'name': 's'}, 'spec': {
             'clusterIP': '1.2.3.4', 'ports': [{'port': 80}]}}, 422, failure('Invalid', Pattern(
                 r'spec.clusterIPs: Invalid value: \[\]string\{"1.2.3.4"\}: failed to allocated '
                 r'ip:1.2.3.4 with error:provided IP is not in the valid range. The range of valid '
                 r'IPs is 10\.[0-9.]+/[0-9]+$')))),
    Case('null-in-a-map-of-texts-is-an-empty-one',
         post('configmaps', {'metadata': {'name': 'a', 'labels': {'x': None},
                                          'annotations': {'y': None}}, 'data': {'z': None}}, 201,
              {'metadata': {'labels': {'x': ''}, 'annotations': {'y': ''}}, 'data': {'z': ''}}),
         put('configmaps/a', {'metadata': {'name': 'a', 'labels': {'w': None}}}, 200,
             {'metadata': {'labels': {'w': '', 'x': ABSENT}}})),
    Case('a-name-is-taken-until-its-object-is-gone',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['x.io/a']}}, 201),
         delete('configmaps/a', 200),
         post('configmaps', config_map(), 409, failure(
             'AlreadyExists', 'object is being deleted: configmaps "a" already exists', 409,
             name='a', kind='configmaps')),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': None}}, 200),
         post('configmaps', config_map(), 201)),
    Case('deletions-that-meant-another-object',
         post('configmaps', config_map(), 201, save={'uid': 'metadata.uid'}),
         delete('configmaps/a', 409, failure(
             'Conflict', 'Operation cannot be fulfilled on ConfigMap "a": the UID in the '
             'precondition (x) does not match the UID in record ($uid). The object might have been '
             'deleted and then recreated', 409, name='a', kind='ConfigMap'),
             {'preconditions': {'uid': 'x'}})),
    Case('orphans-by-query',
         post('configmaps', config_map(), 201),
         delete('configmaps/a?orphanDependents=true', 200,
                {'metadata': {'finalizers': ['orphan'], 'deletionTimestamp': PRESENT}})),
]
