// A small cluster for the tests of the pages: nodes, projects and jobs made from a seed.
import type {
  AuditEvent,
  CronRow,
  EventRow,
  GpuDevice,
  JobData,
  LogPart,
  NodeRow,
  OverviewData,
  PoolRow,
  ProjectRow,
  Series,
  UserRow,
  WhyData,
  WorkloadRow,
} from '../../src/lib/types.ts';
import { makeCrons } from './crons.ts';

export interface World {
  now: number;
  crons: CronRow[];
  nodes: NodeRow[];
  pools: PoolRow[];
  projects: ProjectRow[];
  membersPartial?: boolean; // the user may not see to whom projects were given
  jobs: WorkloadRow[];
  events: EventRow[];
  users: UserRow[];
  audit: AuditEvent[];
}

// Mulberry32: the same seed makes the same cluster.
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const PROJECTS = ['vision', 'speech', 'robotics'];
const QUOTAS = [24, 16, 8];
const WORDS = ['resnet', 'bert', 'whisper', 'unet', 'policy', 'tokenizer', 'eval', 'sweep', 'finetune', 'notebook'];
const POOL = 'single-node-pool';
const GIB = 2 ** 30;

function job(index: number, next: () => number, now: number): WorkloadRow {
  const project = PROJECTS[Math.floor(next() * PROJECTS.length)] ?? 'vision';
  const word = WORDS[Math.floor(next() * WORDS.length)] ?? 'job';
  const elastic = next() < 0.3;
  const single = !elastic && next() < 0.5;
  const several = elastic ? 4 : 2;
  const workers = single ? 1 : several;
  const created = now - Math.floor(next() * 86400) * 1000;
  return {
    namespace: project,
    name: `${word}-${index}`,
    kind: next() < 0.2 ? 'PyTorchJob' : 'TrainingJob',
    apiVersion: 'swell.dev/v1',
    plural: 'trainingjobs',
    uid: `uid-${index}`,
    status: 'Pending',
    reason: null,
    project,
    pool: POOL,
    priority: word === 'notebook' ? 'interactive' : 'train',
    preemptible: true,
    members: { running: 0, requested: workers, min: elastic ? 1 : workers, max: workers },
    gpus: { requested: workers, held: 0 },
    waitSeconds: null,
    runSeconds: null,
    preemptions: 0,
    shrinks: 0,
    createdBy: next() < 0.5 ? 'ada' : 'grace',
    created: new Date(created).toISOString(),
    started: null,
    completed: null,
    progress: null,
    throughput: null,
  };
}

function node(index: number, now: number): NodeRow {
  return {
    name: `node-${index}`,
    status: 'Ready',
    reason: null,
    pool: POOL,
    gpuType: 'H100',
    gpus: { total: 8, held: 0, free: 8 },
    gpuDevices: Array.from({ length: 8 }, (_, gpu): GpuDevice => ({
      index: gpu,
      uuid: `GPU-${index}-${gpu}`,
      model: 'H100 80GB',
      health: 'Healthy',
      utilization: 0,
      memoryUsed: 0,
      job: null,
      pod: null,
      idleSince: null,
    })),
    cpu: { total: 64, held: 0, used: 3 },
    memory: { total: 512 * GIB, held: 0, used: 40 * GIB },
    pods: [],
    conditions: [
      { type: 'Ready', status: 'True', reason: 'AgentReady', message: 'the agent is ready' },
      { type: 'MemoryPressure', status: 'False', message: 'enough memory' },
    ],
    health: { state: 'Healthy', text: 'healthy', score: 0, suspectFrom: 3, faults: [], failures: [] },
    unschedulable: false,
    created: new Date(now - 5 * 86400e3).toISOString(),
  };
}

