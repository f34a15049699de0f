"""Claims and volumes find each other; what is in use stays."""

from conformance.case import (ABSENT, Case, Having, delete, eventually, get, patch, post)

VOLUMES = '/api/v1/persistentvolumes'


def volume(name, size='1Gi', **spec):
    return {'metadata': {'name': name}, 'spec': {
        'capacity': {'storage': size}, 'accessModes': ['ReadWriteOnce', 'ReadWriteMany'],
        'storageClassName': 'c-$run', 'hostPath': {'path': '/x'}, **spec}}


def claim(name, size='1Gi', **spec):
    return {'metadata': {'name': name}, 'spec': {
        'resources': {'requests': {'storage': size}}, 'accessModes': ['ReadWriteMany'],
        'storageClassName': 'c-$run', **spec}}


def phase_of(path, phase, **spec):
    return eventually(get(path, 200, {'status': {'phase': phase}, **({'spec': spec} if spec else {})}))


CASES = [
    Case('bound-and-released',
         post(VOLUMES, volume('v-$run'), 201, {
             'metadata': {'finalizers': ['kubernetes.io/pv-protection']},
             'spec': {'persistentVolumeReclaimPolicy': 'Retain', 'volumeMode': 'Filesystem'},
             'status': {'phase': 'Pending'}}),
         phase_of(f'{VOLUMES}/v-$run', 'Available'),
         post('persistentvolumeclaims', claim('c'), 201, {
             'metadata': {'finalizers': ['kubernetes.io/pvc-protection']},
             'spec': {'volumeMode': 'Filesystem'}, 'status': {'phase': 'Pending'}}),
         eventually(get('persistentvolumeclaims/c', 200, {
             'metadata': {'annotations': {'pv.kubernetes.io/bind-completed': 'yes',
                                          'pv.kubernetes.io/bound-by-controller': 'yes'}},
             'spec': {'volumeName': 'v-$run'},
             'status': {'phase': 'Bound', 'capacity': {'storage': '1Gi'},
                        'accessModes': ['ReadWriteOnce', 'ReadWriteMany']}})),
         phase_of(f'{VOLUMES}/v-$run', 'Bound', claimRef={
             'kind': 'PersistentVolumeClaim', 'name': 'c', 'namespace': '$ns'}),
         delete('persistentvolumeclaims/c', 200),
         phase_of(f'{VOLUMES}/v-$run', 'Released'),
         eventually(get('persistentvolumeclaims/c', 404)),
         delete(f'{VOLUMES}/v-$run', 200),
         eventually(get(f'{VOLUMES}/v-$run', 404))),
    Case('the-smallest-that-fits',
         post(VOLUMES, volume('l-$run', '9Gi')), post(VOLUMES, volume('s-$run', '1Gi')),
         post(VOLUMES, volume('m-$run', '5Gi')),
         phase_of(f'{VOLUMES}/l-$run', 'Available'), phase_of(f'{VOLUMES}/m-$run', 'Available'),
         phase_of(f'{VOLUMES}/s-$run', 'Available'),
         post('persistentvolumeclaims', claim('c', '4Gi')),
         phase_of('persistentvolumeclaims/c', 'Bound', volumeName='m-$run'),
         *[delete(f'{VOLUMES}/{name}-$run', 200) for name in 'lsm']),
    Case('a-claim-names-its-volume',
         post('persistentvolumeclaims', claim('c', volumeName='n-$run')),
         post(VOLUMES, volume('n-$run', '9Gi')),
         phase_of('persistentvolumeclaims/c', 'Bound', volumeName='n-$run'),
         post('persistentvolumeclaims', claim('late', volumeName='n-$run')),
         eventually(get('events', 200, {'items': Having({
             'reason': 'FailedBinding', 'involvedObject': {'name': 'late'},
             'message': 'volume "n-$run" already bound to a different claim.'})})),
         delete(f'{VOLUMES}/n-$run', 200, {'status': {'phase': 'Bound'}}),
         get(f'{VOLUMES}/n-$run', 200),
         patch('merge', f'{VOLUMES}/n-$run', {'metadata': {'finalizers': None}}, 200),
         phase_of('persistentvolumeclaims/c', 'Lost')),
    Case('a-volume-is-kept-for-a-claim',
         post(VOLUMES, volume('k-$run', claimRef={'namespace': '$ns', 'name': 'later'})),
         phase_of(f'{VOLUMES}/k-$run', 'Available'),
         post('persistentvolumeclaims', claim('later')),
         phase_of('persistentvolumeclaims/later', 'Bound', volumeName='k-$run'),
         get(f'{VOLUMES}/k-$run', 200, {'metadata': {'annotations': ABSENT}}),
         delete(f'{VOLUMES}/k-$run', 200)),
    Case('what-cannot-grow',
         post(VOLUMES, volume('g-$run', claimRef={'namespace': '$ns', 'name': 'c'})),
         post('persistentvolumeclaims', claim('c')),
         phase_of('persistentvolumeclaims/c', 'Bound'),
         patch('merge', 'persistentvolumeclaims/c',
               {'spec': {'resources': {'requests': {'storage': '1Ti'}}}}, 403, {
                   'reason': 'Forbidden',
                   'message': 'persistentvolumeclaims "c" is forbidden: only dynamically provisioned '
                              'pvc can be resized and the storageclass that provisions the pvc must '
                              'support resize'}),
         delete(f'{VOLUMES}/g-$run', 200)),
]
