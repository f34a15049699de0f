import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  runOf,
  waitOf,
  ago,
  bound,
  bytes,
  gpuHours,
  gpuTime,
  heldTimeText,
  lostWorkText,
  nameParts,
  number,
  percent,
  preemptionsText,
  ratio,
  reasonText,
  sentence,
  span,
  zoneHere,
  zoneText,
} from '../../src/lib/format.ts';
import { align, fittedFrom, growth, grown, integral, sum, within } from '../../src/lib/history.ts';
import { highest, stack, withOthers } from '../../src/lib/curves.ts';
import { applied } from '../../src/lib/delta.ts';
import { wrongImage } from '../../src/lib/image.ts';
import { asNew, checkJob, claimedBy, curvesClaim, jobObject, newJob, wrongMemory } from '../../src/lib/job_form.ts';
import { byState } from '../../src/lib/job_order.ts';
import { bySize } from '../../src/lib/pace.ts';
import {
  amount,
  checkProject,
  fieldsOf,
  formOf,
  newProject,
  poolPath,
  projectObject,
  quotaPath,
} from '../../src/lib/project_form.ts';
import { csv, distinct, fitting, matchesSearch, readFilters, sortRows, writeFilter } from '../../src/lib/rows.ts';
import { continued, noted } from '../../src/lib/tail.ts';
import { colourOf, learnProjects, placeOf } from '../../src/lib/theme.ts';
import { treeOrder } from '../../src/lib/tree.ts';
import type { ProjectRow, Series, WorkloadRow } from '../../src/lib/types.ts';
import { labelled, tablesOf } from '../../src/lib/why_lines.ts';
import { toYaml } from '../../src/lib/yaml.ts';

const series = (t: number[], v: (number | null)[], labels: Record<string, string> = {}): Series => ({
  name: 's',
  labels,
  t,
  v,
});

test('preemptions tell what stopped a job from what made it smaller', () => {
  assert.deepEqual(
    [preemptionsText(0, 0), preemptionsText(2), preemptionsText(0, 1), preemptionsText(1, 2)],
    ['0', '2', '1 shrink', '3 (1 whole, 2 shrinks)'],
  );
});

test('numbers are short, and a missing one is a dash', () => {
  assert.deepEqual(
    [number(4), number(0.5), number(1234.567), number(null), number(NaN)],
    ['4', '0.5', '1,234.57', '–', '–'],
  );
  assert.deepEqual(
    [ratio(8, 4), ratio(0.5, null), ratio(2, -1), bound(null), bound(-1), bound(3)],
    ['8/4', '0.5/∞', '2/∞', 'no limit', 'no limit', '3'],
  );
  assert.deepEqual([percent(1, 4), percent(1, 0), percent(null, 4)], ['25 %', '–', '–']);
  assert.deepEqual([bytes(0), bytes(1536), bytes(80 * 2 ** 30), bytes(undefined)], ['0 B', '1.5 KiB', '80 GiB', '–']);
  assert.deepEqual([gpuHours(5400), gpuHours(10), gpuHours(0)], ['1.5', '< 0.1', '0']);
  assert.deepEqual(
    [gpuTime(0), gpuTime(1), gpuTime(58), gpuTime(3600), gpuTime(5400)],
    ['none', '1 GPU-second', '58 GPU-seconds', '1 GPU-hour', '1.5 GPU-hours'],
  );
  assert.equal(heldTimeText({ lostGpuSeconds: 0, heldGpuSeconds: 5400 }), '1.5 GPU-hours');
  assert.equal(heldTimeText({ lostGpuSeconds: 0, heldGpuSeconds: null }), 'none');
  const account = { heldGpuSeconds: 1, heldGpuAsOf: '2026-01-01T00:00:00Z' };
  const later = Date.parse('2026-01-01T01:00:00Z');
  assert.equal(heldTimeText(account, 2, later), '2 GPU-hours', 'it holds two, and nothing was written since');
  assert.equal(heldTimeText(account, 0, later), '1 GPU-second');
  assert.equal(heldTimeText({ lostGpuSeconds: null, heldGpuSeconds: null }), 'not known');
  assert.equal(lostWorkText({ lostGpuSeconds: 58, heldGpuSeconds: 5400 }), '58 GPU-seconds of 1.5 GPU-hours');
  assert.equal(lostWorkText({ lostGpuSeconds: 0, heldGpuSeconds: 5400 }), 'none');
  assert.equal(lostWorkText({ lostGpuSeconds: null, heldGpuSeconds: null }), 'not known');
});