// First fit: jobs of a project run while there is room, and the rest waits or is over.
function place(world: World, next: () => number): void {
  const free = world.nodes.flatMap((one) => one.gpuDevices.map((gpu) => ({ one, gpu })));
  for (const row of world.jobs) {
    const luck = next();
    const ran = Math.floor(next() * 7200);
    if (luck < 0.15)
      Object.assign(row, {
        status: 'Succeeded',
        runSeconds: ran,
        completed: new Date(world.now - 60e3).toISOString(),
        started: row.created,
      });
    else if (luck < 0.2)
      Object.assign(row, {
        status: 'Failed',
        statusText: 'Failed: exit 1',
        reason: 'exit code 1',
        runSeconds: ran,
        completed: new Date(world.now - 60e3).toISOString(),
        started: row.created,
      });
    else if (free.length >= row.gpus.requested) {
      Object.assign(row, {
        status: 'Running',
        runsSince: new Date(world.now - ran * 1000).toISOString(),
        throughput: 120 * row.gpus.requested,
        throughputUnit: 'records',
        waitSeconds: 12,
        preemptions: luck > 0.8 ? 1 : 0,
      });
      row.members.running = row.members.requested;
      row.gpus.held = row.gpus.requested;
      row.progress = {
        phase: 'step',
        step: 400,
        total: 1000,
        epoch: 2,
        epochs: 5,
        percentage: 40,
        etaSeconds: 3600,
        updated: new Date(world.now - 2000).toISOString(),
      };
      for (let worker = 0; worker < row.gpus.requested; worker += 1) hold(row, worker, free.shift(), next, world.now);
    } else row.reason = `0 of 8 nodes have ${row.gpus.requested} free GPUs; ${row.project} holds its quota.`;
  }
}
// The oldest of a project comes first.
function queue(jobs: WorkloadRow[]): void {
  const waiting = jobs.filter((row) => row.status === 'Pending');
  waiting.sort((a, b) => (a.created ?? '').localeCompare(b.created ?? ''));
  for (const row of waiting) {
    const line = waiting.filter((other) => other.project === row.project);
    const place = line.indexOf(row) + 1;
    const text = `number ${place} of ${line.length} that wait in ${row.project}, by priority and age`;
    row.queue = { project: row.project ?? '', of: line.length, place, text };
    row.place = line.length > 1 && place <= 20 ? place : null;
    row.waitsSince = row.created;
  }
}
function hold(
  row: WorkloadRow,
  worker: number,
  slot: { one: NodeRow; gpu: GpuDevice } | undefined,
  next: () => number,
  now: number,
): void {
  if (!slot) return;
  const { one, gpu } = slot;
  const pod = `${row.name}-worker-${worker}`;
  const idle = next() < 0.1;
  Object.assign(gpu, {
    job: row.name,
    pod,
    utilization: idle ? 0 : 0.6 + next() * 0.4,
    memoryUsed: 40 * GIB,
    idleSince: idle ? new Date(now - 900e3).toISOString() : null,
  });
  one.gpus.held += 1;
  one.gpus.free -= 1;
  if (one.cpu) one.cpu.held += 4;
  if (one.memory) one.memory.held += 32 * GIB;
  one.pods.push({
    namespace: row.namespace,
    name: pod,
    status: 'Running',
    project: row.project,
    job: row.name,
    gpus: 1,
  });
}

export function count(world: World): void {
  for (const project of world.projects) {
    const own = world.jobs.filter(
      (row) =>
        row.project === project.name || world.projects.find((one) => one.name === row.project)?.parent === project.name,
    );
    const gpu = project.resources.gpu;
    gpu.held = own.reduce((sum, row) => sum + row.gpus.held, 0);
    gpu.requested = own
      .filter((row) => row.status === 'Running' || row.status === 'Pending')
      .reduce((sum, row) => sum + row.gpus.requested, 0);
    gpu.fairShare = Math.min(gpu.requested, Math.max(gpu.quota ?? 0, gpu.held));
    project.running = own.filter((row) => row.status === 'Running').length;
    project.pending = own.filter((row) => row.status === 'Pending').length;
    project.longestPendingSince =
      own
        .filter((row) => row.status === 'Pending')
        .map((row) => row.created ?? '')
        .sort()[0] ?? null;
    project.borrows = Math.max(0, gpu.held - (gpu.quota ?? 0));
    for (const pool of project.pools) pool.gpu = { ...gpu };
  }
  const leaves = world.projects.filter((one) => one.namespace);
  const borrowed = leaves.reduce((sum, one) => sum + (one.borrows ?? 0), 0);
  for (const one of leaves)
    one.lends = Math.min(borrowed, Math.max(0, (one.resources.gpu.quota ?? 0) - one.resources.gpu.held));
  for (const pool of world.pools) {
    const own = world.nodes.filter((one) => pool.nodes.includes(one.name));
    const held = own.reduce((sum, one) => sum + one.gpus.held, 0);
    pool.gpus = { total: own.length * 8, held, free: own.length * 8 - held };
  }
}

