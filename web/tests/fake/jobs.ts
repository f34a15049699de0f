// Workloads: what the forms send, logs, TensorBoards, plans and what-if.
import type { KubeObject } from '../../src/lib/types.ts';
import { answer, refuse, type Call, type Route } from './call.ts';
import { count, overview, type World } from './world.ts';

function addJob(world: World, namespace: string, name: string, workers: number): void {
  world.jobs.unshift({
    namespace,
    name,
    kind: 'TrainingJob',
    apiVersion: 'swell.dev/v1',
    plural: 'trainingjobs',
    uid: `uid-${name}`,
    status: 'Pending',
    reason: 'It was just submitted.',
    project: namespace,
    pool: null,
    priority: 'train',
    preemptible: true,
    members: { running: 0, requested: workers, min: workers, max: workers },
    gpus: { requested: workers, held: 0 },
    waitSeconds: 0,
    created: new Date().toISOString(),
  });
  count(world);
}

function submit(call: Call, namespace: string): void {
  const { fake, url, body: yaml } = call;
  const name = /^ {2}name: (\S+)/m.exec(yaml)?.[1] ?? 'job-x7k2p';
  if (/image: refuse/.test(yaml))
    return refuse(call, 422, 'Invalid', `TrainingJob.swell.dev "${name}" is invalid`, [
      {
        field: 'spec.roles.worker.template.spec.containers[0].image',
        message: 'Invalid value: "refuse": no image is called so',
      },
    ]);
  if (/priorityClassName: nosuch/.test(yaml))
    return refuse(call, 403, 'Forbidden', 'no PriorityClass with name nosuch was found');
  if (url.searchParams.get('dryRun') !== 'All') {
    addJob(fake.world, namespace, name, Number(/replicas: (\d+)/.exec(yaml)?.[1] ?? 1));
    fake.changed();
  }
  const object: KubeObject = {
    apiVersion: 'swell.dev/v1',
    kind: 'TrainingJob',
    metadata: { name, namespace },
    spec: { roles: {} },
  };
  answer(call, 201, object);
}

function oneJob(call: Call, namespace: string, name: string): void {
  const { fake, method, body } = call;
  const { world } = fake;
  const row = world.jobs.find((one) => one.namespace === namespace && one.name === name);
  if (!row) return refuse(call, 404, 'NotFound', `trainingjobs.swell.dev "${name}" not found`);
  if (method === 'DELETE') world.jobs = world.jobs.filter((one) => one !== row);
  if (method === 'PATCH') row.status = /"suspend":true/.test(body) ? 'Suspended' : 'Pending';
  if (method !== 'GET') fake.changed();
  answer(call, 200, {
    apiVersion: row.apiVersion,
    kind: row.kind,
    metadata: { name: row.name, namespace: row.namespace, uid: row.uid, resourceVersion: '3' },
    spec: {
      project: row.project,
      roles: { worker: { replicas: row.members.requested, elastic: { minReplicas: 1, maxReplicas: 4 } } },
    },
  });
}

// A progress bar that never ends its line.
function draw({ response }: Call): void {
  let done = 10;
  const timer = setInterval(() => response.write(`\reval: ${(done += 10)}%`), 200);
  response.on('close', () => clearInterval(timer));
}

