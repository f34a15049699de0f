import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, isNotFound, objectPath, query } from '../../src/lib/api.ts';
import { chosenTab } from '../../src/parts/basic.tsx';
import { hrefOfObject } from '../../src/parts/decisions.tsx';
import { checkName, fieldFor, readNumber, wrongsOf } from '../../src/parts/dialog.tsx';
import { collectionOf } from '../../src/parts/submit_form.tsx';
import { poolPatch } from '../../src/screens/pools.tsx';
import { requestOf } from '../../src/screens/whatif.tsx';
import { elasticRole, resizing, suspendPatch, wrongSize } from '../../src/parts/job_actions.tsx';

const FIELDS = ['metadata.name', 'spec.nodePools.0.resources.gpu.quota', 'spec.nodePools.0.name', 'spec.parent'];

test('an error of the API server finds the field that it names', () => {
  assert.equal(fieldFor('spec.nodePools[0].resources.gpu.quota', FIELDS), 'spec.nodePools.0.resources.gpu.quota');
  assert.equal(fieldFor('spec.parent', FIELDS), 'spec.parent');
  assert.equal(fieldFor('spec.unknown', FIELDS), '');
  const wrongs = wrongsOf(
    new ApiError(422, 'is invalid', 'Invalid', [
      { field: 'spec.parent', message: 'Not found: "x"' },
      { field: 'spec.odd', message: 'no' },
    ]),
    FIELDS,
  );
  assert.equal(wrongs.at('spec.parent'), 'Not found: "x"');
  assert.deepEqual(wrongs.rest(FIELDS), [['', 'spec.odd: no']]);
});

test('an error without causes is shown at the name where the name is taken, else above the form', () => {
  assert.equal(
    wrongsOf(new ApiError(409, 'projects "a" already exists', 'AlreadyExists'), FIELDS).at('metadata.name'),
    'projects "a" already exists',
  );
  assert.deepEqual(wrongsOf(new ApiError(500, 'the disk is full'), FIELDS).rest(FIELDS), [['', 'the disk is full']]);
});

test('names are DNS labels', () => {
  assert.equal(checkName('project-a'), undefined);
  for (const bad of ['', 'A', '-a', 'a_b', 'x'.repeat(64)]) assert.notEqual(checkName(bad), undefined, bad);
  assert.deepEqual([readNumber('1,5'), readNumber('-2'), readNumber('a')], [1.5, -2, undefined]);
});

test('paths of the API server are built and escaped', () => {
  assert.equal(objectPath('v1', 'pods', 'a', 'b'), '/api/v1/namespaces/a/pods/b');
  assert.equal(objectPath('swell.dev/v1', 'projects', null, 'x/y'), '/apis/swell.dev/v1/projects/x%2Fy');
  assert.equal(query({ a: 1, b: undefined, c: '' }), '?a=1');
});

test('each kind is suspended where its operator has the switch', () => {
  assert.deepEqual(suspendPatch('swell.dev/v1', true), { spec: { suspend: true } });
  assert.deepEqual(suspendPatch('kubeflow.org/v1', false), { spec: { runPolicy: { suspend: false } } });
  assert.deepEqual(suspendPatch('training.kubedl.io/v1alpha1', true), { spec: { suspend: true } });
});

test('the role that is resized is the elastic one', () => {
  assert.deepEqual(
    elasticRole({
      kind: 'TrainingJob',
      spec: { roles: { master: { replicas: 1 }, worker: { replicas: 4, elastic: {} } } },
    }),
    { field: 'roles', role: 'worker', replicas: 4, others: 1 },
  );
  assert.deepEqual(
    elasticRole({
      kind: 'PyTorchJob',
      spec: { pytorchReplicaSpecs: { Master: { replicas: 1 }, Worker: { replicas: 2 } } },
    }),
    { field: 'pytorchReplicaSpecs', role: 'Worker', replicas: 2, others: 1 },
  );
  assert.deepEqual(
    elasticRole({ kind: 'MPIJob', spec: { mpiReplicaSpecs: { Launcher: {}, Worker: { replicas: 2 } } } }),
    { field: 'mpiReplicaSpecs', role: 'Worker', replicas: 2, others: 1 },
  );
  for (const [kind, field] of [
    ['XDLJob', 'xdlReplicaSpecs'],
    ['MarsJob', 'marsReplicaSpecs'],
  ] as const)
    assert.deepEqual(elasticRole({ kind, spec: { [field]: { Scheduler: {}, Worker: { replicas: 2 } } } }), {
      field,
      role: 'Worker',
      replicas: 2,
      others: 1,
    });
  assert.equal(elasticRole({ kind: 'Job', spec: {} }), undefined);
});