function project(name: string, parent: string | null, quota: number, now: number): ProjectRow {
  return {
    name,
    parent,
    namespace: name === 'research' ? null : name,
    status: 'Ready',
    message: '',
    priority: 100,
    description: name === 'research' ? 'All of research' : `The team ${name}`,
    resources: {
      gpu: { held: 0, quota, fairShare: 0, requested: 0, limit: null, weight: 1 },
      cpu: { held: 12, quota: 96 },
      memory: { held: 96 * GIB, quota: 512 * GIB },
    },
    pools: name === 'research' ? [] : [{ name: POOL, gpu: { held: 0, quota } }],
    running: 0,
    pending: 0,
    longestPendingSince: null,
    members:
      name === 'vision'
        ? [
            { kind: 'User', name: 'ada', role: 'researcher', source: 'Project' },
            { kind: 'Group', name: 'leads', role: 'project-admin', source: 'Project' },
            { kind: 'User', name: 'eve', role: 'viewer', source: 'User' },
          ]
        : [],
    created: new Date(now - 4 * 86400e3).toISOString(),
  };
}

// A node with a bad GPU, one on which work failed, and one that gets no new pods.
function makeUnwell(world: World): void {
  const [, , faulty, suspect, , unhealthy] = world.nodes;
  const at = (hours: number) => new Date(world.now - hours * 3600e3).toISOString();
  if (faulty?.health) {
    const message = 'the driver reported XID 79, it has fallen off the bus';
    Object.assign(faulty.gpuDevices[3] ?? {}, {
      health: 'Unhealthy',
      healthReason: message,
      job: null,
      pod: null,
      utilization: null,
      memoryUsed: null,
    });
    faulty.health = {
      ...faulty.health,
      state: 'Faulty',
      text: 'has faults, and gets new pods',
      faults: [{ type: 'GpuHealthy', reason: 'XidError79', message: `GPU 3: ${message}`, taints: false }],
    };
    faulty.conditions.push({
      type: 'GpuHealthy',
      status: 'False',
      reason: 'XidError79',
      message: `GPU 3: ${message}`,
      lastTransitionTime: at(2),
    });
  }
  if (suspect?.health) {
    suspect.health = {
      ...suspect.health,
      state: 'Suspect',
      text: 'suspect: pods failed there; it is used last',
      score: 3.4,
      failures: [
        {
          time: at(3),
          pod: 'vision/resnet-3-worker-0',
          class: 'Hardware',
          weight: 1,
          message: 'CUDA error: uncorrectable ECC error encountered',
        },
        { time: at(2), pod: null, class: 'Hardware', weight: 1, message: null },
        {
          time: at(1),
          pod: 'vision/bert-8-worker-1',
          class: 'PeerLost',
          weight: 0.33,
          message: 'Connection reset by peer',
        },
      ],
    };
  }
  if (unhealthy?.health) {
    unhealthy.health = {
      ...unhealthy.health,
      state: 'Unhealthy',
      text: 'unhealthy: it gets no new pods',
      faults: [
        {
          type: 'DiskHealthy',
          reason: 'ReadOnly',
          message: 'the file system of /var/lib/swell is read-only',
          taints: true,
        },
      ],
    };
    unhealthy.conditions.push({
      type: 'DiskHealthy',
      status: 'False',
      reason: 'ReadOnly',
      message: 'the file system of /var/lib/swell is read-only',
      lastTransitionTime: at(0.2),
    });
  }
}