test('what a server said becomes a sentence', () => {
  assert.equal(sentence('the cluster does not accept this token'), 'The cluster does not accept this token.');
  assert.equal(sentence('Nobody is there.'), 'Nobody is there.');
});

test('the reason of a row does not name its workload again', () => {
  const row = { name: 'sweep-3', kind: 'Job' };
  assert.equal(reasonText({ ...row, reason: 'sweep-3-x7 failed: exit 1' }), 'x7 failed: exit 1');
  assert.equal(reasonText({ ...row, reason: 'Job sweep-3 is suspended' }), 'Suspended');
  assert.equal(reasonText({ ...row, reason: 'Job sweep-3 has failed twice' }), 'Has failed twice');
  assert.equal(reasonText({ ...row, reason: 'sweep-30-x7 failed' }), 'sweep-30-x7 failed');
  assert.equal(reasonText({ ...row, reason: null }), '');
  const counted = '0/3 nodes are available: 3 Insufficient nvidia.com/gpu. Needs 4 GPUs; 0 free.';
  assert.equal(reasonText({ ...row, reason: counted }), 'Needs 4 GPUs; 0 free.');
  assert.equal(
    reasonText({ ...row, reason: `waits for 3 more: ${counted}` }),
    'waits for 3 more: needs 4 GPUs; 0 free.',
  );
  const pull =
    'sweep-3-x7 cannot start: container main waits with ImagePullBackOff: Back-off pulling image "a": no host a';
  assert.equal(reasonText({ ...row, reason: pull }), 'x7: image "a": no host a', 'the state says the rest');
  const tainted =
    '0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient nvidia.com/gpu. Needs 4 GPUs';
  assert.equal(reasonText({ ...row, reason: tainted }), tainted, 'the taint is said nowhere else');
});

test('the end of a long name is kept, by which names of one series differ', () => {
  assert.deepEqual(nameParts('mnist-3'), ['mnist-3', '']);
  assert.deepEqual(nameParts('finetune-llama-3-70b-instruct-43'), ['finetune-llama-3-70b-instruct', '-43']);
  assert.deepEqual(nameParts('vision/tf-wide-deep-80-worker-1'), ['vision/tf-wide-deep-80', '-worker-1']);
  assert.deepEqual(nameParts('pretraining_of_a_large_model'), ['pretraining_of_a_l', 'arge_model']);
});

test('the zone of a schedule says whose clocks the page shows, where they differ', () => {
  const at = new Date('2026-01-01T12:00:00Z');
  assert.equal(zoneText(zoneHere(), at), zoneHere());
  assert.equal(zoneText('Nowhere/At_all', at), 'Nowhere/At_all');
  const other = zoneText('Asia/Kathmandu', at).startsWith('Asia/Kathmandu; times here: ');
  assert.ok(other || zoneHere() === 'Asia/Kathmandu');
});

test('a span of time has at most two units', () => {
  assert.deepEqual(
    [span(0), span(59.6), span(61), span(3600), span(90061), span(null)],
    ['0 s', '1 min', '1 min 1 s', '1 h', '1 d 1 h', '–'],
  );
  const now = Date.parse('2026-01-01T00:10:00Z');
  assert.deepEqual(
    [
      ago('2026-01-01T00:09:58Z', now),
      ago('2026-01-01T00:08:30Z', now),
      ago('2027-01-01T00:00:00Z', now),
      ago('', now),
      ago('soon', now),
    ],
    ['just now', '1 min ago', 'just now', '–', '–'],
  );
});

test('empty cells are last in both directions, and equal ones keep their order', () => {
  const rows = [
    { v: 2, n: 'a' },
    { v: null, n: 'b' },
    { v: 10, n: 'c' },
    { v: 2, n: 'd' },
  ];
  assert.deepEqual(
    sortRows(rows, (row) => row.v, false).map((row) => row.n),
    ['a', 'd', 'c', 'b'],
  );
  assert.deepEqual(
    sortRows(rows, (row) => row.v, true).map((row) => row.n),
    ['c', 'a', 'd', 'b'],
  );
  assert.deepEqual(
    sortRows(['n10', 'n9', 'n1'], (row) => row, false),
    ['n1', 'n9', 'n10'],
  );
});

