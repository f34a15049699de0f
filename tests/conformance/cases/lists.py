"""Lists, selectors, pages and watches."""

from urllib.parse import quote

from conformance.case import (ABSENT, PRESENT, Case, Having, Pattern, delete, failure, get, patch, post,
                              watch)


def maps(*names):
    return [post('configmaps', {'metadata': {'name': name, 'labels': {'n': name}}}, 201)
            for name in names]


def items(*names):
    return [{'metadata': {'name': name}} for name in names]


# Malformed label selectors, and what is wrong with them.
MALFORMED = {
    '=x': "found '=', expected: !, identifier, or 'end of string'",
    '(': "found '(', expected: !, identifier, or 'end of string'",
    'a,,b': "found ',', expected: identifier after ','",
    'a,': "found '', expected: identifier after ','",
    'a=b=c': "found '=', expected: ',' or 'end of string'",
    'x in': "unable to parse requirement: found '' expected: '('",
    'a in (b c)': "unable to parse requirement: found 'c', expected: ',' or ')'",
    'a in (b': "unable to parse requirement: found '', expected: ',' or ')'",
    '!': "unable to parse requirement: found '', expected: identifier",
}


def refused(query, message):
    return get(f'configmaps?{query}', 400, failure('BadRequest', message, 400))


CASES = [
    Case('selectors-that-are-none',
         *[refused(f'labelSelector={quote(text)}', message) for text, message in MALFORMED.items()],
         refused('fieldSelector=metadata.name%3Db%3Dc',
                 'invalid field selector: unescaped character in value: 61')),
    Case('selectors-with-faults', *[
        refused(f'labelSelector={quote(text)}', f'unable to parse requirement: {told}') for text, told in {
            '-a': '<nil>: Invalid value: "-a"', '-a in (-b)': '<nil>: Invalid value: "-a"',
            'a=-': 'values[0][a]: Invalid value: "-"', 'a>b': 'values[0]: Invalid value: "b"',
            'a>-': '[values[0]: Invalid value: "-", values[0][a]: Invalid value: "-"',
            'a in (-b,c,-d)': '[values[0][a]: Invalid value: "-b", values[1][a]: Invalid value: "-d"'}.items()],
         since=37),
    Case('selectors-without-an-operator', *[
        refused(f'labelSelector={quote("a" + rest)}', f"unable to parse requirement: found '{rest.strip()}', "
                'expected: in, notin, =, ==, !=, gt, lt') for rest in (' b', ')')], since=37),
    Case('parameters-that-are-none',
         refused('limit=x', 'strconv.ParseInt: parsing "x": invalid syntax'),
         refused('timeoutSeconds=x', 'strconv.ParseInt: parsing "x": invalid syntax'),
         refused('continue=x', 'invalid continue token: continue key is not valid: illegal base64 '
                 'data at input byte 0')),
    Case('tokens-of-another-version',
         refused('continue=e30', 'invalid continue token: continue key is not valid: server does not '
                 'recognize this encoded version '), since=37),
    Case('sorted-by-name', *maps('b', 'c', 'a'),
         get('configmaps?labelSelector=n', 200, {'items': items('a', 'b', 'c')})),
    Case('selector-equality', *maps('a', 'b'),
         get('configmaps?labelSelector=n%3Da', 200, {'items': items('a')}),
         get('configmaps?labelSelector=n%3D%3Da', 200, {'items': items('a')}),
         get('configmaps?labelSelector=n,n!%3Da', 200, {'items': items('b')})),
    Case('selector-sets', *maps('a', 'b', 'c'),
         get('configmaps?labelSelector=n%20in%20(a,c)', 200, {'items': items('a', 'c')}),
         get('configmaps?labelSelector=n,n%20notin%20(a,c)', 200, {'items': items('b')}),
         get('configmaps?labelSelector=n,!zone', 200, {'items': items('a', 'b', 'c')}),
         get('configmaps?labelSelector=zone', 200, {'items': []})),
    Case('selector-malformed',
         get('configmaps?labelSelector=a%20in%20b', 400, failure(
             'BadRequest', Pattern(r"unable to parse requirement: found 'b'?,? expected: '\('")))),
    Case('selector-with-bad-value',
         get('configmaps?labelSelector=a%3D-b-', 400, failure(
             'BadRequest', Pattern('invalid label value: "-b-"|values.*Invalid value: "-b-"')))),
    Case('field-selector-name', *maps('a', 'b'),
         get('configmaps?fieldSelector=metadata.name%3Da', 200, {'items': items('a')}),
         get('configmaps?labelSelector=n&fieldSelector=metadata.name!%3Da', 200,
             {'items': items('b')})),
    Case('field-selector-unknown',
         get('configmaps?fieldSelector=data.k%3Da', 400, failure(
             'BadRequest', Pattern('"data.k" is not a known field selector: only "metadata.name", '
                                   '"metadata.namespace"')))),
    Case('field-selector-malformed',
         get('configmaps?fieldSelector=metadata.name', 400, failure(
             'BadRequest', Pattern("invalid (field )?selector: 'metadata.name'; can't understand "
                                   "'metadata.name'")))),
    Case('field-selector-of-events',
         post('events', {'metadata': {'name': 'e'}, 'reason': 'Testing', 'type': 'Normal',
                         'involvedObject': {'kind': 'Pod', 'name': 'p', 'namespace': '$ns'}}, 201),
         get('events?fieldSelector=involvedObject.name%3Dp,reason%3DTesting', 200,
             {'items': items('e')}),
         get('events?fieldSelector=type%3DWarning', 200, {'items': []})),
    Case('pages', *maps('a', 'b', 'c'),
         get('configmaps?labelSelector=n&limit=2', 200,
             {'items': items('a', 'b'), 'metadata': {'continue': Pattern('.')}},
             save={'c': 'metadata.continue', 'rv': 'metadata.resourceVersion'}),
         get('configmaps?labelSelector=n&limit=2&continue=$c', 200,
             {'items': items('c'), 'metadata': {'continue': ABSENT, 'resourceVersion': '$rv'}})),
    Case('pages-count-what-remains', *maps('a', 'b', 'c'),
         get('configmaps?limit=1', 200, {'metadata': {'remainingItemCount': PRESENT}}),
         get('configmaps?limit=1&labelSelector=n', 200,
             {'metadata': {'remainingItemCount': ABSENT}})),
    Case('pages-show-one-moment', *maps('a', 'b', 'c'),
         get('configmaps?limit=1&labelSelector=n', 200, save={'c': 'metadata.continue'}),
         delete('configmaps/c', 200),
         get('configmaps?limit=5&labelSelector=n&continue=$c', 200, {'items': items('b', 'c')})),
    Case('pages-with-bad-token',
         get('configmaps?limit=1&continue=nonsense', 400, failure('BadRequest', Pattern(
             'continue key is not valid')))),
    Case('versions-zero-and-exact', *maps('a'),
         get('configmaps?resourceVersion=0', 200, {'kind': 'ConfigMapList'}),
         get('configmaps?labelSelector=n', 200, save={'rv': 'metadata.resourceVersion'}),
         post('configmaps', {'metadata': {'name': 'b', 'labels': {'n': 'b'}}}, 201,
              save={'later': 'metadata.resourceVersion'}),
         get('configmaps?labelSelector=n&resourceVersion=$rv&resourceVersionMatch=Exact', 200,
             {'items': items('a'), 'metadata': {'resourceVersion': '$rv'}}),
         get('configmaps?labelSelector=n&resourceVersion=$later&resourceVersionMatch=NotOlderThan',
             200, {'items': Having(*items('a', 'b'))})),
    Case('version-match-needs-a-version',
         get('configmaps?resourceVersionMatch=Exact', 422, failure('Invalid', Pattern(
             'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless '
             'resourceVersion is provided')))),
    Case('version-that-is-none',
         get('configmaps?resourceVersion=x', 400, failure('BadRequest', Pattern(
             'resourceVersion: Invalid value: "x"|Invalid value: "x"')))),
    Case('watch-from-a-version',
         get('configmaps', 200, save={'rv': 'metadata.resourceVersion'}), *maps('a'),
         patch('merge', 'configmaps/a', {'data': {'k': 'v'}}, 200),
         delete('configmaps/a', 200),
         watch('configmaps?watch=1&resourceVersion=$rv&labelSelector=n&timeoutSeconds=10',
               {'type': 'ADDED', 'object': {'kind': 'ConfigMap', 'apiVersion': 'v1',
                                            'metadata': {'name': 'a'}, 'data': ABSENT}},
               {'type': 'MODIFIED', 'object': {'data': {'k': 'v'}}},
               {'type': 'DELETED', 'object': {'metadata': {'name': 'a'}}})),
    Case('watch-from-now-begins-with-what-is', *maps('a', 'b'),
         watch('configmaps?watch=1&labelSelector=n&timeoutSeconds=10',
               {'type': 'ADDED', 'object': {'kind': 'ConfigMap'}},
               {'type': 'ADDED', 'object': {'kind': 'ConfigMap'}})),
    Case('watch-with-selector-sees-leaving-as-deletion',
         get('configmaps', 200, save={'rv': 'metadata.resourceVersion'}), *maps('a'),
         patch('merge', 'configmaps/a', {'metadata': {'labels': {'n': 'other'}}}, 200),
         watch('configmaps?watch=1&resourceVersion=$rv&labelSelector=n%3Da&timeoutSeconds=10',
               {'type': 'ADDED', 'object': {'metadata': {'name': 'a'}}},
               {'type': 'DELETED', 'object': {'metadata': {'name': 'a'}}})),
    Case('watch-one-name', *maps('a', 'b'),
         watch('configmaps?watch=1&fieldSelector=metadata.name%3Db&timeoutSeconds=10',
               {'type': 'ADDED', 'object': {'metadata': {'name': 'b'}}})),
    Case('watch-by-old-path', *maps('a'),
         watch('/api/v1/watch/namespaces/$ns/configmaps?labelSelector=n&timeoutSeconds=10',
               {'type': 'ADDED', 'object': {'metadata': {'name': 'a'}}})),
    Case('watch-a-version-to-come',
        
         get('configmaps?watch=1&timeoutSeconds=1&labelSelector=none', 200)),
    Case('tables', *maps('a'),
         get('configmaps?labelSelector=n', 200,
             {'kind': 'Table', 'apiVersion': 'meta.k8s.io/v1',
              'columnDefinitions': [{'name': 'Name', 'type': 'string', 'format': 'name'},
                                    {'name': 'Data', 'type': 'string'},
                                    {'name': 'Age', 'type': 'string'}],
              'rows': [{'cells': ['a', 0, Pattern(r'^\d+s$')],
                        'object': {'kind': 'PartialObjectMetadata',
                                   'apiVersion': 'meta.k8s.io/v1', 'metadata': {'name': 'a'}}}]},
             headers={'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io'})),
    Case('tables-without-objects', *maps('a'),
         get('configmaps?labelSelector=n&includeObject=None', 200,
             {'rows': [{'cells': PRESENT, 'object': None}]},
             headers={'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io'}),
         get('configmaps?labelSelector=n&includeObject=Object', 200,
             {'rows': [{'object': {'kind': 'ConfigMap'}}]},
             headers={'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io'})),
    Case('partial-metadata', *maps('a'),
         get('configmaps/a', 200,
             {'kind': 'PartialObjectMetadata', 'apiVersion': 'meta.k8s.io/v1',
              'metadata': {'name': 'a'}, 'data': ABSENT},
             headers={'Accept': 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'}),
         get('configmaps?labelSelector=n', 200,
             {'kind': 'PartialObjectMetadataList', 'items': items('a')},
             headers={'Accept':
                      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'})),
]