export function makeWorld(jobs: number, seed = 7, now = Date.now()): World {
  const next = random(seed);
  const world: World = {
    now,
    crons: makeCrons(now),
    nodes: Array.from({ length: 8 }, (_, index) => node(index, now)),
    jobs: Array.from({ length: jobs }, (_, index) => job(index, next, now)),
    projects: [
      project('research', null, 48, now),
      ...PROJECTS.map((name, at) => project(name, 'research', QUOTAS[at] ?? 0, now)),
    ],
    pools: [
      {
        name: POOL,
        status: 'Ready',
        label: { key: 'pool', value: 'one' },
        nodes: Array.from({ length: 8 }, (_, index) => `node-${index}`),
        gpus: { total: 64, held: 0, free: 64 },
        cpus: { total: 512, held: 120 },
        memory: { total: 4096 * GIB, held: 900 * GIB },
        strategy: { gpu: 'Pack', cpu: 'Spread' },
        created: new Date(now - 4 * 86400e3).toISOString(),
        projects: 3,
      },
    ],
    events: [],
    users: [
      {
        name: 'ada',
        groups: ['leads'],
        runAs: 'ada',
        created: new Date(now - 86400e3).toISOString(),
        projects: [{ name: 'vision', role: 'researcher' }],
      },
      { name: 'grace', groups: [], runAs: 1001, created: new Date(now - 86400e3).toISOString(), projects: [] },
    ],
    audit: [
      ['ada', 'delete', 'trainingjobs', 'bert-1', 200],
      ['grace', 'list', 'secrets', '', 403],
    ].map(([user, verb, resource, name, code], at) => ({
      auditID: `request-${at}`,
      stage: 'ResponseComplete',
      stageTimestamp: new Date(now - at * 60e3).toISOString(),
      verb: String(verb),
      requestURI: '/',
      user: { username: String(user) },
      objectRef: { resource: String(resource), namespace: 'vision', name: String(name) },
      responseStatus: { code: Number(code), reason: code === 403 ? 'Forbidden' : undefined },
    })),
  };
  place(world, next);
  queue(world.jobs);
  const last = world.nodes[7];
  if (last) Object.assign(last, { status: 'NotReady', reason: 'The agent has not renewed its lease for 52 s.' });
  makeUnwell(world);
  const hung = world.jobs.find((row) => row.status === 'Running' && row.members.running === 4);
  if (hung?.progress) {
    Object.assign(hung, {
      status: 'Hung',
      reason: 'No rank moves: rank 3 (pod worker-3) has been in phase step, after step 400.',
    });
    hung.progress.etaSeconds = null;
  }
  count(world);
  const running = world.jobs.filter((row) => row.status === 'Running');
  world.events = running.slice(0, 40).map((row, at): EventRow => ({
    time: new Date(now - at * 97e3).toISOString(),
    type: at % 5 === 0 ? 'Warning' : 'Normal',
    reason: ['Scheduled', 'Reclaimed', 'SawCompletedWorkload', 'Grown', 'Shrunk'][at % 5] ?? 'Scheduled',
    object: { kind: row.kind, namespace: row.namespace, name: row.name },
    message:
      at % 5 === 1
        ? `Stopped 2 of 4 for robotics/notebook-7: ${row.project} was 4 GPUs over its quota.`
        : `${row.gpus.held} GPUs on node-${at % 8}.`,
    count: 1,
  }));
  return world;
}

