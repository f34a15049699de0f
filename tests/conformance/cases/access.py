"""Rights: roles, reviews, impersonation, tokens, evictions and the ends of namespaces."""

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, eventually, failure,
                              get, invalid, patch, post)

RBAC = '/apis/rbac.authorization.k8s.io/v1/'
ROLES = RBAC + 'namespaces/$ns/roles'
BINDINGS = RBAC + 'namespaces/$ns/rolebindings'
REVIEWS = '/apis/authorization.k8s.io/v1/'
JANE = {'Impersonate-User': 'jane-$run'}


def role(name='reader', *rules):
    return {'metadata': {'name': name}, 'rules': list(rules) or [
        {'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['get', 'list']}]}


def binding(name='b', kind='Role', ref='reader', subject=None):
    return {'metadata': {'name': name},
            'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': kind, 'name': ref},
            'subjects': [subject or {'kind': 'User', 'name': 'jane-$run',
                                     'apiGroup': 'rbac.authorization.k8s.io'}]}


def pod(name='p', labels=None, **spec):
    return {'metadata': {'name': name, 'labels': labels or {'app': 'x'}},
            'spec': {'schedulerName': 'none', 'containers': [{'name': 'c', 'image': 'i'}], **spec}}


def as_user(step, **headers):
    step.headers = {**step.headers, **(headers or JANE)}
    return step


ACCOUNT = {'kind': 'ServiceAccount', 'name': 'default', 'namespace': '$ns'}


def as_account(headers, told):
    """A list by the namespace's account, as somebody else, is refused so."""
    return get('configmaps', 403, failure('Forbidden', Pattern(told)), anonymous=True,
               headers={'Authorization': 'Bearer $token', **headers})


def impersonation(name, *steps):
    return Case(name, post(BINDINGS, binding(kind='ClusterRole', ref='admin', subject=ACCOUNT), 201),
                post('serviceaccounts/default/token', {'spec': {}}, 201, save={'token': 'status.token'}), *steps,
                accounts=True, since=37)


def eviction(name, version, **bounds):
    return Case(name, post('pods', pod(), 201),
                post('pods/p/eviction', {'apiVersion': f'policy/{version}', 'kind': 'Eviction',
                                         'metadata': {'name': 'p', 'namespace': '$ns'}}, 201,
                     {'status': 'Success'}), get('pods/p', 404), accounts=True, **bounds)


def within_a_budget(name, version, **bounds):
    budgets = f'/apis/policy/{version}/namespaces/$ns/poddisruptionbudgets'
    return Case(name, post('pods', pod(), 201),
                post(budgets, {'metadata': {'name': 'b'}, 'spec': {'minAvailable': 1, 'selector': {
                    'matchLabels': {'app': 'x'}}}}, 201),
                patch('merge', 'pods/p/status', {'status': {'phase': 'Running', 'conditions': [
                    {'type': 'Ready', 'status': 'True'}]}}, 200),
                eventually(get(f'{budgets}/b', 200, {
                    'status': {'currentHealthy': 1, 'desiredHealthy': 1, 'expectedPods': 1,
                               'disruptionsAllowed': 0, 'observedGeneration': 1}})),
                post('pods/p/eviction', {'metadata': {'name': 'p', 'namespace': '$ns'}}, 429, failure(
                    'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.",
                    429, causes=[{'reason': 'DisruptionBudget', 'message': 'The disruption budget b needs '
                                  '1 healthy pods and has 1 currently'}])), accounts=True, **bounds)


CASES = [
    Case('nobody-may-anything',
         as_user(get('configmaps', 403, failure(
             'Forbidden', 'configmaps is forbidden: User "jane-$run" cannot list resource '
             '"configmaps" in API group "" in the namespace "$ns"', 403, kind='configmaps'))),
         as_user(get('configmaps/a', 403, failure(
             'Forbidden', 'configmaps "a" is forbidden: User "jane-$run" cannot get resource '
             '"configmaps" in API group "" in the namespace "$ns"', 403, name='a'))),
         as_user(get('/api/v1/nodes', 403, failure(
             'Forbidden', 'nodes is forbidden: User "jane-$run" cannot list resource "nodes" in '
             'API group "" at the cluster scope'))),
         as_user(post('/apis/apps/v1/namespaces/$ns/deployments', {'metadata': {'name': 'd'}}, 403,
                      failure('Forbidden', 'deployments.apps is forbidden: User "jane-$run" cannot '
                              'create resource "deployments" in API group "apps" in the namespace '
                              '"$ns"'))),
         as_user(get('/metrics', 403, failure(
             'Forbidden', 'forbidden: User "jane-$run" cannot get path "/metrics"')))),
    Case('role-lets-in', post(ROLES, role(), 201), post(BINDINGS, binding(), 201),
         eventually(as_user(get('configmaps', 200))),
         as_user(post('configmaps', {'metadata': {'name': 'a'}}, 403, failure('Forbidden'))),
         as_user(get('secrets', 403)),
         as_user(get('/api/v1/namespaces/default/configmaps', 403)),
         delete(BINDINGS + '/b', 200), eventually(as_user(get('configmaps', 403)))),
    Case('role-with-resource-names', post(ROLES, role('reader', {
        'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['get'],
        'resourceNames': ['a']}), 201), post(BINDINGS, binding(), 201),
        eventually(as_user(get('configmaps/a', 404))), as_user(get('configmaps/b', 403))),
    Case('role-for-subresources', post(ROLES, role('reader', {
        'apiGroups': [''], 'resources': ['pods/log'], 'verbs': ['get']}), 201),
        post(BINDINGS, binding(), 201), eventually(as_user(get('pods/x/log', 404))),
        as_user(get('pods/x', 403))),
    Case('role-with-wildcards', post(ROLES, role('reader', {
        'apiGroups': ['*'], 'resources': ['*'], 'verbs': ['*']}), 201),
        post(BINDINGS, binding(), 201), eventually(as_user(get('secrets', 200))),
        as_user(delete('configmaps/none', 404))),
    Case('binding-of-a-group', post(ROLES, role(), 201), post(BINDINGS, binding(subject={
        'kind': 'Group', 'name': 'team-$run', 'apiGroup': 'rbac.authorization.k8s.io'}), 201),
        eventually(as_user(get('configmaps', 200), **JANE, **{'Impersonate-Group': 'team-$run'})),
        as_user(get('configmaps', 403))),
    Case('binding-of-a-service-account', post('serviceaccounts', {'metadata': {'name': 'bot'}}, 201),
         post(ROLES, role(), 201), post(BINDINGS, binding(subject={
             'kind': 'ServiceAccount', 'name': 'bot', 'namespace': '$ns'}), 201),
         post('serviceaccounts/bot/token', {'spec': {}}, 201,
              {'kind': 'TokenRequest', 'status': {'token': Pattern(r'^[\w-]+\.[\w-]+\.[\w-]+$'),
                                                  'expirationTimestamp': PRESENT}},
              save={'token': 'status.token'}),
         eventually(get('configmaps', 200, anonymous=True,
                        headers={'Authorization': 'Bearer $token'})),
         get('secrets', 403, failure('Forbidden', Pattern(
             'User "system:serviceaccount:$ns:bot" cannot list')), anonymous=True,
             headers={'Authorization': 'Bearer $token'}),
         post('/apis/authentication.k8s.io/v1/tokenreviews', {'spec': {'token': '$token'}}, 201, {
             'status': {'authenticated': True, 'user': {
                 'username': 'system:serviceaccount:$ns:bot', 'uid': PRESENT,
                 'groups': Having('system:serviceaccounts', 'system:serviceaccounts:$ns',
                                  'system:authenticated')}}}),
         delete('serviceaccounts/bot', 200),
         eventually(get('configmaps', 401, anonymous=True,
                        headers={'Authorization': 'Bearer $token'}))),
    Case('token-lifetimes', post('serviceaccounts', {'metadata': {'name': 'bot'}}, 201),
         post('serviceaccounts/bot/token', {'spec': {'expirationSeconds': 5}}, 422,
              invalid('spec.expirationSeconds: Invalid value')),
         post('serviceaccounts/none/token', {'spec': {}}, 404, failure(
             'NotFound', 'serviceaccounts "none" not found'))),
    Case('token-that-is-none',
         post('/apis/authentication.k8s.io/v1/tokenreviews', {'spec': {'token': 'x.y.z'}}, 201,
              {'status': {'authenticated': ABSENT, 'user': {'username': ABSENT}}})),
    Case('cluster-role-in-a-namespace', post(BINDINGS, binding(kind='ClusterRole', ref='view'), 201),
         eventually(as_user(get('configmaps', 200))), as_user(get('secrets', 403)),
         as_user(get('/api/v1/nodes', 403))),
    Case('edit-and-admin', post(BINDINGS, binding(kind='ClusterRole', ref='edit'), 201),
         eventually(as_user(post('configmaps', {'metadata': {'name': 'a'}}, 201))),
         as_user(post(ROLES, role(), 403, failure('Forbidden'))),
         post(BINDINGS, binding('c', 'ClusterRole', 'admin'), 201),
         eventually(as_user(post(ROLES, role(), 201)))),
    Case('no-escalation', post(BINDINGS, binding(kind='ClusterRole', ref='admin'), 201),
         eventually(as_user(get(ROLES, 200))),
         as_user(post(ROLES, role('big', {'apiGroups': ['*'], 'resources': ['*'],
                                          'verbs': ['*']}), 403, failure(
             'Forbidden', Pattern(
                 r'^roles\.rbac\.authorization\.k8s\.io "big" is forbidden: user "jane-$run" '
                 r'\(groups=\["system:authenticated"\]\) is attempting to grant RBAC permissions '
                 r'not currently held:\n\{APIGroups:\["\*"\], Resources:\["\*"\], '
                 r'Verbs:\["\*"\]\}')))),
         as_user(post(BINDINGS, binding('c', 'ClusterRole', 'cluster-admin'), 403, failure(
             'Forbidden', Pattern('is attempting to grant RBAC permissions not currently held'))))),
    Case('role-reference-is-immutable', post(BINDINGS, binding(), 201),
         patch('merge', BINDINGS + '/b', {'roleRef': {'name': 'other'}}, 422, invalid('roleRef: Invalid value'))),
    Case('role-needs-verbs', post(ROLES, role('r', {'apiGroups': [''], 'resources': ['pods'],
                                                    'verbs': []}), 422, invalid('rules[0].verbs: Required value'))),
    Case('aggregated-roles',
         post(RBAC + 'clusterroles', {'metadata': {
             'name': 'more-$run', 'labels': {'rbac.example.com/to-$run': 'true'}}, 'rules': [
                 {'apiGroups': [''], 'resources': ['secrets'], 'verbs': ['get']}]}, 201),
         post(RBAC + 'clusterroles', {'metadata': {'name': 'all-$run'}, 'aggregationRule': {
             'clusterRoleSelectors': [{'matchLabels': {'rbac.example.com/to-$run': 'true'}}]},
             'rules': []}, 201),
         eventually(get(RBAC + 'clusterroles/all-$run', 200, {'rules': [
             {'apiGroups': [''], 'resources': ['secrets'], 'verbs': ['get']}]})),
         delete(RBAC + 'clusterroles/all-$run', 200), delete(RBAC + 'clusterroles/more-$run', 200)),
    Case('self-review', post(REVIEWS + 'selfsubjectaccessreviews', {'spec': {'resourceAttributes': {
        'namespace': '$ns', 'verb': 'list', 'resource': 'pods'}}}, 201, {
            'status': {'allowed': True}}),
        as_user(post(REVIEWS + 'selfsubjectaccessreviews', {'spec': {'resourceAttributes': {
            'namespace': '$ns', 'verb': 'list', 'resource': 'pods'}}}, 201, {
                'status': {'allowed': False}}))),
    Case('review-of-others', post(ROLES, role(), 201), post(BINDINGS, binding(), 201),
         eventually(post(REVIEWS + 'subjectaccessreviews', {'spec': {
             'user': 'jane-$run', 'resourceAttributes': {
                 'namespace': '$ns', 'verb': 'get', 'resource': 'configmaps'}}}, 201, {'status': {
                     'allowed': True, 'reason': Pattern(
                         'RBAC: allowed by RoleBinding "b/\\$?.*" of Role "reader" to User '
                         '"jane-$run"')}})),
         post(REVIEWS + 'namespaces/$ns/localsubjectaccessreviews', {
             'metadata': {'namespace': '$ns'}, 'spec': {
                 'user': 'jane-$run', 'resourceAttributes': {
                     'namespace': '$ns', 'verb': 'delete', 'resource': 'configmaps'}}}, 201,
              {'status': {'allowed': False}})),
    Case('rules-review', post(ROLES, role(), 201), post(BINDINGS, binding(), 201),
         eventually(as_user(post(REVIEWS + 'selfsubjectrulesreviews', {'spec': {
             'namespace': '$ns'}}, 201, {'status': {'incomplete': False, 'resourceRules': Having(
                 {'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['configmaps']})}})))),
    # The answer is about the first of the rights that would do.
    impersonation('impersonation-needs-a-right', as_account(JANE, (
        'configmaps is forbidden: User "system:serviceaccount:$ns:default" cannot impersonate-on:user-info:list '
        'resource "configmaps" in API group "" in the namespace "$ns"'))),
    impersonation('impersonation-of-accounts-nodes-and-groups', *[as_account(headers, told) for headers, told in (
        ({'Impersonate-User': 'system:serviceaccount:default:x'}, 'cannot impersonate-on:serviceaccount:list resource'),
        ({'Impersonate-User': 'system:node:n'}, 'cannot impersonate-on:arbitrary-node:list resource'),
        ({'Impersonate-User': 'system:node:n', 'Impersonate-Group': 'g'},
         'cannot impersonate resource "users" in API group "" at the cluster scope'),
        ({'Impersonate-User': 'system:serviceaccount:default:x', 'Impersonate-Group': 'g'},
         'cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"'))]),
    impersonation(
        'impersonation-for-one-verb',
        post(ROLES, role('on', {'apiGroups': [''], 'resources': ['configmaps'],
                                'verbs': ['impersonate-on:user-info:list', 'list']}), 201),
        post(BINDINGS, binding('on', ref='on', subject=ACCOUNT), 201),
        eventually(as_account(JANE, 'cannot impersonate:user-info resource "users" in API group '
                              '"authentication.k8s.io" at the cluster scope')),
        post(RBAC + 'clusterroles', role('as-$run', {
            'apiGroups': ['authentication.k8s.io'], 'resources': ['users'], 'resourceNames': ['jane-$run'],
            'verbs': ['impersonate:user-info']}), 201),
        post(RBAC + 'clusterrolebindings', binding('as-$run', 'ClusterRole', 'as-$run', ACCOUNT), 201),
        # Jane herself may list none.
        eventually(as_account(JANE, 'User "jane-$run" cannot list resource "configmaps"')),
        get('configmaps/x', 403, failure('Forbidden', Pattern('cannot impersonate-on:user-info:get')), anonymous=True,
            headers={'Authorization': 'Bearer $token', **JANE}),
        delete(RBAC + 'clusterrolebindings/as-$run', 200), delete(RBAC + 'clusterroles/as-$run', 200)),
    Case('groups-alone-are-nobody', get('configmaps', 400, failure('BadRequest'), headers={'Impersonate-Group': 'g'}),
         since=37),
    eviction('eviction', 'v1', since=22), eviction('eviction-of-old', 'v1beta1', until=24),
    within_a_budget('eviction-within-a-budget', 'v1', since=21),
    within_a_budget('eviction-within-a-budget-of-old', 'v1beta1', until=24),
    Case('eviction-of-nothing', post('pods/none/eviction', {'metadata': {
        'name': 'none', 'namespace': '$ns'}}, 404, failure('NotFound'))),
    Case('namespace-ends', post('/api/v1/namespaces', {'metadata': {'name': 'gone-$run'}}, 201),
         post('/api/v1/namespaces/gone-$run/configmaps', {'metadata': {
             'name': 'a', 'finalizers': ['example.com/hold']}}, 201),
         delete('/api/v1/namespaces/gone-$run', 200, {'status': {'phase': 'Terminating'}}),
         post('/api/v1/namespaces/gone-$run/configmaps', {'metadata': {'name': 'b'}}, 403, failure(
             'Forbidden', 'configmaps "b" is forbidden: unable to create new content in namespace '
             'gone-$run because it is being terminated', 403, causes=[{
                 'reason': 'NamespaceTerminating', 'message': 'namespace gone-$run is being '
                 'terminated', 'field': 'metadata.namespace'}])),
         patch('merge', '/api/v1/namespaces/gone-$run/configmaps/a',
               {'metadata': {'finalizers': None}}, 200),
         eventually(get('/api/v1/namespaces/gone-$run', 404))),
    Case('system-namespaces-stay',
         delete('/api/v1/namespaces/default', 403, failure('Forbidden', Pattern(
             'namespaces "default" is forbidden: this namespace may not be deleted')))),
    Case('owners-take-their-own-along', post('configmaps', {'metadata': {'name': 'owner'}}, 201,
                                             save={'uid': 'metadata.uid'}),
         post('configmaps', {'metadata': {'name': 'owned', 'ownerReferences': [
             {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'owner', 'uid': '$uid'}]}}, 201),
         delete('configmaps/owner', 200), eventually(get('configmaps/owned', 404))),
    Case('orphans-stay', post('configmaps', {'metadata': {'name': 'owner'}}, 201,
                              save={'uid': 'metadata.uid'}),
         post('configmaps', {'metadata': {'name': 'owned', 'ownerReferences': [
             {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'owner', 'uid': '$uid'}]}}, 201),
         eventually(delete('configmaps/owner?propagationPolicy=Orphan', 200)),
         eventually(get('configmaps/owner', 404)),
         get('configmaps/owned', 200, {'metadata': {'ownerReferences': ABSENT}})),
    Case('foreground-waits-for-the-owned', post('configmaps', {'metadata': {'name': 'owner'}}, 201,
                                                save={'uid': 'metadata.uid'}),
         post('configmaps', {'metadata': {'name': 'owned', 'finalizers': ['example.com/hold'],
                                          'ownerReferences': [
             {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'owner', 'uid': '$uid',
              'blockOwnerDeletion': True}]}}, 201),
         delete('configmaps/owner?propagationPolicy=Foreground', 200, {'metadata': {
             'deletionTimestamp': PRESENT, 'finalizers': ['foregroundDeletion']}}),
         eventually(get('configmaps/owned', 200, {'metadata': {'deletionTimestamp': PRESENT}})),
         get('configmaps/owner', 200),
         patch('merge', 'configmaps/owned', {'metadata': {'finalizers': None}}, 200),
         eventually(get('configmaps/owner', 404))),
]