test('lines of swell why that have a label are told from its tables', () => {
  const table = ['Nodes:', '  NODE    FREE GPUS', '  node-1  0 of 4, unhealthy: 2'];
  assert.deepEqual(labelled(['Why:      full: 0 free', 'GPU type: kept', ...table]), {
    facts: [
      ['Why', 'full: 0 free'],
      ['GPU type', 'kept'],
    ],
    rest: table,
  });
  assert.deepEqual(labelled(['No label: no', 'Why:']), { facts: [['No label', 'no']], rest: ['Why:'] });
});

test('tables of swell why are read by the columns of their headings', () => {
  const lines = [
    'Nodes:',
    '  NODE    FREE GPUS              HELD BY',
    '  node-1  0 of 4                 a/b 2, c/d 2',
    '  node-2  4 of 4, tainted x=y z',
    '  and 2 more nodes with at most 0 free',
    'Bound:',
  ];
  assert.deepEqual(tablesOf(lines), [
    {
      title: 'Nodes',
      heads: ['NODE', 'FREE GPUS', 'HELD BY'],
      rows: [
        ['node-1', '0 of 4', 'a/b 2, c/d 2'],
        ['node-2', '4 of 4, tainted x=y z', ''],
      ],
    },
    ['  and 2 more nodes with at most 0 free', 'Bound:'],
  ]);
});

test('search needs every word in some cell', () => {
  assert.equal(matchesSearch(['resnet-1', 'vision', null], 'VISION res'), true);
  assert.equal(matchesSearch(['resnet-1', 'vision'], 'speech'), false);
  assert.equal(matchesSearch(['a'], '  '), true);
});

test('filters survive the address', () => {
  const params = new URLSearchParams();
  params.set('status', writeFilter(['Running', 'a,b', '']));
  params.set('other', 'x');
  assert.deepEqual(readFilters(new URLSearchParams(params.toString()), ['status']), [
    { key: 'status', values: ['Running', 'a,b', ''] },
  ]);
  assert.deepEqual(
    distinct(['a', 'b', 'a'], (row) => row),
    [
      { value: 'a', count: 2 },
      { value: 'b', count: 1 },
    ],
  );
});

test('CSV quotes what must be quoted, and runs no formula', () => {
  assert.equal(
    csv(
      ['a', 'b'],
      [
        ['x,y', 'say "hi"'],
        ['=1+1', -3],
        [null, true],
        ['two\nlines', '-'],
      ],
    ),
    'a,b\r\n"x,y","say ""hi"""\r\n\'=1+1,-3\r\n,Yes\r\n"two\nlines",\'-\r\n',
  );
});

test('YAML quotes what would be read as something else', () => {
  assert.equal(
    toYaml({ a: 'true', b: '1', c: 'x: y', d: 'plain', e: [], f: {}, g: null, h: 1.5, i: '', j: '- a', k: '#c' }),
    'a: "true"\nb: "1"\nc: "x: y"\nd: plain\ne: []\nf: {}\ng: null\nh: 1.5\ni: ""\nj: "- a"\nk: "#c"\n',
  );
  assert.equal(
    toYaml({ list: [{ name: 'a', v: [1, 2] }, 'b'], text: 'one\ntwo\n' }),
    'list:\n- name: a\n  v:\n  - 1\n  - 2\n- b\ntext: |\n  one\n  two\n',
  );
  assert.equal(
    toYaml({ command: ['sh', '-c', 'cd /w\npython a.py'] }),
    'command:\n- sh\n- "-c"\n- |-\n  cd /w\n  python a.py\n',
  );
  assert.equal(toYaml({ a: undefined, b: 1 }), 'b: 1\n');
});

test('a department stands before its projects, and a circle is shown, too', () => {
  const row = (name: string, parent: string | null) => ({ name, parent }) as ProjectRow;
  assert.deepEqual(
    treeOrder([row('b', 'dept'), row('dept', null), row('a', 'dept'), row('alone', 'unseen')]).map(
      (one) => `${one.depth}${one.name}`,
    ),
    ['0alone', '0dept', '1a', '1b'],
  );
  assert.deepEqual(
    treeOrder([row('x', 'y'), row('y', 'x')])
      .map((one) => one.name)
      .sort(),
    ['x', 'y'],
  );
});