test('another size is written where the kind has it, and a Job has no bounds', () => {
  const job = { apiVersion: 'batch/v1', kind: 'Job', spec: { parallelism: 2 } };
  assert.deepEqual(resizing(job)?.patch(3), { spec: { parallelism: 3 } });
  const roles = { Master: { replicas: 1 }, Worker: { replicas: 2 } };
  const torch = resizing({ kind: 'PyTorchJob', spec: { pytorchReplicaSpecs: roles } });
  assert.equal(torch?.others, 1);
  assert.deepEqual(torch?.patch(3), { spec: { pytorchReplicaSpecs: { Worker: { replicas: 3 } } } });
  assert.equal(resizing({ apiVersion: 'batch.volcano.sh/v1alpha1', kind: 'Job', spec: { tasks: [] } }), undefined);
  const members = { running: 2, requested: 2, min: 2, max: 4 };
  assert.deepEqual(
    ['x', '1', '3', '5'].map((size) => wrongSize(size, members) !== undefined),
    [true, true, false, true],
  );
  assert.equal(wrongSize('5', { ...members, max: 2 }), undefined);
});

test('a server has its own size', () => {
  const server = { apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 1 } };
  assert.deepEqual(resizing(server)?.patch(0), { spec: { replicas: 0 } });
});

test('a tab that a page does not have is its first', () => {
  const tabs: [string, string][] = [
    ['workers', 'Workers'],
    ['logs', 'Logs'],
  ];
  assert.deepEqual(
    ['', 'logs', 'timeline'].map((named) => chosenTab(tabs, named)),
    ['workers', 'logs', 'workers'],
  );
});

test('what is not there is told apart from what could not be read', () => {
  assert.deepEqual([undefined, 'job "a" not found in namespace "b"', 'The server cannot be reached.'].map(isNotFound), [
    false,
    true,
    false,
  ]);
});

test('every kind of workload has a page, and a manifest of it can be sent', () => {
  const kinds: [string, string, string][] = [
    ['run.ai/v2alpha1', 'InferenceWorkload', 'inferenceworkloads'],
    ['training.kubedl.io/v1alpha1', 'XDLJob', 'xdljobs'],
    ['training.kubedl.io/v1alpha1', 'MarsJob', 'marsjobs'],
    ['batch.volcano.sh/v1alpha1', 'Job', 'jobs'],
  ];
  for (const [apiVersion, kind, plural] of kinds) {
    assert.equal(hrefOfObject({ kind, namespace: 'a', name: 'b' }), `/job?namespace=a&name=b&kind=${kind}`);
    const yaml = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: b\n  namespace: a\n`;
    assert.equal(collectionOf(yaml), `/apis/${apiVersion}/namespaces/a/${plural}`);
  }
  assert.equal(hrefOfObject({ kind: 'Pod', namespace: 'a', name: 'b' }), undefined);
});

test('a quota with a decimal comma is asked about as it was typed', () => {
  const question = { quota: [{ project: 'a', pool: '', gpu: '1,5' }], nodes: [] };
  assert.deepEqual(requestOf(question, []).quota, [{ project: 'a', pool: '', gpu: 1.5 }]);
});

test('an edited node pool keeps labels that the form does not show', () => {
  const form = {
    name: 'p',
    which: 'label' as const,
    key: 'gpu',
    value: 'h100',
    gpu: 'Spread',
    cpu: 'Pack',
    gpuType: '',
  };
  const placement = { gpu: 'Spread', cpu: 'Pack' };
  assert.deepEqual(poolPatch(form, { spec: { nodeSelector: { kind: 'a', zone: 'z' } } }), {
    spec: { placement, gpuType: null, nodeSelector: { kind: null, gpu: 'h100' } },
  });
  assert.deepEqual(poolPatch({ ...form, which: 'all' }, { spec: { nodeSelector: { kind: 'a', zone: 'z' } } }), {
    spec: { placement, gpuType: null, nodeSelector: { kind: null, zone: null } },
  });
});