export function overview(world: World): OverviewData {
  const sumOf = (nodes: NodeRow[]) => nodes.reduce((sum, one) => sum + one.gpus.total, 0);
  const total = sumOf(world.nodes);
  const held = world.nodes.reduce((sum, one) => sum + one.gpus.held, 0);
  const pending = world.jobs.filter((row) => row.status === 'Pending');
  const failing = world.jobs.filter((row) => row.status === 'Hung' || /BackOff$/.test(row.statusText ?? ''));
  const idle = world.nodes.flatMap((one) => one.gpuDevices).filter((gpu) => gpu.idleSince).length;
  return {
    gpus: {
      total,
      ready: sumOf(world.nodes.filter((one) => one.status === 'Ready')),
      held,
      free: total - held,
      idleHeld: idle,
    },
    jobs: {
      running: world.jobs.filter((row) => row.status === 'Running').length,
      pending: pending.length,
      oldestPendingSince: pending.map((row) => row.created ?? '').sort()[0] ?? null,
    },
    failing: { total: failing.length, rows: failing.slice(0, 5) },
    preemptionsToday: 7,
    lostGpuSecondsToday: 5400,
    pools: world.pools.map((pool) => ({ name: pool.name, total: pool.gpus.total, held: pool.gpus.held })),
    nodes: world.nodes.map((one) => ({
      name: one.name,
      pool: one.pool,
      ready: one.status === 'Ready',
      gpus: one.gpuDevices.map((gpu) => ({
        index: gpu.index,
        project: one.pods.find((pod) => pod.name === gpu.pod)?.project ?? null,
        job: gpu.job,
        share: gpu.job ? 1 : 0,
        bad: gpu.health === 'Unhealthy',
      })),
    })),
    decisions: world.events.slice(0, 20).map((event) => ({
      time: event.time,
      reason: event.reason,
      object: event.object as { kind: string; namespace: string; name: string },
      message: event.message,
    })),
  };
}

// Each worker ran before it was stopped; the first one's container was started again in that time.
function logParts(row: WorkloadRow, at: (part: number) => string): LogPart[] {
  const members = Array.from({ length: row.members.requested }, (_, index) => `${row.name}-worker-${index}`);
  const early = members.flatMap((member, index) =>
    Array.from({ length: index === 0 ? 2 : 1 }, (_, start): LogPart => ({
      key: `old-${member}/${start}`,
      uid: `old-${member}`,
      member,
      node: `node-${index}`,
      container: 'trainer',
      attempt: 1,
      start: start + 1,
      live: false,
      running: false,
      result: 'preempted',
      started: at(0.13),
      ended: at(0.5),
    })),
  );
  const now = members.slice(0, row.members.running).map((member, index): LogPart => ({
    key: `new-${member}/0`,
    uid: `new-${member}`,
    member,
    node: `node-${index}`,
    container: 'trainer',
    attempt: 2,
    start: 1,
    live: true,
    running: true,
    result: null,
    started: at(0.6),
    ended: null,
  }));
  return [...early, ...now];
}

function hangOf(row: WorkloadRow, at: (part: number) => string): JobData['hang'] {
  if (row.status !== 'Hung') return null;
  const stack = (line: number, place: string) =>
    'Current thread 0x00007f (most recent call first):\n' +
    `  File "/train/mnist.py", line ${line} in ${place}\n` +
    '  File "/train/mnist.py", line 210 in main';
  return {
    now: true,
    message: row.reason,
    since: at(0.95),
    restarts: 1,
    ranks: Array.from({ length: row.members.running }, (_, rank) => ({
      rank,
      pod: `${row.name}-worker-${rank}`,
      node: `node-${rank}`,
      phase: rank === 3 ? 'data' : 'step',
      step: 400,
      since: at(0.94),
      deadlineSeconds: 30,
      suspect: rank === 3,
      stack: rank === 3 ? stack(88, 'next_batch') : stack(140, 'all_reduce'),
    })),
  };
}

