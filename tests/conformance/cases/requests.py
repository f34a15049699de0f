"""Requests that are wrong in themselves, and the documents about the API."""

from conformance.case import ABSENT, PRESENT, Case, Having, Pattern, delete, failure, get, post

CASES = [
    Case('malformed-json',
         post('configmaps', '{"metadata": ', 400, failure('BadRequest', Pattern('^'), 400))),
    Case('wrong-type',
         post('configmaps', '{"metadata": {"name": "a"}, "data": {"k": 1}}', 400,
              failure('BadRequest', Pattern('(?i)cannot unmarshal|expects|ReadString|k')))),
    Case('body-that-is-a-list', post('configmaps', '[]', 400, failure('BadRequest'))),
    Case('yaml-body',
         post('configmaps', 'metadata:\n  name: a\ndata: {k: v}\n', 201, {'data': {'k': 'v'}},
              content_type='application/yaml')),
    Case('unsupported-body',
         post('configmaps', 'x', 415, failure('UnsupportedMediaType', Pattern(
             'the body of the request was in an unknown format - accepted media types include: '
             'application/json, application/yaml'), 415), content_type='text/csv')),
    Case('unacceptable-answer',
         get('configmaps', 406, failure('NotAcceptable', None, 406), headers={'Accept': 'text/csv'})),
    Case('accept-with-wildcards',
         get('configmaps', 200, {'kind': 'ConfigMapList'}, headers={'Accept': '*/*'}),
         get('configmaps', 200, {'kind': 'ConfigMapList'},
             headers={'Accept': 'text/csv, application/json;q=0.9'})),
    Case('yaml-answer', get('configmaps', 200, text='kind: ConfigMapList',
                            headers={'Accept': 'application/yaml'})),
    Case('unknown-group', get('/apis/none.example.com/v1', 404, text='^404 page not found$'),
         get('/apis/none.example.com/v1/namespaces/$ns/things', 404, text='^404 page not found$')),
    Case('unknown-resource', get('nonesuch', 404, failure(
        'NotFound', 'the server could not find the requested resource', 404))),
    Case('unknown-path', get('/none', 404)),
    Case('method-not-allowed',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         post('configmaps/a', {'metadata': {'name': 'a'}}, 405, failure(
             'MethodNotAllowed', 'the server does not allow this method on the requested resource',
             405))),
    Case('subresource-that-is-none', get('configmaps/a/status', 404)),
    Case('cluster-scoped-by-namespace', get('/api/v1/namespaces/$ns/nodes', 404)),
    Case('version', get('/version', 200, {'major': '1', 'gitVersion': Pattern('^v1'),
                                          'platform': Pattern('/')})),
    Case('health', get('/healthz', 200, text='^ok$'), get('/livez', 200, text='^ok$'),
         get('/readyz', 200, text='^ok$'),
         get('/readyz?verbose', 200, text=r'\[\+\]ping ok')),
    Case('api-versions', get('/api', 200, {'kind': 'APIVersions', 'versions': ['v1'],
                                           'serverAddressByClientCIDRs': PRESENT})),
    Case('api-groups', get('/apis', 200, {'kind': 'APIGroupList', 'groups': Having(
        {'name': 'apps', 'preferredVersion': {'groupVersion': 'apps/v1', 'version': 'v1'}},
        {'name': 'batch'}, {'name': 'scheduling.k8s.io', 'versions': Having(
            {'groupVersion': 'scheduling.k8s.io/v1'})})})),
    Case('api-group', get('/apis/apps', 200, {'kind': 'APIGroup', 'name': 'apps', 'versions': Having(
        {'groupVersion': 'apps/v1', 'version': 'v1'})})),
    Case('api-resources', get('/api/v1', 200, {
        'kind': 'APIResourceList', 'groupVersion': 'v1', 'resources': Having(
            {'name': 'pods', 'singularName': Pattern('^(pod)?$'), 'namespaced': True, 'kind': 'Pod',
             'verbs': ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update',
                       'watch'], 'shortNames': ['po'], 'categories': ['all']},
            {'name': 'pods/status', 'kind': 'Pod', 'verbs': ['get', 'patch', 'update']},
            {'name': 'pods/log', 'kind': 'Pod', 'verbs': ['get']},
            {'name': 'pods/exec', 'kind': 'PodExecOptions', 'verbs': ['create', 'get']},
            {'name': 'pods/binding', 'kind': 'Binding', 'verbs': ['create']},
            {'name': 'pods/eviction', 'kind': 'Eviction', 'group': 'policy', 'verbs': ['create']},
            {'name': 'nodes', 'namespaced': False, 'kind': 'Node', 'shortNames': ['no']},
            {'name': 'namespaces', 'shortNames': ['ns'], 'verbs': Having('create', 'delete')},
            {'name': 'serviceaccounts/token', 'kind': 'TokenRequest',
             'group': 'authentication.k8s.io'},
            {'name': 'configmaps', 'shortNames': ['cm']})})),
    Case('api-resources-of-apps', get('/apis/apps/v1', 200, {'resources': Having(
        {'name': 'deployments', 'shortNames': ['deploy'], 'categories': ['all']},
        {'name': 'deployments/scale', 'kind': 'Scale', 'group': 'autoscaling', 'version': 'v1'},
        {'name': 'statefulsets', 'shortNames': ['sts']},
        {'name': 'daemonsets', 'shortNames': ['ds']},
        {'name': 'replicasets', 'shortNames': ['rs']})})),
    Case('open-api', get('/openapi/v2', 200, {
        'swagger': '2.0', 'paths': {'/api/v1/namespaces/{namespace}/pods': {'get': PRESENT}},
        'definitions': {'io.k8s.api.core.v1.Pod': {
            'x-kubernetes-group-version-kind': [{'group': '', 'kind': 'Pod', 'version': 'v1'}],
            'properties': {'spec': PRESENT, 'metadata': PRESENT}}}})),
    Case('anonymous-may-look-at-health-only',
         get('/healthz', 200, anonymous=True), get('/version', 200, anonymous=True),
         get('configmaps', 403, failure('Forbidden', 'configmaps is forbidden: User '
                                        '"system:anonymous" cannot list resource "configmaps" in '
                                        'API group "" in the namespace "$ns"', 403),
             anonymous=True)),
    Case('bad-token',
         get('configmaps', 401, failure('Unauthorized', 'Unauthorized', 401), anonymous=True,
             headers={'Authorization': 'Bearer none'})),
    Case('unknown-fields-are-pruned',
         post('configmaps', {'metadata': {'name': 'a', 'nonesuch': 1}, 'more': {'x': 1}}, 201,
              {'more': ABSENT, 'metadata': {'nonesuch': ABSENT}})),
    Case('propagation-must-be-known',
         post('configmaps', {'metadata': {'name': 'a'}}, 201),
         delete('configmaps/a', 422, failure('Invalid', Pattern('propagationPolicy')),
                body={'propagationPolicy': 'Sideways'})),
]
