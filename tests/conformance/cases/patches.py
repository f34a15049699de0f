"""The four patch types, and who owns which field."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, failure, get, invalid, patch,
                              post, put)

DEPLOYMENTS = '/apis/apps/v1/namespaces/$ns/deployments'


def deployment(name='web', containers=None, **spec):
    containers = containers or [{'name': 'c', 'image': 'i'}]
    return {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name},
            'spec': {'replicas': 0, 'selector': {'matchLabels': {'app': name}},
                     'template': {'metadata': {'labels': {'app': name}},
                                  'spec': {'containers': containers}}, **spec}}


def apply_map(data, manager, status=200, expect=None, force=False, name='a'):
    query = f'fieldManager={manager}' + ('&force=true' if force else '')
    return patch('apply', f'configmaps/{name}?{query}',
                 {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name},
                  'data': data}, status, expect)


def in_template(value):
    return {'spec': {'template': {'spec': value}}}


# Patches that Kubernetes cannot read as strategic ones: it answers 500, and without a reason.
UNREADABLE = [
    (in_template({'containers': [{'image': 'x'}]}),
     'map: map[image:x] does not contain declared merge key: name'),
    (in_template({'containers': [{'$patch': 'delete'}]}),
     'map: map[$patch:delete] does not contain declared merge key: name'),
    (in_template({'containers': [{'$patch': 'burn', 'name': 'c'}]}),
     'unknown patch type: burn in map: map[$patch:burn name:c]'),
    ({'spec': {'$patch': 'burn'}}, 'unknown patch type: burn in map: map[$patch:burn]'),
    (in_template({'$setElementOrder/containers': [{'name': 'z'}], 'containers': [{'name': 'c'}]}),
     "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n"
     '[map[name:z]]\n'),
    (in_template({'$setElementOrder/containers': 'q'}),
     'expected a []interface {}, but received a string'),
]


def unreadable(body, message):
    return patch('strategic', f'{DEPLOYMENTS}/web', body, 500,
                 {'message': message, 'reason': ABSENT, 'details': ABSENT, 'code': 500})


def misnamed(metadata, message):
    return patch('merge', f'{DEPLOYMENTS}/web', {'metadata': metadata}, 400,
                 failure('BadRequest', message, 400))


MARK = {'deletionTimestamp': '2030-01-01T00:00:00Z'}
MARKED = failure('Invalid', 'ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: '
                 '2030-01-01 00:00:00 +0000 UTC: field is immutable', 422)


CASES = [
    Case('only-a-deletion-marks-an-object',
         post('configmaps?dryRun=All', {'metadata': {'name': 'a', **MARK}}, 201,
              {'metadata': {'deletionTimestamp': ABSENT}}),
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['x.io/a']}}, 201),
         patch('merge', 'configmaps/a', {'metadata': MARK}, 422, MARKED),
         patch('strategic', 'configmaps/a', {'metadata': MARK}, 422, MARKED),
         patch('json', 'configmaps/a', [{'op': 'add', 'path': '/metadata/deletionTimestamp',
                                         'value': MARK['deletionTimestamp']}], 422, MARKED),
         patch('apply', 'configmaps/a?fieldManager=m',
               {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a', **MARK}}, 422,
               MARKED),
         put('configmaps/a', {'metadata': {'name': 'a', **MARK}}, 422, MARKED),
         patch('merge', 'configmaps/a', {'metadata': {'deletionGracePeriodSeconds': 5}}, 422,
               failure('Invalid', 'ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: '
                       'Invalid value: 5: field is immutable', 422)),
         delete('configmaps/a', 200, save={'time': 'metadata.deletionTimestamp'}),
         patch('merge', 'configmaps/a', {'metadata': MARK}, 200,
               {'metadata': {'deletionTimestamp': '$time'}}),
         patch('merge', 'configmaps/a', {'metadata': {'deletionTimestamp': None,
                                                      'deletionGracePeriodSeconds': None}}, 200,
               {'metadata': {'deletionTimestamp': '$time', 'deletionGracePeriodSeconds': 0}}),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': None}}, 200)),
    Case('strategic-patches-that-cannot-be-read', post(DEPLOYMENTS, deployment(), 201),
         *[unreadable(body, message) for body, message in UNREADABLE],
         patch('strategic', f'{DEPLOYMENTS}/web',
               in_template({'$retainKeys': ['name'], 'volumes': []}), 400,
               failure('BadRequest', 'invalid patch format of retainKeys', 400))),
    Case('elements-of-a-list-that-was-not-there-need-no-key',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         patch('strategic', 'configmaps/a', {'metadata': {'ownerReferences': [
             {'apiVersion': 'v1', 'kind': 'X', 'name': 'x'}]}}, 422,
             invalid('metadata.ownerReferences[0].uid: Required value')), since=37),
    Case('patches-must-keep-names', post(DEPLOYMENTS, deployment(), 201),
         misnamed({'name': None}, 'the name of the object (web based on URL) was undeterminable: '
                  'name must be provided'),
         misnamed(None, 'the name of the object (web based on URL) was undeterminable: '
                  'name must be provided'),
         patch('merge', f'{DEPLOYMENTS}/web', {'metadata': {'namespace': None}}, 200,
               {'metadata': {'namespace': '$ns'}})),
    Case('patches-must-keep-namespaces', post(DEPLOYMENTS, deployment(), 201),
         misnamed({'namespace': 'other'}, 'the namespace of the provided object does not match the namespace sent on '
                  'the request'), since=37),
    Case('apply-of-an-object-that-was-there-once',
         patch('apply', 'configmaps/a?fieldManager=one',
               {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a', 'uid': 'u'}}, 409,
               failure('Conflict', 'Operation cannot be fulfilled on configmaps "a": uid mismatch: '
                       'the provided object specified uid u, and no existing object was found'))),
    Case('the-last-finalizer-leaves-no-list',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['a.b/c']}}, 201),
         patch('strategic', 'configmaps/a',
               {'metadata': {'$deleteFromPrimitiveList/finalizers': ['a.b/c']}}, 200,
               {'metadata': {'finalizers': ABSENT}})),
    Case('merge-patch',
         post('configmaps', {'metadata': {'name': 'a'}, 'data': {'x': '1', 'y': '2'}}, 201),
         patch('merge', 'configmaps/a', {'data': {'x': None, 'z': '3'}}, 200,
               {'data': {'x': ABSENT, 'y': '2', 'z': '3'}})),
    Case('json-patch',
         post('configmaps', {'metadata': {'name': 'a'}, 'data': {'x': '1'}}, 201),
         patch('json', 'configmaps/a', [{'op': 'test', 'path': '/data/x', 'value': '1'},
                                        {'op': 'add', 'path': '/data/y', 'value': '2'},
                                        {'op': 'remove', 'path': '/data/x'}], 200,
               {'data': {'y': '2', 'x': ABSENT}})),
    Case('json-patch-test-fails',
         post('configmaps', {'metadata': {'name': 'a'}, 'data': {'x': '1'}}, 201),
         patch('json', 'configmaps/a', [{'op': 'test', 'path': '/data/x', 'value': '2'}], 422,
               failure('Invalid', 'the server rejected our request due to an error in our '
                       'request', 422))),
    Case('json-patch-of-missing-path',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         patch('json', 'configmaps/a', [{'op': 'remove', 'path': '/data/x'}], 422,
               failure('Invalid', None, 422))),
    Case('json-patch-that-is-none',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         patch('json', 'configmaps/a', '{"a": 1}', 400, failure('BadRequest'))),
    Case('patch-of-missing-object',
         patch('merge', 'configmaps/none', {'data': {}}, 404, failure('NotFound'))),
    Case('patch-cannot-rename',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         patch('merge', 'configmaps/a', {'metadata': {'name': 'b'}}, 400,
               failure('BadRequest', 'the name of the object (b) does not match the name on the '
                       'URL (a)'))),
    Case('patch-with-stale-version',
         post('configmaps', {'metadata': {'name': 'a'}}, 201,
              save={'rv': 'metadata.resourceVersion'}),
         patch('merge', 'configmaps/a', {'data': {'x': '1'}}, 200),
         patch('merge', 'configmaps/a', {'metadata': {'resourceVersion': '$rv'},
                                         'data': {'x': '2'}}, 409, failure('Conflict'))),
    Case('unknown-patch-type',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         patch('merge', 'configmaps/a', {}, 415, failure('UnsupportedMediaType'),
               headers={'Content-Type': 'text/plain'})),
    Case('strategic-merges-containers-by-name',
         post(DEPLOYMENTS, deployment(containers=[{'name': 'a', 'image': '1'},
                                                  {'name': 'b', 'image': '2'}]), 201),
         patch('strategic', DEPLOYMENTS + '/web',
               in_template({'containers': [{'name': 'b', 'image': '3'}]}), 200,
               in_template({'containers': [{'name': 'a', 'image': '1'},
                                           {'name': 'b', 'image': '3'}]})),
         patch('strategic', DEPLOYMENTS + '/web',
               in_template({'containers': [{'name': 'a', '$patch': 'delete'}]}), 200,
               in_template({'containers': [{'name': 'b', 'image': '3'}]}))),
    Case('strategic-replaces-on-request',
         post(DEPLOYMENTS, deployment(), 201),
         patch('strategic', DEPLOYMENTS + '/web',
               in_template({'containers': [{'$patch': 'replace'}, {'name': 'n', 'image': '9'}]}),
               200, in_template({'containers': [{'name': 'n', 'image': '9'}]}))),
    Case('strategic-orders-elements',
         post(DEPLOYMENTS, deployment(containers=[{'name': 'a', 'image': '1'},
                                                  {'name': 'b', 'image': '2'}]), 201),
         patch('strategic', DEPLOYMENTS + '/web',
               in_template({'$setElementOrder/containers': [{'name': 'b'}, {'name': 'a'}],
                            'containers': []}), 200,
               in_template({'containers': [{'name': 'b'}, {'name': 'a'}]}))),
    Case('strategic-merges-env-and-ports',
         post(DEPLOYMENTS, deployment(containers=[
             {'name': 'c', 'image': 'i', 'env': [{'name': 'X', 'value': '1'}],
              'ports': [{'containerPort': 80}]}]), 201),
         patch('strategic', DEPLOYMENTS + '/web', in_template({'containers': [
             {'name': 'c', 'env': [{'name': 'Y', 'value': '2'}],
              'ports': [{'containerPort': 81}]}]}), 200,
             in_template({'containers': [{
                 'env': [{'name': 'Y', 'value': '2'}, {'name': 'X', 'value': '1'}],
                 'ports': [{'containerPort': 81, 'protocol': 'TCP'},
                           {'containerPort': 80, 'protocol': 'TCP'}]}]}))),
    Case('strategic-keeps-only-what-is-retained',
         post(DEPLOYMENTS, deployment(), 201),
         patch('strategic', DEPLOYMENTS + '/web',
               {'spec': {'strategy': {'$retainKeys': ['type'], 'type': 'Recreate'}}}, 200,
               {'spec': {'strategy': {'type': 'Recreate', 'rollingUpdate': ABSENT}}})),
    Case('strategic-deletes-primitives',
         post('configmaps', {'metadata': {'name': 'a', 'finalizers': ['x.io/a', 'x.io/b']}}, 201),
         patch('strategic', 'configmaps/a',
               {'metadata': {'$deleteFromPrimitiveList/finalizers': ['x.io/a']}}, 200,
               {'metadata': {'finalizers': ['x.io/b']}}),
         patch('merge', 'configmaps/a', {'metadata': {'finalizers': None}}, 200)),
    Case('apply-creates', apply_map({'k': 'v'}, 'one', 201, {
        'data': {'k': 'v'}, 'metadata': {'managedFields': [{
            'manager': 'one', 'operation': 'Apply', 'apiVersion': 'v1', 'fieldsType': 'FieldsV1',
            'time': PRESENT, 'fieldsV1': {'f:data': {'f:k': {}}}}]}})),
    Case('apply-needs-a-manager',
         patch('apply', 'configmaps/a', {'apiVersion': 'v1', 'kind': 'ConfigMap',
                                         'metadata': {'name': 'a'}}, 422,
               invalid('fieldManager: Required value'))),
    Case('apply-conflicts',
         apply_map({'k': '1'}, 'one', 201),
         apply_map({'k': '2'}, 'two', 409, failure(
             'Conflict', 'Apply failed with 1 conflict: conflict with "one": .data.k', 409,
             causes=[{'reason': 'FieldManagerConflict', 'message': 'conflict with "one"',
                      'field': '.data.k'}])),
         apply_map({'k': '2'}, 'two', 200, {'data': {'k': '2'}}, force=True),
         apply_map({'k': '1'}, 'one', 409)),
    Case('apply-shares-equal-values',
         apply_map({'k': '1'}, 'one', 201),
         apply_map({'k': '1'}, 'two', 200, {'data': {'k': '1'}, 'metadata': {'managedFields': Having(
             {'manager': 'one', 'fieldsV1': {'f:data': {'f:k': {}}}},
             {'manager': 'two', 'fieldsV1': {'f:data': {'f:k': {}}}})}}),
         apply_map({}, 'two', 200, {'data': {'k': '1'}})),
    Case('apply-takes-back-what-it-gave',
         apply_map({'x': '1', 'y': '2'}, 'one', 201),
         apply_map({'y': '2'}, 'one', 200, {'data': {'x': ABSENT, 'y': '2'}})),
    Case('apply-conflicts-with-updates',
         post('configmaps?fieldManager=writer', {'metadata': {'name': 'a'}, 'data': {'k': '1'}},
              201),
         apply_map({'k': '2'}, 'one', 409, failure(
             'Conflict', Pattern(r'^Apply failed with 1 conflict: conflict with "writer"( using '
                                 r'v1( at .*)?)?: \.data\.k$')))),
    Case('apply-again-changes-nothing',
         apply_map({'k': '1'}, 'one', 201),
         get('configmaps/a', 200, save={'rv': 'metadata.resourceVersion'}),
         apply_map({'k': '1'}, 'one', 200, {'metadata': {'resourceVersion': '$rv'}})),
    Case('apply-list-map',
         patch('apply', 'services/s?fieldManager=one',
               {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'},
                'spec': {'ports': [{'port': 80, 'protocol': 'TCP', 'name': 'a'}]}}, 201),
         patch('apply', 'services/s?fieldManager=two',
               {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'},
                'spec': {'ports': [{'port': 81, 'protocol': 'TCP', 'name': 'b'}]}}, 200,
               {'spec': {'ports': [{'port': 80}, {'port': 81}]}}),
         patch('apply', 'services/s?fieldManager=one',
               {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'},
                'spec': {'ports': [{'port': 82, 'protocol': 'TCP', 'name': 'c'}]}}, 200,
               {'spec': {'ports': Having({'port': 81}, {'port': 82})}})),
    Case('apply-must-not-carry-managed-fields',
         patch('apply', 'configmaps/a?fieldManager=one',
               {'apiVersion': 'v1', 'kind': 'ConfigMap',
                'metadata': {'name': 'a', 'managedFields': [{'manager': 'x'}]}}, 400,
               failure('BadRequest', 'metadata.managedFields must be nil'))),
    Case('managers-of-updates',
         post('configmaps?fieldManager=one', {'metadata': {'name': 'a'}, 'data': {'x': '1'}}, 201),
         patch('merge', 'configmaps/a?fieldManager=two', {'data': {'y': '2'}}, 200,
               {'metadata': {'managedFields': [
                   {'manager': 'one', 'operation': 'Update',
                    'fieldsV1': {'f:data': {'f:x': {}}}},
                   {'manager': 'two', 'operation': 'Update',
                    'fieldsV1': {'f:data': {'f:y': {}}}}]}})),
    Case('managed-fields-can-be-cleared',
         post('configmaps', {'metadata': {'name': 'a'}, 'data': {'x': '1'}}, 201),
         patch('json', 'configmaps/a', [{'op': 'replace', 'path': '/metadata/managedFields',
                                         'value': [{}]}], 200,
               {'metadata': {'managedFields': ABSENT}})),
]
