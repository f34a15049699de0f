"""CustomResourceDefinitions and the objects they make possible."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure,
                              get, patch, post, put)

CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
HERE = '/apis/$run.example.com/v1/namespaces/$ns/jobs'
SCHEMA = {
    'type': 'object', 'properties': {
        'spec': {'type': 'object', 'required': ['size'], 'properties': {
            'size': {'type': 'integer', 'minimum': 1, 'maximum': 9},
            'mode': {'type': 'string', 'enum': ['fast', 'slow'], 'default': 'fast'},
            'word': {'type': 'string', 'pattern': '^[a-z]+$', 'maxLength': 4},
            'port': {'x-kubernetes-int-or-string': True},
            'free': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True},
            'none': {'type': 'string', 'nullable': True},
            'list': {'type': 'array', 'maxItems': 2, 'items': {'type': 'object', 'properties': {
                'k': {'type': 'string'}, 'v': {'type': 'integer', 'default': 3}},
                'required': ['k']},
                'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k']}}},
        'status': {'type': 'object', 'properties': {
            'phase': {'type': 'string'}, 'replicas': {'type': 'integer'}}}}}


def definition(versions=None, **more):
    return {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
            'metadata': {'name': 'jobs.$run.example.com'},
            'spec': {'group': '$run.example.com', 'scope': 'Namespaced',
                     'names': {'plural': 'jobs', 'singular': 'job', 'kind': 'Job',
                               'shortNames': ['j$run'], 'categories': ['all-$run']},
                     'versions': versions or [{
                         'name': 'v1', 'served': True, 'storage': True,
                         'schema': {'openAPIV3Schema': SCHEMA},
                         'subresources': {'status': {}, 'scale': {
                             'specReplicasPath': '.spec.size',
                             'statusReplicasPath': '.status.replicas'}},
                         'additionalPrinterColumns': [
                             {'name': 'Size', 'type': 'integer', 'jsonPath': '.spec.size'},
                             {'name': 'Mode', 'type': 'string', 'jsonPath': '.spec.mode',
                              'description': 'how', 'priority': 1}]}], **more}}


def job(name='a', size=1, **spec):
    return {'apiVersion': '$run.example.com/v1', 'kind': 'Job', 'metadata': {'name': name},
            'spec': {'size': size, **spec}}


def defined(name, *steps):
    return Case(name, post(CRDS, definition(), 201), eventually(get(HERE, 200)),
                eventually(post(HERE, job('probe'), 201)), delete(HERE + '/probe', 200),
                *steps, delete(CRDS + '/jobs.$run.example.com', 200))


def invalid(message):
    return failure('Invalid', Pattern(message), 422)


CASES = [
    Case('definition-becomes-established',
         post(CRDS, definition(), 201, {'spec': {'conversion': {'strategy': 'None'}}}),
         eventually(get(CRDS + '/jobs.$run.example.com', 200, {'status': {
             'acceptedNames': {'plural': 'jobs', 'kind': 'Job', 'listKind': 'JobList'},
             'storedVersions': ['v1'], 'conditions': Having(
                 {'type': 'NamesAccepted', 'status': 'True', 'reason': 'NoConflicts'},
                 {'type': 'Established', 'status': 'True', 'reason': 'InitialNamesAccepted'})}})),
         delete(CRDS + '/jobs.$run.example.com', 200),
         eventually(get(CRDS + '/jobs.$run.example.com', 404))),
    Case('definition-needs-a-schema',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': True}]), 422, invalid(
             r'spec\.versions\[0\]\.schema\.openAPIV3Schema: Required value: schemas are '
             'required'))),
    Case('definition-name-must-match',
         post(CRDS, {**definition(), 'metadata': {'name': 'x.$run.example.com'}}, 422, invalid(
             r'metadata\.name: Invalid value: "x\.$run\.example\.com": must be '
             r'spec\.names\.plural\+"\."\+spec\.group'))),
    Case('definition-needs-one-stored-version',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': False,
                                 'schema': {'openAPIV3Schema': SCHEMA}}]), 422, invalid(
             'must have exactly one version marked as storage version'))),
    Case('definition-schema-must-be-structural',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': True, 'schema': {
             'openAPIV3Schema': {'type': 'object', 'properties': {'spec': {}}}}}]), 422, invalid(
             r'properties\[spec\]\.type: Required value: must not be empty for specified object '
             'fields'))),
    defined('discovery', eventually(get('/apis/$run.example.com/v1', 200, {'resources': Having(
        {'name': 'jobs', 'singularName': 'job', 'namespaced': True, 'kind': 'Job',
         'shortNames': ['j$run'], 'categories': ['all-$run']},
        {'name': 'jobs/status'}, {'name': 'jobs/scale', 'kind': 'Scale'})}))),
    defined('defaults-and-pruning', post(HERE, job(size=2, nonesuch=1, free={'any': [1]},
                                                   list=[{'k': 'x', 'w': 1}]), 201, {
        'spec': {'size': 2, 'mode': 'fast', 'nonesuch': ABSENT, 'free': {'any': [1]},
                 'list': [{'k': 'x', 'v': 3, 'w': ABSENT}]}, 'metadata': {'generation': 1}})),
    defined('nullable', post(HERE, job(none=None), 201, {'spec': {'none': None}}),
            post(HERE, job('b', mode=None), 201, {'spec': {'mode': 'fast'}})),
    defined('required', post(HERE, {'metadata': {'name': 'a'},
                                    'apiVersion': '$run.example.com/v1', 'kind': 'Job',
                                    'spec': {}}, 422, failure(
        'Invalid', 'Job.$run.example.com "a" is invalid: spec.size: Required value', 422, name='a',
        group='$run.example.com', kind='Job', causes=[{
            'reason': 'FieldValueRequired', 'message': 'Required value', 'field': 'spec.size'}]))),
    defined('bounds', post(HERE, job(size=10), 422, invalid(
        r'spec\.size: Invalid value: 10: spec\.size in body should be less than or equal to 9')),
        post(HERE, job(size=0), 422, invalid(
            r'spec\.size: Invalid value: 0: spec\.size in body should be greater than or equal to '
            '1'))),
    defined('types', post(HERE, job(size='x'), 422, invalid(
        r'spec\.size: Invalid value: "string": spec\.size in body must be of type integer: '
        '"string"'))),
    defined('enums', post(HERE, job(mode='odd'), 422, invalid(
        r'spec\.mode: Unsupported value: "odd": supported values: "fast", "slow"'))),
    defined('patterns-and-lengths', post(HERE, job(word='ABC'), 422, invalid(
        r"spec\.word: Invalid value: \"ABC\": spec\.word in body should match '\^\[a-z\]\+\$'")),
        post(HERE, job(word='abcde'), 422, invalid(
            r'spec\.word: (Invalid value|Too long).*4'))),
    defined('int-or-string', post(HERE, job(port=80), 201), post(HERE, job('b', port='http'), 201),
            post(HERE, job('c', port=True), 422, invalid(
                r'spec\.port: Invalid value: "boolean": spec\.port in body must be of type '
                r'(integer,string|integer or string): "boolean"'))),
    defined('list-maps', post(HERE, job(list=[{'k': 'x'}, {'k': 'x'}]), 422, invalid(
        r'spec\.list\[1\]: Duplicate value: (map\[string\]interface \{\})?\{"k":"x"\}')),
        post(HERE, job(list=[{'k': 'x'}, {'k': 'y'}, {'k': 'z'}]), 422, invalid(
            r'spec\.list: (Invalid value: 3|Too many: 3): (spec\.list in body should|must) have at '
            'most 2 items'))),
    defined('status-is-its-own', post(HERE, {**job(), 'status': {'phase': 'Done'}}, 201,
                                      {'status': ABSENT}),
            patch('merge', HERE + '/a/status', {'status': {'phase': 'Done'}, 'spec': {'size': 5}},
                  200, {'status': {'phase': 'Done'}, 'spec': {'size': 1},
                        'metadata': {'generation': 1}}),
            patch('merge', HERE + '/a', {'spec': {'size': 2}, 'status': {'phase': 'No'}}, 200,
                  {'status': {'phase': 'Done'}, 'metadata': {'generation': 2}})),
    defined('scale', post(HERE, job(size=2), 201),
            patch('merge', HERE + '/a/status', {'status': {'replicas': 1}}, 200),
            get(HERE + '/a/scale', 200, {'kind': 'Scale', 'spec': {'replicas': 2},
                                         'status': {'replicas': 1}}),
            patch('merge', HERE + '/a/scale', {'spec': {'replicas': 3}}, 200,
                  {'spec': {'replicas': 3}}),
            get(HERE + '/a', 200, {'spec': {'size': 3}})),
    defined('columns', post(HERE, job(size=4), 201), get(HERE, 200, {
        'kind': 'Table', 'columnDefinitions': [
            {'name': 'Name'}, {'name': 'Size', 'type': 'integer', 'priority': 0},
            {'name': 'Mode', 'type': 'string', 'priority': 1, 'description': 'how'}],
        'rows': [{'cells': ['a', 4, 'fast']}]},
        headers={'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io'})),
    defined('no-strategic-patch', post(HERE, job(), 201),
            patch('strategic', HERE + '/a', {'spec': {'size': 2}}, 415,
                  failure('UnsupportedMediaType'))),
    defined('update-needs-a-version', post(HERE, job(), 201), put(HERE + '/a', job(size=2), 422,
            invalid(r'metadata\.resourceVersion: Invalid value: (0x0|0|""): must be specified for '
                    'an update'))),
    defined('server-side-apply', patch('apply', HERE + '/a?fieldManager=one',
                                       job(size=2, list=[{'k': 'x', 'v': 1}]), 201),
            patch('apply', HERE + '/a?fieldManager=two', job(size=3), 409, failure(
                'Conflict', Pattern('conflict with "one".*: .spec.size')))),
    defined('selectors-and-watch', post(HERE, job(), 201),
            get(HERE + '?fieldSelector=metadata.name%3Da', 200, {'items': [PRESENT]}),
            get(HERE + '?fieldSelector=spec.size%3D1', 400, failure('BadRequest', Pattern(
                'field label not supported: spec.size')))),
    Case('two-versions',
         post(CRDS, definition([
             {'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': SCHEMA}},
             {'name': 'v2', 'served': True, 'storage': False,
              'schema': {'openAPIV3Schema': SCHEMA}}]), 201),
         eventually(post(HERE, job(), 201)),
         eventually(get('/apis/$run.example.com/v2/namespaces/$ns/jobs/a', 200,
                        {'apiVersion': '$run.example.com/v2', 'spec': {'size': 1}})),
         delete(CRDS + '/jobs.$run.example.com', 200)),
    Case('names-conflict',
         post(CRDS, definition(), 201), eventually(get(HERE, 200)),
         post(CRDS, {**definition(), 'metadata': {'name': 'others.$run.example.com'}, 'spec': {
             **definition()['spec'], 'names': {'plural': 'others', 'kind': 'Job'}}}, 201),
         eventually(get(CRDS + '/others.$run.example.com', 200, {'status': {'conditions': Having(
             {'type': 'NamesAccepted', 'status': 'False', 'reason': Pattern('Conflict$')},
             {'type': 'Established', 'status': 'False'})}})),
         delete(CRDS + '/others.$run.example.com', 200),
         delete(CRDS + '/jobs.$run.example.com', 200)),
    Case('deleting-a-definition-deletes-its-objects',
         post(CRDS, definition(), 201), eventually(post(HERE, job(), 201)),
         delete(CRDS + '/jobs.$run.example.com', 200),
         eventually(get(CRDS + '/jobs.$run.example.com', 404)),
         post(CRDS, definition(), 201), eventually(get(HERE, 200, {'items': []})),
         delete(CRDS + '/jobs.$run.example.com', 200)),
]
