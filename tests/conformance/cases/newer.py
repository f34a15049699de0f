"""Kinds of later Kubernetes: devices and claims, ranges of services, classes of volumes, policies."""

from conformance.case import ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, get, patch, post

SINCE = 37
DEVICES = '/apis/resource.k8s.io/v1'
CLAIMS = f'{DEVICES}/namespaces/$ns/resourceclaims'
POLICIES = '/apis/admissionregistration.k8s.io/v1'


def claim(**more):
    return {'metadata': {'name': 'c'}, 'spec': {'devices': {'requests': [
        {'name': 'gpu', 'exactly': {'deviceClassName': 'gpu-$run', **more}}]}}}


def allocation(request='gpu'):
    return {'status': {'allocation': {'devices': {'results': [
        {'request': request, 'driver': 'gpu.example.com', 'pool': 'n', 'device': 'gpu-0'}]}}}}


def policy(expression, **more):
    return {'metadata': {'name': 'p-$run.example.com'}, 'spec': {
        'matchConstraints': {'resourceRules': [
            {'operations': ['CREATE'], 'apiGroups': [''], 'apiVersions': ['v1'], 'resources': ['configmaps']}]},
        'validations': [{'expression': expression}], **more}}


BINDING = {'metadata': {'name': 'p-$run.example.com'}, 'spec': {
    'policyName': 'p-$run.example.com', 'validationActions': ['Deny'],
    'matchResources': {'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': '$ns'}}}}}

# The user who makes the config map may make config maps; an account that does not exist may not.
ASKS = ("(object.data.of == 'user' ? authorizer : authorizer.serviceAccount('$ns', 'nobody'))"
        ".group('').resource('configmaps').namespace('$ns').check('create').allowed()")
# What the language and its libraries have beyond what other cases use.
SPEAKS = ("size(bytes(object.data.text)) == 7 && string(b'a\\x62' + br'c') == 'abc' && b'a' < bytes('b') && "
          "type(b'a') == bytes && bool('t') && "
          "{'a': 'x'}.transformMapEntry(k, v, {v: k})['x'] == 'a' && [3].exists_one(i, v, v == i + 3) && "
          "authorizer.requestResource.check('create').allowed() && "
          "!authorizer.path('/metrics').check('get').errored()")