// A log of a pod that is gone ends before those of now begin.
function log(call: Call, pod: string, uid?: string): void {
  const { fake, response, url } = call;
  if (uid && fake.lost.has(uid)) return refuse(call, 404, 'NotFound', `the log of pod ${pod} is not kept`);
  const search = url.searchParams;
  const shift = uid ? 3600 : 0;
  const start = Number(search.get('restart') ?? 0);
  const which = uid ? ` before${start ? ' again' : ''}` : '';
  const textOf = (at: number) =>
    at % 50 === 7
      ? '\u001b[31mloss is high\u001b[0m'
      : `step ${at} loss ${(2 / (at + 1)).toFixed(4)} of ${pod}${which}`;
  const timeOf = (at: number) => new Date(Date.now() - (fake.lines - at + shift - 300 * start) * 1000).toISOString();
  const line = (at: number) => `${timeOf(at)} ${textOf(at)}\n`;
  response.writeHead(200, { 'content-type': 'text/plain' });
  const first = Math.max(0, fake.lines - Number(search.get('tailLines') ?? fake.lines));
  if (!search.get('sinceTime')) for (let at = first; at < fake.lines; at += 1) response.write(line(at));
  if (fake.draws && !uid) response.write(`${new Date().toISOString()} eval: 0%\reval: 10%`);
  if (search.get('follow') !== 'true') return void response.end();
  if (fake.draws) return draw(call);
  let at = fake.lines;
  const timer = setInterval(() => response.write(line(at++)), 1000);
  response.on('close', () => clearInterval(timer));
}

function openTensorboard(call: Call): void {
  const { fake } = call;
  if (fake.denied.has('create pods/portforward'))
    return refuse(call, 403, 'Forbidden', 'you may not create pods/portforward in namespace vision');
  answer(call, 200, { url: `${fake.url.replace('127.0.0.1', 'localhost')}/program` });
}

const CLOSED =
  'this server of the pages has no port for programs that pods serve: give it --ui-programs-address HOST:PORT';

function readTensorboard(call: Call): void {
  answer(call, 200, call.fake.boards.get(call.url.searchParams.get('name') ?? '') ?? { state: 'None' });
}

function makeTensorboard(call: Call): void {
  const { fake, url } = call;
  const name = url.searchParams.get('name') ?? '';
  if (!fake.world.jobs.some((row) => row.name === name && row.kind === url.searchParams.get('kind')))
    return refuse(call, 404, 'NotFound', `job ${name} not found`);
  if (name.startsWith('eval'))
    return refuse(call, 409, 'Conflict', `${name} writes no curves: none of its containers has SWELL_LOG_DIR.`);
  const how = fake.opens ? { opens: true } : { opens: false, port: 30606, closed: CLOSED };
  const failed = { state: 'Failed', message: 'image img has no TensorBoard' };
  const state = name.startsWith('sweep') ? failed : { state: fake.boards.has(name) ? 'Ready' : 'Starting', ...how };
  fake.boards.set(name, state);
  answer(call, 200, state);
}

function plan(call: Call): void {
  answer(call, 200, {
    text: ['It needs 1 GPU.', '  NODE    FREE', '  node-7  1 of 8'],
    starts: true,
    displaces: [{ namespace: 'vision', name: 'unet-4', members: 1 }],
    placement: [{ node: 'node-7', members: 1 }],
  });
}

function whatIf(call: Call): void {
  const before = overview(call.fake.world);
  answer(call, 200, {
    decisions: [
      { kind: 'Reclaimed', text: 'Stop vision/resnet-3 (2 GPUs): vision is over its quota.' },
      { kind: 'Scheduled', text: 'Start robotics/policy-9 on node-2.' },
    ],
    before,
    after: { ...before, jobs: { ...before.jobs, running: before.jobs.running + 1 } },
  });
}

export const JOB_ROUTES: Route[] = [
  { path: /\/pods\/([^/]+)\/log(?:\/([^/]+))?$/, handle: log },
  { path: /\/namespaces\/([^/]+)\/trainingjobs$/, methods: ['POST'], handle: submit },
  { path: /\/namespaces\/([^/]+)\/trainingjobs\/([^/]+)$/, handle: oneJob },
];
export const QUESTION_ROUTES: Route[] = [
  { path: /^\/ui\/api\/tensorboard\/open$/, handle: openTensorboard },
  { path: /^\/ui\/api\/tensorboard$/, methods: ['GET'], handle: readTensorboard },
  { path: /^\/ui\/api\/tensorboard$/, handle: makeTensorboard },
  { path: /^\/ui\/api\/plan$/, handle: plan },
  { path: /^\/ui\/api\/whatif$/, handle: whatIf },
];