test('series are put on common times, and a gap is not filled', () => {
  const { times, values } = align([series([0, 10, 20], [1, 2, 3]), series([10, 12], [5, 6])]);
  assert.deepEqual(times, [0, 10, 12, 20]);
  assert.deepEqual(values, [
    [1, 2, 2, 3],
    [null, 5, 6, null],
  ]);
  assert.deepEqual(
    align([{ ...series([0, 1], [4, 8]), steady: true }, series([100, 101], [1, 1])]).values[0],
    [4, 8, 8, 8],
  );
  assert.deepEqual(sum([series([0, 10], [1, 2]), series([0, 10], [3, null])])?.v, [4, 2]);
});

test('a young cluster is shown from its first sample, an old one over the whole time', () => {
  const history = (first: number) => ({ from: 0, to: 3600, loading: false, series: [series([first, 3600], [1, 1])] });
  assert.deepEqual([fittedFrom(history(3000)), fittedFrom(history(3590)), fittedFrom(history(15))], [3000, 3540, 0]);
});

test('nodes that change pools are counted once', () => {
  assert.deepEqual(sum([series([0, 15], [8, 8]), series([30, 45], [8, 8])])?.v, [8, 8, 8, 8]);
});

test('an integral is value times seconds, and a counter may start again', () => {
  assert.equal(integral(series([0, 10, 20], [2, 4, 100])), 60);
  assert.equal(integral(series([0, 10], [null, 1])), 0);
  assert.equal(growth(series([0, 1, 2, 3], [5, 7, null, 1])), 3);
});

test('a part of the time is never more than all, whichever was sampled first', () => {
  // What is held was read before the total is known, and after nodes have gone.
  const held = series([0, 15, 30, 45], [4, 4, 4, 4]);
  assert.deepEqual(within(held, series([30, 45], [8, 2])), { part: 60, whole: 120 });
  assert.deepEqual(within(held, series([0, 15, 30, 45], [2, 2, 2, 2])), { part: 90, whole: 90 });
  assert.deepEqual(within(held, undefined), { part: 0, whole: 0 });
});

test('stacked curves have a gap where nothing is known', () => {
  const stacked = stack([
    [1, null, 2],
    [3, null, null],
  ]);
  assert.deepEqual(stacked, [
    [1, null, 2],
    [4, null, 2],
  ]);
});

test('a curve that may leave the chart does not flatten the others', () => {
  const curves = [{}, { loose: true }, { right: true }];
  assert.equal(highest(curves, [[4, 2], [234], [900]]), 8);
  assert.equal(highest(curves, [[4, 2], [5], [900]]), 5);
  assert.equal(highest(curves, [[0], [234], [900]]), 234);
});

test('a curve is continued by what the view said later', () => {
  const out = continued(
    series([10, 20], [1, 2]),
    [
      { t: 15, values: { a: 9 } },
      { t: 25, values: { a: 3 } },
    ],
    'a',
  );
  assert.deepEqual(
    [out.t, out.v],
    [
      [10, 20, 25],
      [1, 2, 3],
    ],
  );
});

test('the curve of a project that was deleted ends with its samples', () => {
  const later = [{ t: 300, values: { other: 1 } }];
  const other = series([0, 15, 30, 100, 300], [1, 1, 1, 1, 1]);
  for (const gone of [series([0, 15], [8, 8]), series([15], [8])]) {
    const [values] = align([continued(gone, later, 'gone'), other]).values;
    assert.deepEqual(values?.slice(1), [8, 8, null, null]);
  }
});

test('what stays the same is noted now and then, what changes at once', () => {
  noted('k', { a: 1 }, 100);
  noted('k', { a: 1 }, 102);
  noted('k', { a: 2 }, 103);
  noted('k', undefined, 104);
  assert.deepEqual(
    noted('k', { a: 2 }, 109).map((sample) => [sample.t, sample.values.a]),
    [
      [100, 1],
      [103, 2],
      [109, 2],
    ],
  );
});