export function jobData(world: World, namespace: string, name: string): JobData | undefined {
  const row = world.jobs.find((one) => one.namespace === namespace && one.name === name);
  if (!row) return undefined;
  const begin = Date.parse(row.created ?? '');
  const at = (part: number) => new Date(begin + (world.now - begin) * part).toISOString();
  // The first of those that run with two workers.
  const slow = row === world.jobs.find((one) => one.status === 'Running' && one.members.running === 2);
  const parts = (member: string | null, shift: number): JobData['timeline'] => [
    { member, state: 'Pending', from: at(0), to: at(0.1 + shift) },
    { member, state: 'Starting', from: at(0.1 + shift), to: at(0.13 + shift) },
    { member, state: 'Running', from: at(0.13 + shift), to: at(0.5) },
    { member, state: 'Preempted', from: at(0.5), to: at(0.6) },
    { member, state: 'Running', from: at(0.6), to: null },
  ];
  return {
    summary: row,
    sentence:
      row.status === 'Running'
        ? `Runs on ${row.gpus.held} GPUs. It was stopped once for robotics/notebook-7 and resumed from step 380.`
        : row.status === 'Failed'
          ? `The job is over: ${row.statusText}.`
          : (row.reason ?? row.status),
    conditions: [{ type: 'Running', status: 'True', reason: 'Placed', message: 'all members run' }],
    members: Array.from({ length: row.members.running }, (_, index) => ({
      pod: `${row.name}-worker-${index}`,
      role: 'worker',
      index,
      node: `node-${index % 8}`,
      gpus: [index],
      status: 'Running',
      reason: null,
      restarts: 0,
      attempt: 2,
      started: at(0.6),
      finished: null,
      exitCode: null,
      message: null,
      straggler: slow && index === 1,
      cpu: 2.5,
      memory: 6 * GIB,
    })),
    timeline: [
      ...parts(null, 0),
      ...Array.from({ length: row.members.running }, (_, index) =>
        parts(`${row.name}-worker-${index}`, 0.01 * index),
      ).flat(),
    ],
    marks: [
      { time: at(0.5), kind: 'Reclaimed', text: 'Stopped for robotics/notebook-7.' },
      { time: at(0.6), kind: 'Resumed', text: 'Resumed from step 380.' },
    ],
    sizes: [
      { time: at(0.13), members: row.members.requested },
      { time: at(0.5), members: 0 },
      { time: at(0.6), members: row.members.requested },
    ],
    checkpoints: [
      { time: at(0.3), step: 200 },
      { time: at(0.49), step: 380 },
      { time: at(0.8), step: 600 },
    ],
    lostGpuSeconds: 240,
    heldGpuSeconds: 7200,
    events: world.events.filter((event) => typeof event.object !== 'string' && event.object.name === name),
    attempts: [
      { number: 1, from: at(0.1), to: at(0.5), reason: 'Reclaimed' },
      { number: 2, from: at(0.6), to: null, reason: null },
    ],
    goodput: slow
      ? {
          sentence: '2 members make 77 records per second, 1.96 times what 1 makes; it asks for 4',
          next: 'worth +31 % here; flat with 1: +4 %',
          unit: 'records',
          members: 2,
          wanted: 4,
          fit: null,
          decision: 'Grew from 1 to 2: +48 % goodput measured; the resize took 0.3 s',
          typeDecision: 'Stays on T4: A100 would make 20 % more, and a restart costs more than that',
          sizes: [
            { members: 1, perSecond: 39, relative: 1, measured: true, source: 'measured' },
            { members: 2, perSecond: 77, relative: 1.96, measured: true, source: 'measured' },
            { members: 4, perSecond: 132, relative: 3.38, measured: false, source: 'fitted' },
          ],
        }
      : null,
    logs: logParts(row, at),
    hang: hangOf(row, at),
    warnings: slow
      ? [
          {
            type: 'Straggler',
            message:
              `Much slower than its peers: rank 1 (pod ${row.name}-worker-1 on node-1) ` +
              'makes 0.50 of the steps of its peers: 1.00 a second.',
            since: at(0.9),
          },
        ]
      : [],
  };
}

const START =
  'It could start in 58m, at 2026-01-01T01:00:00Z, if no other work comes before it: by then vision/resnet-3 ' +
  'reaches its time limit.';