CASES = [
    Case('claim-defaults',
         post(CLAIMS, claim(), 201, {'spec': {'devices': {'requests': [{'name': 'gpu', 'exactly': {
             'deviceClassName': 'gpu-$run', 'allocationMode': 'ExactCount', 'count': 1}}]}}}),
         delete(f'{CLAIMS}/c', 200)),
    Case('claim-of-all-has-no-count',
         post(CLAIMS, claim(allocationMode='All', count=2), 422, {'details': {'causes': Having(
             {'reason': 'FieldValueInvalid', 'field': 'spec.devices.requests[0].exactly.count'})}})),
    Case('claim-status-is-written-apart',
         post(CLAIMS, {**claim(), **allocation()}, 201, {'status': {'allocation': ABSENT}}),
         patch('merge', f'{CLAIMS}/c', allocation(), 200, {'status': {'allocation': ABSENT}}),
         patch('merge', f'{CLAIMS}/c/status', allocation('nic'), 422),
         patch('merge', f'{CLAIMS}/c/status', allocation(), 200, {'status': {'allocation': PRESENT}}),
         patch('merge', f'{CLAIMS}/c', {'spec': {'devices': None}}, 422),
         delete(f'{CLAIMS}/c', 200)),
    Case('slices-are-selected',
         post(f'{DEVICES}/resourceslices', {'metadata': {'name': 's-$run'}, 'spec': {
             'driver': 'd-$run.example.com', 'nodeName': 'n', 'pool': {'name': 'n', 'resourceSliceCount': 1},
             'devices': [{'name': 'gpu-0', 'attributes': {'model': {'string': 'H100'}}}]}}, 201,
              {'spec': {'pool': {'generation': 0}}, 'metadata': {'generation': 1}}),
         get(f'{DEVICES}/resourceslices?fieldSelector=spec.driver=d-$run.example.com', 200,
             {'items': Having({'metadata': {'name': 's-$run'}})}),
         get(f'{DEVICES}/resourceslices?fieldSelector=spec.driver=d-$run.example.org', 200, {'items': []}),
         delete(f'{DEVICES}/resourceslices/s-$run', 200)),
    Case('range-of-services',
         get('/apis/networking.k8s.io/v1/servicecidrs/kubernetes', 200, {'spec': {'cidrs': PRESENT}}),
         post('/apis/networking.k8s.io/v1/servicecidrs', {'metadata': {'name': 'r-$run'}, 'spec': {'cidrs': []}}, 422)),
    Case('volume-attributes',
         post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
             'metadata': {'name': 'v-$run'}, 'driverName': 'csi.example.com', 'parameters': {'iops': '1'}}),
         patch('merge', '/apis/storage.k8s.io/v1/volumeattributesclasses/v-$run', {'parameters': {'iops': '2'}}, 422),
         delete('/apis/storage.k8s.io/v1/volumeattributesclasses/v-$run', 200)),
    Case('policy-refuses',
         post(f'{POLICIES}/validatingadmissionpolicies',
              policy("has(object.data) && 'team' in object.data"), 201,
              {'spec': {'failurePolicy': 'Fail', 'matchConstraints': {'matchPolicy': 'Equivalent'}}}),
         post(f'{POLICIES}/validatingadmissionpolicybindings', BINDING),
         eventually(post('configmaps', {'metadata': {'generateName': 'm-'}}, 422, {
             'reason': 'Invalid', 'message': Pattern(
                 ".*ValidatingAdmissionPolicy 'p-$run.example.com' with binding 'p-$run.example.com' denied request: "
                 "failed expression: has\\(object.data\\) && 'team' in object.data")})),
         post('configmaps', {'metadata': {'name': 'm'}, 'data': {'team': 'a'}}),
         delete(f'{POLICIES}/validatingadmissionpolicybindings/p-$run.example.com', 200),
         delete(f'{POLICIES}/validatingadmissionpolicies/p-$run.example.com', 200)),
    Case('policy-asks-for-rights',
         post(f'{POLICIES}/validatingadmissionpolicies', policy(ASKS)),
         post(f'{POLICIES}/validatingadmissionpolicybindings', BINDING),
         eventually(post('configmaps', {'metadata': {'generateName': 'm-'}, 'data': {'of': 'account'}}, 422)),
         post('configmaps', {'metadata': {'name': 'm'}, 'data': {'of': 'user'}}),
         delete(f'{POLICIES}/validatingadmissionpolicybindings/p-$run.example.com', 200),
         delete(f'{POLICIES}/validatingadmissionpolicies/p-$run.example.com', 200)),
    Case('policy-speaks-the-whole-language',
         post(f'{POLICIES}/validatingadmissionpolicies', policy(SPEAKS)),
         post(f'{POLICIES}/validatingadmissionpolicybindings', BINDING),
         eventually(post('configmaps', {'metadata': {'generateName': 'm-'}, 'data': {'text': 'strasse!'}}, 422)),
         post('configmaps', {'metadata': {'name': 'm'}, 'data': {'text': 'straße'}}),
         delete(f'{POLICIES}/validatingadmissionpolicybindings/p-$run.example.com', 200),
         delete(f'{POLICIES}/validatingadmissionpolicies/p-$run.example.com', 200)),
    Case('policy-messages-ask-for-no-rights',
         post(f'{POLICIES}/validatingadmissionpolicies', policy('true', validations=[
             {'expression': 'true', 'messageExpression': "authorizer.path('/x').check('get').reason()"}]), 422, {
                 'details': {'causes': Having({'reason': 'FieldValueInvalid',
                                               'field': 'spec.validations[0].messageExpression'})}})),
    Case('policy-with-a-wrong-expression',
         post(f'{POLICIES}/validatingadmissionpolicies', policy('object.'), 422, {'details': {'causes': Having(
             {'reason': 'FieldValueInvalid', 'field': 'spec.validations[0].expression', 'message': PRESENT})}})),
    Case('named-twice',
         post('configmaps?fieldValidation=Strict', '{"metadata":{"name":"m"},"data":{"a":"1","a":"2"}}', 400, {
             'message': Pattern('.*strict decoding error: duplicate field "data.a"')}),
         post('configmaps', '{"metadata":{"name":"m"},"data":{"a":"1","a":"2"}}', 201, {'data': {'a': '2'}},
              warnings=['duplicate field "data.a"'])),
]