test('efficiency is measured against the smallest size', () => {
  const found = bySize(series([0, 1, 2, 3], [1, 1, 4, 4]), series([0, 1, 2, 3], [10, 10, 20, 20]));
  assert.deepEqual(found, [
    { size: 1, throughput: 10, efficiency: 1 },
    { size: 4, throughput: 20, efficiency: 0.5 },
  ]);
});

test('a project form makes the object of the walkthrough', () => {
  const form = {
    ...newProject(['single-node-pool']),
    name: 'project-b',
    description: 'Second project for preemption demo',
  };
  form.quotas = [{ pool: 'single-node-pool', quota: '4', limit: '', lends: '', weight: '' }];
  assert.deepEqual(projectObject(form), {
    apiVersion: 'swell.dev/v1',
    kind: 'Project',
    metadata: { name: 'project-b' },
    spec: {
      description: 'Second project for preemption demo',
      nodePools: [{ name: 'single-node-pool', resources: { gpu: { quota: 4 } } }],
    },
  });
});

test('an edited project keeps what the form does not show', () => {
  const before = {
    metadata: { name: 'a', resourceVersion: '5' },
    spec: {
      minRuntimeSeconds: 60,
      nodePools: [{ name: 'p', resources: { gpu: { quota: 4, limit: -1 }, cpu: { quota: 8 } } }],
      resources: { memory: { quota: 100 } },
    },
  };
  const form = formOf(before);
  assert.deepEqual(form.quotas, [{ pool: 'p', quota: '4', limit: 'unlimited', lends: '', weight: '' }]);
  form.quotas = [{ pool: 'p', quota: '6', limit: '', lends: '2', weight: '2' }];
  const after = projectObject(form, before);
  assert.deepEqual(after.spec, {
    minRuntimeSeconds: 60,
    nodePools: [
      { name: 'p', resources: { gpu: { quota: 6, lendingLimit: 2, overQuotaWeight: 2 }, cpu: { quota: 8 } } },
    ],
    resources: { memory: { quota: 100 }, gpu: undefined },
  });
  assert.equal(after.metadata?.resourceVersion, '5');
});

test('a project form sets, changes and removes the default of autoscaling', () => {
  const form = { ...newProject(['p']), name: 'a', autoscaling: 'Goodput' };
  assert.deepEqual(projectObject(form).spec?.autoscaling, { default: 'Goodput' });
  // A mode and a field of a later version stay.
  const before = { metadata: { name: 'a' }, spec: { autoscaling: { default: 'Later', other: 1 } } };
  const read = formOf(before);
  assert.equal(read.autoscaling, 'Later');
  assert.deepEqual(projectObject(read, before).spec?.autoscaling, { default: 'Later', other: 1 });
  assert.deepEqual(projectObject({ ...read, autoscaling: 'None' }, before).spec?.autoscaling, {
    default: 'None',
    other: 1,
  });
  assert.deepEqual(projectObject({ ...read, autoscaling: '' }, before).spec?.autoscaling, { other: 1 });
  assert.equal(
    projectObject({ ...read, autoscaling: '' }, { metadata: { name: 'a' }, spec: { autoscaling: { default: 'None' } } })
      .spec?.autoscaling,
    undefined,
  );
  assert.ok(fieldsOf(form).includes('spec.autoscaling.default'));
});

test('a project form says what is wrong at the field', () => {
  const form = newProject(['p']);
  form.quotas = [
    { pool: 'p', quota: '4', limit: '2', lends: '', weight: '-1' },
    { pool: 'p', quota: 'many', limit: '', lends: '', weight: '' },
  ];
  form.priority = 'high';
  form.members = [{ kind: 'User', name: ' ', role: 'viewer' }];
  const wrongs: Record<string, string> = {};
  checkProject(form, (field, message) => {
    wrongs[field] = message;
  });
  assert.deepEqual(Object.keys(wrongs).sort(), [
    'spec.members.0.name',
    'spec.nodePools.0.resources.gpu.limit',
    'spec.nodePools.0.resources.gpu.overQuotaWeight',
    'spec.nodePools.1.name',
    'spec.nodePools.1.resources.gpu.quota',
    'spec.priority',
  ]);
  assert.deepEqual([amount(''), amount('unlimited'), amount('2,5'), amount('x')], [undefined, -1, 2.5, NaN]);
  form.quotas.unshift({ pool: '', quota: '1', limit: '', lends: '', weight: '' });
  assert.deepEqual(
    [quotaPath(form, 0, 'quota'), quotaPath(form, 1, 'quota'), poolPath(form, 0), poolPath(form, 1)],
    ['spec.resources.gpu.quota', 'spec.nodePools.0.resources.gpu.quota', 'spec.resources', 'spec.nodePools.0.name'],
  );
});