export function why(row: WorkloadRow | undefined): WhyData {
  if (!row) return { sentence: 'There is no such workload.', lines: [] };
  if (row.status === 'Failed')
    return {
      sentence: `${row.name} is over: ${row.statusText}.`,
      lines: [],
      status: row.status,
      waits: false,
      next: `swell logs ${row.name} -n ${row.namespace} shows what it printed`,
    };
  if (row.statusText === 'ImagePullBackOff')
    return {
      sentence: `${row.name} cannot start: ImagePullBackOff`,
      lines: ['Failure:  its image was not found'],
      status: row.status,
      waits: true,
      next: `swell describe ${row.name} -n ${row.namespace} shows what its node tried`,
      wouldStartWith: [],
    };
  const { running, requested } = row.members;
  if (row.status === 'Running' && running < requested)
    return {
      sentence: `${row.name} runs with ${running} of ${requested} pods; the others wait`,
      lines: [],
      status: row.status,
      waits: true,
      wouldStartWith: ['vision/resnet-3 ends (4 GPUs on node-1)', 'one more node like node-1'],
    };
  if (row.status !== 'Pending')
    return { sentence: `${row.name} is ${row.status}.`, lines: [], status: row.status, waits: false };
  return {
    status: row.status,
    waits: true,
    sentence: `${row.name} waits: it needs ${row.gpus.requested} GPUs at once, and none is free.`,
    lines: [
      'Why:      all 64 GPUs are held',
      `Queue:    ${row.queue?.text}`,
      `Quota:    ${row.project} holds its quota, so it cannot take GPUs back from others`,
      'Nodes:',
      '  NODE    FREE GPUS  HELD BY',
      '  node-1  0 of 8     vision/resnet-3 8',
      '  node-2  0 of 8',
      '  and 6 more nodes with at most 0 free',
      START,
      'It would start, for example, with any one of these:',
      '  one more node like node-1',
    ],
    start: START,
    wouldStartWith: [`a GPU quota of ${row.gpus.requested} for ${row.project}`, 'one more node like node-1'],
    displaces: [{ namespace: 'vision', name: 'unet-4', members: 2 }],
  };
}

// The GPUs that pods without a project hold.
function heldOutside({ nodes }: World): number {
  const names = new Set(nodes.flatMap((one) => one.pods.filter((pod) => !pod.project).map((pod) => pod.name)));
  return nodes.flatMap((one) => one.gpuDevices).filter((gpu) => gpu.pod && names.has(gpu.pod)).length;
}

