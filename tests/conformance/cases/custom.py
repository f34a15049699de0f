"""CustomResourceDefinitions and the objects they make possible."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure, get, invalid,
                              mistyped, patch, post, put)

CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
HERE = '/apis/$run.example.com/v1/namespaces/$ns/jobs'
V2 = '/apis/$run.example.com/v2/namespaces/$ns/jobs'
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


def with_default(default):
    return {'name': 'v1', 'served': True, 'storage': True, 'subresources': {'status': {}},
            'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {
                'spec': {'type': 'object', 'properties': {
                    'size': {'type': 'integer'}, 'speed': {'type': 'string', **default}}},
                'status': {'type': 'object', 'properties': {'phase': {'type': 'string'}}}}}}}


def job(name='a', size=1, **spec):
    return {'apiVersion': '$run.example.com/v1', 'kind': 'Job', 'metadata': {'name': name},
            'spec': {'size': size, **spec}}


def defined(name, *steps, **bounds):
    return Case(name, post(CRDS, definition(), 201), eventually(get(HERE, 200)),
                eventually(post(HERE, job('probe'), 201)), delete(HERE + '/probe', 200),
                *steps, delete(CRDS + '/jobs.$run.example.com', 200), **bounds)


# For each format that texts are held to: one that has it, one that has not.
FORMATS = {
    'bsonobjectid': ('507f1f77bcf86cd799439011', 'x'),
    'byte': ('YQ==', ''),
    'cidr': ('10.0.0.0/8', '10.0.0.0/33'),
    'creditcard': ('4111 1111 1111 1111', '4111 1111 1111 1112'),
    'date': ('9999-12-31', '2026-02-29'),
    'date-time': ('9999-12-31t23:59:59.5+01:00', '2026-01-01T24:00:00Z'),
    'duration': ('5 minutes', '5 parsecs'),
    'email': ('Name <a@b.c>', 'a b@c'),
    'hexcolor': ('#fff', 'red'),
    'hostname': ('1.example.com', 'a_b'),
    'ipv4': ('1.2.3.4', '::1'),
    'ipv6': ('fd00::1', '1::2::3'),
    'isbn': ('978-0321751041', '0321751044'),
    'isbn10': ('080442957X', '9780321751041'),
    'isbn13': ('9780321751041', '080442957X'),
    'mac': ('00:00:5e:00:53:01', '00:00:5e:00:53'),
    'rgbcolor': ('rgb(0, 128,255)', 'rgb(0,0,256)'),
    'ssn': ('078-05-1120', '078051120'),
    'uri': ('http://[::1]:80/a%20b?c', 'a/b'),
    'uuid': ('6BA7B8109DAD11D180B400C04FD430C8', '6ba7b810'),
    'uuid3': ('a3bb189e-8bf9-3888-9912-ace4e6543002', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'),
    'uuid4': ('16fd2706-8baf-433b-82eb-8c7fada847da', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'),
    'uuid5': ('886313e1-3b8a-5372-9b90-0c9aee199e5d', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'),
    'semver': ('x', None)}


def with_spec(spec):
    return {'apiVersion': '$run.example.com/v1', 'kind': 'Job', 'metadata': {'name': 'a'},
            'spec': spec}


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
             'spec.versions[0].schema.openAPIV3Schema: Required value'))),
    Case('definition-name-must-match',
         post(CRDS, {**definition(), 'metadata': {'name': 'x.$run.example.com'}}, 422, invalid(
             'metadata.name: Invalid value'))),
    Case('definition-needs-one-stored-version',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': False,
                                 'schema': {'openAPIV3Schema': SCHEMA}}]), 422, invalid(
             'spec.versions: Invalid value', 'status.storedVersions: Invalid value'))),
    Case('definition-schema-must-be-structural',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': True, 'schema': {
             'openAPIV3Schema': {'type': 'object', 'properties': {'spec': {}}}}}]), 422, invalid(
             'spec.validation.openAPIV3Schema.properties[spec].type: Required value'))),
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
        'spec.size: Invalid value')),
        post(HERE, job(size=0), 422, invalid(
            'spec.size: Invalid value'))),
    # Where the number of replicas is not a number, the object cannot be scaled, either.
    defined('types', post(HERE, job(size='x'), 422, invalid(
        mistyped('spec.size: Invalid value'), '.spec.size: Invalid value')), since=37),
    defined('numbers-of-replicas', post(HERE, job(size=-1), 422, invalid(
        'spec.size: Invalid value', '.spec.size: Invalid value')),
        post(HERE, job(), 201),
        patch('merge', HERE + '/a/status', {'status': {'replicas': -1}}, 422, invalid(
            '.status.replicas: Invalid value')), since=37),
    defined('enums', post(HERE, job(mode='odd'), 422, invalid(
        'spec.mode: Unsupported value'))),
    defined('patterns-and-lengths', post(HERE, job(word='ABC'), 422, invalid(
        'spec.word: Invalid value')),
        post(HERE, job(word='abcde'), 422, invalid(
            'spec.word: Too long'))),
    defined('patterns-see-one-line', *[
        post(HERE, job(word=word), 422, invalid('spec.word: Invalid value'))
        for word in ('ab\n', 'ab\nC')]),
    Case('formats',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': True, 'schema': {
             'openAPIV3Schema': {'type': 'object', 'properties': {'spec': {
                 'type': 'object', 'properties': {
                     name: {'type': 'string', 'format': name} for name in FORMATS}}}}}}]), 201),
         eventually(post(HERE, with_spec({k: fine for k, (fine, _) in FORMATS.items()}), 201)),
         *[patch('merge', HERE + '/a', {'spec': {name: wrong}}, 422, invalid(mistyped(
             f'spec.{name}: Invalid value: "{wrong}": spec.{name} in body must be of type '
             f'{name}: "{wrong}"'))) for name, (_, wrong) in FORMATS.items()
           if wrong is not None],
         delete(CRDS + '/jobs.$run.example.com', 200), since=37),
    Case('metadata-of-embedded-objects',
         post(CRDS, definition([{'name': 'v1', 'served': True, 'storage': True, 'schema': {
             'openAPIV3Schema': {'type': 'object', 'properties': {'spec': {
                 'type': 'object', 'x-kubernetes-embedded-resource': True,
                 'x-kubernetes-preserve-unknown-fields': True}}}}}]), 201),
         eventually(post(HERE, with_spec({
             'apiVersion': 'v1', 'kind': 'Pod', 'other': 1, 'metadata': {'labels': {'a': 'b'}}}),
             201, {'spec': {'other': 1}})),
         patch('merge', HERE + '/a', {'spec': {'metadata': {'labels': {'a': 'b c'}}}}, 422, invalid(
             'spec.metadata.labels: Invalid value')),
         delete(CRDS + '/jobs.$run.example.com', 200)),
    defined('int-or-string', post(HERE, job(port=80), 201), post(HERE, job('b', port='http'), 201),
            post(HERE, job('c', port=True), 422, invalid(mistyped('spec.port: Invalid value')))),
    defined('list-maps', post(HERE, job(list=[{'k': 'x'}, {'k': 'x'}]), 422, invalid(
        'spec.list[1]: Duplicate value')),
        post(HERE, job(list=[{'k': 'x'}, {'k': 'y'}, {'k': 'z'}]), 422, invalid(
            'spec.list: Too many'))),
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
            invalid('metadata.resourceVersion: Invalid value'))),
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
    Case('stored-objects-have-the-defaults-that-their-definition-gained',
         post(CRDS, definition([with_default({})]), 201),
         eventually(post(HERE, job(), 201, {'spec': {'speed': ABSENT}})),
         patch('merge', CRDS + '/jobs.$run.example.com',
               {'spec': {'versions': [with_default({'default': 'high'})]}}, 200),
         eventually(get(HERE + '/a', 200, {'spec': {'size': 1, 'speed': 'high'}})),
         get(HERE, 200, {'items': [{'spec': {'speed': 'high'}}]}),
         patch('merge', HERE + '/a/status', {'status': {'phase': 'Done'}}, 200,
               {'spec': {'speed': 'high'}, 'metadata': {'generation': 1}}),
         delete(CRDS + '/jobs.$run.example.com', 200)),
    Case('what-the-stored-version-does-not-know-is-not-kept',
         post(CRDS, definition([
             definition()['spec']['versions'][0],
             {'name': 'v2', 'served': True, 'storage': False, 'schema': {'openAPIV3Schema': {
                 'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]), 201),
         eventually(post(V2, {**job(size=2, more=3), 'apiVersion': '$run.example.com/v2',
                              'other': 4}, 201)),
         eventually(get(HERE + '/a', 200, {'spec': {'size': 2, 'more': ABSENT}, 'other': ABSENT})),
         get(V2 + '/a', 200, {'spec': {'size': 2, 'more': ABSENT}, 'other': ABSENT}),
         get(V2 + '/a/status', 404, failure(
             'NotFound', 'jobs.$run.example.com "a" not found', 404, name='a', kind='jobs',
             group='$run.example.com')),
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