test('a workload form makes a TrainingJob as runai submit does', () => {
  const form = {
    ...newJob('project-a', 'project-a'),
    name: 'large',
    image: 'pytorch/pytorch:latest',
    command: 'python a.py',
    workers: '8',
    elastic: true,
    least: '2',
  };
  const object = jobObject(form);
  assert.deepEqual(object.spec, {
    project: 'project-a',
    priorityClassName: 'train',
    backoffLimit: 6,
    roles: {
      worker: {
        replicas: 8,
        restartPolicy: 'OnFailure',
        elastic: { minReplicas: 2, maxReplicas: 8 },
        template: {
          metadata: { labels: { 'swell.dev/workload': 'train', 'swell.dev/project': 'project-a' } },
          spec: {
            containers: [
              {
                name: 'worker',
                image: 'pytorch/pytorch:latest',
                command: ['/bin/sh', '-c', 'python a.py'],
                resources: { limits: { 'nvidia.com/gpu': 1 } },
              },
            ],
          },
        },
      },
    },
  });
  const half = jobObject({ ...form, gpus: '0.5', elastic: false, type: 'interactive' });
  const role = (
    half.spec?.roles as Record<
      string,
      { template: { metadata: { annotations?: object }; spec: { containers: { resources?: object }[] } } }
    >
  ).workspace;
  assert.deepEqual(role?.template.metadata.annotations, { 'swell.dev/gpu-fraction': '0.5' });
  assert.equal(role?.template.spec.containers[0]?.resources, undefined);
});

test('a workload that keeps its curves has a claim of its own, as arena submit makes it', () => {
  const object = jobObject({
    ...newJob('vision', 'vision'),
    name: 'unet',
    image: 'i',
    curves: true,
    env: [{ name: 'A', value: '1' }],
  });
  const role = (object.spec?.roles as Record<string, { template: { spec: Record<string, unknown> } }>).worker;
  assert.deepEqual(role?.template.spec, {
    containers: [
      {
        name: 'worker',
        image: 'i',
        env: [
          { name: 'A', value: '1' },
          { name: 'SWELL_LOG_DIR', value: '/training_logs/unet' },
        ],
        resources: { limits: { 'nvidia.com/gpu': 1 } },
        volumeMounts: [{ name: 'training-logs', mountPath: '/training_logs' }],
      },
    ],
    volumes: [{ name: 'training-logs', persistentVolumeClaim: { claimName: 'unet-tensorboard' } }],
  });
  const claim = curvesClaim('unet', 'vision');
  assert.equal(claim.metadata?.name, 'unet-tensorboard');
  assert.deepEqual([claimedBy(toYaml(object)), claimedBy('kind: TrainingJob')], ['unet', undefined]);
});

test('spans of a workload grow on the page', () => {
  const at = Date.parse('2026-01-01T00:10:00Z');
  const row = {
    status: 'Running',
    created: '2026-01-01T00:00:00Z',
    runsSince: '2026-01-01T00:04:00Z',
    waitSeconds: 240,
    runSeconds: null,
  };
  assert.deepEqual([waitOf(row, at), runOf(row, at)], [240, 360]);
  assert.deepEqual(
    [
      waitOf({ ...row, status: 'Pending', waitSeconds: null, waitsSince: row.created }, at),
      runOf({ ...row, runsSince: null }, at),
    ],
    [600, null],
  );
  assert.equal(waitOf({ ...row, waitSeconds: null }, at), null, 'how long a server waited is not known');
  // One that was stopped waits since then.
  assert.equal(runOf({ ...row, status: 'Preempted' }, at), 360, 'it does not jump when the job runs again');
  const stopped = { ...row, status: 'Preempted', waitSeconds: null, waitsSince: '2026-01-01T00:09:00Z' };
  assert.equal(waitOf(stopped, at), 60);
  assert.equal(waitOf({ ...row, status: 'Suspended', waitSeconds: null }, at), null);
  assert.equal(runOf({ ...row, status: 'Failed', runSeconds: 12 }, at), 12);
});