// A past that a seed makes: curves that go up and down in steps.
export function history(world: World, names: string[], from: number, to: number, points: number): Series[] {
  const step = Math.max(15, (to - from) / Math.max(2, points));
  const t: number[] = [];
  for (let at = from; at <= to; at += step) t.push(Math.round(at));
  const line = (name: string, labels: Record<string, string>, value: (time: number) => number | null): Series => ({
    name,
    labels,
    t,
    v: t.map(value),
  });
  const wave = (seed: number, period: number) => (time: number) => Math.sin((time / period) * 2 * Math.PI + seed);
  // Curves of what is held end at what is held now.
  const held = world.nodes.reduce((sum, one) => sum + one.gpus.held, 0);
  const ebb = (time: number) => 1 - Math.cos(((time - to) / 2400) * 2 * Math.PI);
  const swing = (at: number, time: number) => 5 * (wave(at * 2, 2000)(time) - wave(at * 2, 2000)(to));
  const out: Series[] = [];
  for (const name of names) {
    if (name === 'gpu_total') out.push(line(name, { pool: POOL }, () => 64));
    if (name === 'gpu_held') out.push(line(name, { pool: POOL }, (time) => Math.round(held - 6 * ebb(time))));
    if (name === 'gpu_utilized')
      out.push(line(name, { pool: POOL }, (time) => 40 + 8 * wave(1, 2400)(time) + 3 * wave(2, 300)(time)));
    if (name === 'queue_length')
      out.push(line(name, { pool: POOL }, (time) => Math.max(0, Math.round(3 + 4 * wave(3, 1800)(time)))));
    if (name === 'queue_gpus')
      out.push(line(name, { pool: POOL }, (time) => Math.max(0, Math.round(8 + 9 * wave(3, 1800)(time)))));
    if (name === 'queue_wait_p50_seconds')
      out.push(line(name, {}, (time) => Math.max(0, 240 + 200 * wave(3, 1800)(time))));
    if (name === 'queue_wait_p95_seconds')
      out.push(line(name, {}, (time) => Math.max(0, 900 + 800 * wave(3, 1800)(time))));
    if (name === 'preemptions_by_rule')
      out.push(
        line(name, { rule: 'reclaim' }, (time) => Math.floor((time - from) / 600)),
        line(name, { rule: 'preempt' }, (time) => Math.floor((time - from) / 1100)),
      );
    if (name === 'running_jobs')
      out.push(line(name, { pool: POOL }, (time) => Math.round(30 + 5 * wave(4, 3000)(time))));
    if (name === 'preemptions') out.push(line(name, { pool: POOL }, (time) => Math.floor((time - from) / 600)));
    if (name === 'lost_gpu_seconds')
      out.push(line(name, { pool: POOL }, (time) => Math.floor((time - from) / 600) * 900));
    if (name === 'project_gpu_held') out.push(line(name, { project: '' }, () => heldOutside(world)));
    world.projects
      .filter((one) => one.namespace)
      .forEach((one, at) => {
        const labels = { project: one.name, pool: POOL };
        const quota = one.resources.gpu.quota ?? 0;
        if (name === 'project_gpu_held')
          out.push(line(name, labels, (time) => Math.max(0, Math.round(one.resources.gpu.held + swing(at, time)))));
        if (name === 'project_gpu_utilized')
          out.push(
            line(
              name,
              { project: one.name },
              (time) => 0.8 * Math.max(0, Math.round(quota + 6 * wave(at * 2, 2000)(time))),
            ),
          );
        if (name === 'started_jobs')
          out.push(line(name, { project: one.name }, (time) => Math.floor((time - from) / 300)));
        if (name === 'started_wait_seconds')
          out.push(line(name, { project: one.name }, (time) => 75 * (at + 1) * Math.floor((time - from) / 300)));
        if (name === 'project_gpu_quota') out.push(line(name, labels, () => quota));
        if (name === 'project_gpu_fair_share') out.push(line(name, labels, () => quota + 2));
        if (name === 'project_gpu_requested')
          out.push(line(name, labels, (time) => Math.max(0, Math.round(quota + 8 * wave(at * 2, 2000)(time)))));
      });
    for (const row of world.jobs.filter((one) => one.status === 'Running' || one.status === 'Hung').slice(0, 60)) {
      const labels = { namespace: row.namespace, job: row.name };
      const size = (time: number) =>
        time < from + (to - from) * 0.5 ? row.members.requested : Math.max(1, Math.ceil(row.members.requested / 2));
      if (name === 'job_members') out.push(line(name, labels, size));
      if (name === 'job_throughput')
        out.push(line(name, labels, (time) => 120 * size(time) ** 0.9 + 6 * wave(5, 200)(time)));
      if (name === 'job_step') out.push(line(name, labels, (time) => Math.floor((400 * (time - from)) / (to - from))));
      if (name === 'job_loss')
        out.push(line(name, labels, (time) => 0.2 + 2 * Math.exp((-4 * (time - from)) / (to - from))));
    }
    const [resource, part] = name.split('_');
    if ((resource === 'cpu' || resource === 'memory') && part) {
      const unit = resource === 'cpu' ? 1 : 8 * GIB;
      out.push(
        line(
          name,
          { pool: POOL },
          part === 'total'
            ? () => 512 * unit
            : (time) => (part === 'held' ? 300 : 180) * unit + 40 * unit * wave(7, 2400)(time),
        ),
      );
    }
    for (const one of world.nodes) {
      if (name === 'node_cpu_held') out.push(line(name, { node: one.name }, () => one.cpu?.held ?? 0));
      if (name === 'node_cpu_used') out.push(line(name, { node: one.name }, (time) => 3 + wave(6, 400)(time)));
      if (name === 'node_memory_held') out.push(line(name, { node: one.name }, () => one.memory?.held ?? 0));
      if (name === 'node_memory_used')
        out.push(line(name, { node: one.name }, (time) => GIB * (40 + 5 * wave(6, 400)(time))));
      if (name === 'node_gpu_held') out.push(line(name, { node: one.name }, () => one.gpus.held));
      if (name === 'node_gpu_utilized')
        out.push(line(name, { node: one.name }, (time) => one.gpus.held * (0.7 + 0.1 * wave(6, 400)(time))));
    }
  }
  return out;
}