test('a delta leads to the next view, and keeps what stayed', () => {
  const rows = Array.from({ length: 5 }, (_, id) => ({ id }));
  const next = applied(
    { rows, total: 5 },
    { data: { total: 6 }, lists: { rows: [[0, 2], { id: 9 }, [3, 2], { id: 10 }] } },
  ) as { rows: { id: number }[]; total: number };
  assert.deepEqual(next, { total: 6, rows: [{ id: 0 }, { id: 1 }, { id: 9 }, { id: 3 }, { id: 4 }, { id: 10 }] });
  assert.equal(next.rows[3], rows[3]);
  for (const steps of [[[3, 3]], [[-1, 1]]] as [number, number][][])
    assert.equal(applied({ rows }, { data: {}, lists: { rows: steps } }), undefined);
  assert.equal(applied(undefined, { data: {}, lists: { rows: [] } }), undefined);
});

test('a workload form says what is wrong at the field', () => {
  const wrongs: Record<string, string> = {};
  checkJob(
    {
      ...newJob(),
      gpus: '1.5',
      workers: '2',
      elastic: true,
      least: '3',
      memory: 'lots',
      env: [{ name: '1x', value: '' }],
    },
    (field, message) => {
      wrongs[field] = message;
    },
  );
  assert.deepEqual(Object.keys(wrongs).sort(), ['env.0', 'gpus', 'image', 'least', 'memory', 'spec.project']);
});

test('a copy of an object has nothing that the server wrote', () => {
  assert.deepEqual(
    asNew(
      {
        kind: 'TrainingJob',
        metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', labels: { x: 'y' } },
        spec: { a: 1 },
        status: { phase: 'Running' },
      },
      'b',
    ),
    { kind: 'TrainingJob', metadata: { name: 'b', namespace: 'n', labels: { x: 'y' } }, spec: { a: 1 } },
  );
});

test('a counter that began within the time began at 0', () => {
  const late = series([600, 615, 630], [2, 3, 1]);
  assert.equal(growth(late), 2);
  assert.equal(growth(late, 0), 4);
  assert.equal(growth(late, 600), 2, 'it was there at the beginning');
  assert.deepEqual(grown(late, 0).v, [2, 3, 4]);
  assert.deepEqual(grown(series([0, 15], [null, 5]), 0).v, [null, 0]);
});

test('image names are refused as the nodes refuse them', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  for (const name of [
    'python',
    'pytorch/pytorch:2.1.0-cuda12',
    'localhost/a',
    'registry.example.com:5000/team/a_b__c-d.e:v1',
    `python@${digest}`,
    `team/a:b@${digest}`,
    '[::1]:5000/a',
  ])
    assert.equal(wrongImage(name), undefined, name);
  const wrongs: [string, RegExp][] = [
    ['my image', /space/],
    ['PyTorch:latest', /capital/],
    ['team/Trainer', /capital/],
    ['python:', /tag after ":" is missing/],
    ['python:-x', /is not a tag/],
    ['a//b', /two slashes/],
    ['a/', /two slashes/],
    ['-a', /not a part of a repository/],
    ['a..b', /not a part/],
    ['python@sha256:12', /not a digest/],
    ['reg.io:99999/a', /registry/],
    ['example.com/', /missing/],
    ['a'.repeat(64), /64 hexadecimal/],
    [`a/${'b'.repeat(300)}`, /255/],
  ];
  for (const [name, wanted] of wrongs) assert.match(wrongImage(name) ?? '', wanted, name);
});

test('an amount of memory without a unit is asked about', () => {
  assert.equal(wrongMemory('4'), '4 bytes: did you mean 4Gi?');
  assert.equal(wrongMemory('512m'), '512m is 0.512 bytes: did you mean 512Mi?');
  assert.equal(wrongMemory('lots'), 'Enter an amount such as 8Gi.');
  for (const text of ['', '4Gi', '512Mi', '2G', '4294967296']) assert.equal(wrongMemory(text), undefined, text);
});

test('a table leaves out its most spare columns until the others fit', () => {
  const columns = [
    { key: 'a', width: 100 },
    { key: 'b', width: 50, spare: 1 },
    { key: 'c', width: 60, spare: 2 },
    { key: 'd', width: 40 },
  ];
  const keys = (pixels: number) =>
    fitting(columns, pixels)
      .map((one) => one.key)
      .join('');
  assert.deepEqual([250, 249, 190, 189, 1].map(keys), ['abcd', 'abd', 'abd', 'ad', 'ad']);
});

test('a narrow column comes back where a wide one made room', () => {
  const columns = [
    { key: 'name', width: 130 },
    { key: 'wide', width: 190, spare: 1 },
    { key: 'narrow', width: 70, spare: 2 },
  ];
  const keys = (pixels: number) => fitting(columns, pixels).map((one) => one.key);
  assert.deepEqual(keys(390), ['name', 'wide', 'narrow']);
  assert.deepEqual(keys(320), ['name', 'wide']);
  assert.deepEqual(keys(319), ['name', 'narrow']);
  assert.deepEqual(keys(199), ['name']);
});

test('columns are left out until texts have room, but not the one that gives the order', () => {
  const columns = [
    { key: 'name', width: 100, roomy: 150 },
    { key: 'reason', width: 100, roomy: 250 },
    { key: 'kind', width: 100, spare: 1 },
    { key: 'wait', width: 100, spare: 2 },
  ];
  const keys = (pixels: number, kept?: string) => fitting(columns, pixels, kept).map((one) => one.key);
  assert.deepEqual(keys(600), ['name', 'reason', 'kind', 'wait']);
  assert.deepEqual(keys(599), ['name', 'reason', 'kind']);
  assert.deepEqual(keys(500, 'wait'), ['name', 'reason', 'wait']);
  assert.deepEqual(keys(200), ['name', 'reason']);
});

test('ten projects have ten colours, and keep them when others come and go', () => {
  const taken = new Map<string, number>();
  const names = Array.from({ length: 11 }, (_, at) => `project-${at}`);
  for (const name of names) taken.set(name, placeOf(name, taken, new Set(names)));
  assert.deepEqual(
    names.map((name) => taken.get(name)),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  const left = new Set(names.filter((name) => name !== 'project-3'));
  assert.equal(placeOf('new', taken, left), 3);
  assert.equal(placeOf('project-7', taken, left), 7);
});

test('the list of projects gives out the colours, and not what is drawn first', () => {
  colourOf('later');
  colourOf('earlier');
  learnProjects([
    { name: 'later', created: '2026-02-01T00:00:00Z' },
    { name: 'earlier', created: '2026-01-01T00:00:00Z' },
  ]);
  assert.deepEqual([colourOf('earlier').index, colourOf('later').index], [0, 1]);
});

test('of more curves than colours the smallest are one', () => {
  const curves = Array.from({ length: 12 }, (_, at) => ({
    label: `${at}`,
    values: [at, at === 1 ? null : 1],
    colour: 'p0',
  }));
  assert.equal(withOthers(curves.slice(0, 10)).length, 10);
  const shown = withOthers(curves);
  assert.deepEqual(
    shown.map((one) => one.label),
    ['3', '4', '5', '6', '7', '8', '9', '10', '11', '3 others'],
  );
  assert.deepEqual(shown.at(-1)?.values, [3, 2]);
});

test('workloads come as swell list has them: what runs, what waits, what is over, the newest first', () => {
  const row = (name: string, status: string, created: string, completed: string | null = null) =>
    ({
      name,
      status,
      created: `2026-01-01T${created}Z`,
      completed: completed && `2026-01-01T${completed}Z`,
    }) as WorkloadRow;
  const rows = [
    row('ended-first', 'Succeeded', '09:00:00', '09:30:00'),
    row('ended-last', 'Failed', '08:00:00', '11:00:00'),
    row('index-10', 'Pending', '10:00:00'),
    row('index-2', 'Preempted', '10:00:00'),
    row('held', 'Suspended', '07:00:00'),
    row('hangs', 'Hung', '06:00:00'),
    row('runs', 'Running', '10:30:00'),
  ];
  assert.deepEqual(
    byState(rows).map((one) => one.name),
    ['runs', 'hangs', 'index-2', 'index-10', 'held', 'ended-last', 'ended-first'],
  );
  assert.equal(rows[0]?.name, 'ended-first'); // the view's own list stays as it is
});
