// A server of the pages over a made-up cluster: the fixture of the browser tests, and what one
// develops against without a cluster.
import { createReadStream, existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { KubeObject } from '../../src/lib/types.ts';
import { TextSocket } from './socket.ts';
import { count, history, jobData, makeWorld, overview, why, type World } from './world.ts';

export interface Fake {
  server: Server;
  url: string;
  world: World;
  requests: string[];
  changed: () => void; // sends all views anew
  lost: Set<string>; // uids of pods whose logs nobody keeps
  boards: Map<string, unknown>; // TensorBoards, by job
  opens: boolean; // whether there is a port for what pods serve
  denied: Set<string>; // "delete trainingjobs": what the user may not do
  sockets: boolean; // whether WebSockets are accepted
  close: () => Promise<void>;
}

export const TOKEN = 'let-me-in';
export const CODE = 'one-time';
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const CSP = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
function refuse(
  response: ServerResponse,
  code: number,
  reason: string,
  message: string,
  causes: { field: string; message: string }[] = [],
): void {
  answer(response, code, {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message,
    details: { causes },
  });
}

function viewOf(world: World, name: string, params: Record<string, unknown>): unknown {
  const text = (key: string) => String(params[key] ?? '');
  switch (name) {
    case 'overview':
      return overview(world);
    case 'projects':
      return { rows: world.projects };
    case 'nodepools':
      return { rows: world.pools };
    case 'nodes':
      return { rows: world.nodes };
    case 'workloads':
      return { rows: world.jobs };
    case 'events':
      return { rows: world.events };
    case 'users':
      return { rows: world.users };
    case 'job':
      return jobData(world, text('namespace'), text('name'));
    case 'why':
      return why(world.jobs.find((row) => row.namespace === text('namespace') && row.name === text('name')));
    default:
      return undefined;
  }
}

// As much of the API server's checks as the forms are tested with.
function createProject(fake: Fake, response: ServerResponse, object: KubeObject): void {
  const name = object.metadata?.name ?? '';
  const spec = (object.spec ?? {}) as {
    parent?: string;
    description?: string;
    nodePools?: { name: string; resources?: { gpu?: { quota?: number } } }[];
    resources?: { gpu?: { quota?: number } };
    autoscaling?: { default?: string };
  };
  if (fake.world.projects.some((row) => row.name === name))
    return refuse(response, 409, 'AlreadyExists', `projects.swell.dev "${name}" already exists`);
  const causes = (spec.nodePools ?? []).flatMap((pool, at) =>
    (pool.resources?.gpu?.quota ?? 0) > 64
      ? [
          {
            field: `spec.nodePools[${at}].resources.gpu.quota`,
            message: `Invalid value: ${pool.resources?.gpu?.quota}: the node pool ${pool.name} has 64 GPUs`,
          },
        ]
      : [],
  );
  if (spec.autoscaling && spec.description === 'no autoscaling here')
    causes.push({ field: 'spec.autoscaling.default', message: `Unsupported value: "${spec.autoscaling.default}"` });
  if (causes.length > 0) return refuse(response, 422, 'Invalid', `Project.swell.dev "${name}" is invalid`, causes);
  const quota = spec.nodePools?.[0]?.resources?.gpu?.quota ?? spec.resources?.gpu?.quota ?? 0;
  fake.world.projects.push({
    name,
    parent: spec.parent ?? null,
    namespace: name,
    status: 'Ready',
    priority: 100,
    description: spec.description,
    resources: { gpu: { held: 0, quota, fairShare: 0, requested: 0, limit: null, weight: 1 } },
    pools: (spec.nodePools ?? []).map((pool) => ({
      name: pool.name,
      gpu: { held: 0, quota: pool.resources?.gpu?.quota ?? 0 },
    })),
    running: 0,
    pending: 0,
    members: [],
    created: new Date().toISOString(),
  });
  fake.changed();
  answer(response, 201, object);
}

function users(fake: Fake, request: IncomingMessage, response: ServerResponse, url: URL, body: string): void {
  const { world } = fake;
  if (request.method === 'DELETE') {
    world.users = world.users.filter((row) => row.name !== url.searchParams.get('name'));
    fake.changed();
    return answer(response, 200, {});
  }
  const { name, role, projects } = JSON.parse(body) as { name: string; role: string; projects?: string[] };
  if (url.pathname.endsWith('/users')) {
    if (name.includes(' '))
      return refuse(response, 422, 'Invalid', 'name: expected letters and digits', [
        { field: 'name', message: `"${name}": expected letters and digits` },
      ]);
    world.users.push({
      name,
      role,
      created: new Date().toISOString(),
      projects: (projects ?? []).map((project) => ({ name: project, role })),
    });
    fake.changed();
  }
  answer(response, 200, { name, kubeconfig: `users:\n- name: ${name}\n` });
}

function submit(fake: Fake, response: ServerResponse, yaml: string, namespace: string, dryRun: boolean): void {
  const name = /^ {2}name: (\S+)/m.exec(yaml)?.[1] ?? 'job-x7k2p';
  if (/image: refuse/.test(yaml))
    return refuse(response, 422, 'Invalid', `TrainingJob.swell.dev "${name}" is invalid`, [
      {
        field: 'spec.roles.worker.template.spec.containers[0].image',
        message: 'Invalid value: "refuse": no image is called so',
      },
    ]);
  if (/priorityClassName: nosuch/.test(yaml))
    return refuse(response, 403, 'Forbidden', 'no PriorityClass with name nosuch was found');
  const object: KubeObject = {
    apiVersion: 'swell.dev/v1',
    kind: 'TrainingJob',
    metadata: { name, namespace },
    spec: { roles: {} },
  };
  if (!dryRun) {
    const gpus = Number(/replicas: (\d+)/.exec(yaml)?.[1] ?? 1);
    fake.world.jobs.unshift({
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
      members: { running: 0, requested: gpus, min: gpus, max: gpus },
      gpus: { requested: gpus, held: 0 },
      waitSeconds: 0,
      created: new Date().toISOString(),
    });
    count(fake.world);
    fake.changed();
  }
  answer(response, 201, object);
}

// A log of a pod that is gone ends before those of now begin.
function logs(response: ServerResponse, pod: string, search: URLSearchParams, uid?: string): void {
  const shift = uid ? 3600 : 0;
  const start = Number(search.get('restart') ?? 0);
  const which = uid ? ` before${start ? ' again' : ''}` : '';
  const textOf = (at: number) =>
    at % 50 === 7
      ? '\u001b[31mloss is high\u001b[0m'
      : `step ${at} loss ${(2 / (at + 1)).toFixed(4)} of ${pod}${which}`;
  const timeOf = (at: number) => new Date(Date.now() - (200 - at + shift - 300 * start) * 1000).toISOString();
  const line = (at: number) => `${timeOf(at)} ${textOf(at)}\n`;
  response.writeHead(200, { 'content-type': 'text/plain' });
  if (!search.get('sinceTime')) for (let at = 0; at < 200; at += 1) response.write(line(at));
  if (search.get('follow') !== 'true') return void response.end();
  let at = 200;
  const timer = setInterval(() => response.write(line(at++)), 1000);
  response.on('close', () => clearInterval(timer));
}

function kube(fake: Fake, request: IncomingMessage, response: ServerResponse, url: URL, body: string): void {
  const { world } = fake;
  const place = url.pathname.slice('/ui/api/k8s'.length);
  const parse = () => JSON.parse(body) as KubeObject;
  if (place.endsWith('/selfsubjectaccessreviews')) {
    const wanted = (parse().spec?.resourceAttributes ?? {}) as { verb: string; resource: string };
    return answer(response, 201, { status: { allowed: !fake.denied.has(`${wanted.verb} ${wanted.resource}`) } });
  }
  if (place === '/version')
    return answer(response, 200, { gitVersion: 'v1.37.2+swell', platform: 'linux/amd64' });
  if (place === '/swell/v1/audit')
    return answer(response, 200, {
      items: world.audit.filter(
        (one) => !url.searchParams.get('user') || one.user?.username === url.searchParams.get('user'),
      ),
      more: false,
    });
  if (place === '/readyz') return void response.end('ok');
  if (place.endsWith('/leases'))
    return answer(response, 200, {
      items: [
        { metadata: { name: 'swell-controller', namespace: 'kube-system' }, spec: { holderIdentity: 'this-machine' } },
      ],
    });
  if (place.endsWith('/priorityclasses'))
    return answer(response, 200, {
      items: ['train', 'interactive', 'build', 'inference', 'nosuch'].map((name) => ({ metadata: { name } })),
    });
  if (place.endsWith('/storageclasses'))
    return answer(response, 200, {
      items: [
        {
          provisioner: 'local.swell.dev',
          metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        },
      ],
    });
  if (/\/persistentvolumeclaims(?:\/|$)/.test(place))
    return answer(response, request.method === 'POST' ? 201 : 200, body ? parse() : {});
  if (place === '/api/v1/pods') {
    const on = /spec\.nodeName=(\S+)/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
    const pods = world.nodes.find((one) => one.name === on)?.pods ?? [];
    return answer(response, 200, {
      items: pods.map((pod) => ({
        metadata: {
          name: pod.name,
          namespace: pod.namespace,
          ...(pod.job ? {} : { ownerReferences: [{ kind: 'DaemonSet' }] }),
        },
        status: { phase: pod.status },
      })),
    });
  }
  if (place.endsWith('/eviction')) {
    const evicted = place.split('/').at(-2);
    for (const one of world.nodes) one.pods = one.pods.filter((pod) => pod.name !== evicted);
    fake.changed();
    return answer(response, 201, { kind: 'Status', status: 'Success' });
  }
  const patched = /^\/api\/v1\/nodes\/([^/]+)$/.exec(place)?.[1];
  if (patched && request.method === 'PATCH') {
    for (const one of world.nodes) if (one.name === patched) one.unschedulable = /"unschedulable":true/.test(body);
    fake.changed();
    return answer(response, 200, {});
  }
  const log = /\/pods\/([^/]+)\/log(?:\/([^/]+))?$/.exec(place);
  if (log?.[2] && fake.lost.has(log[2]))
    return refuse(response, 404, 'NotFound', `the log of pod ${log[1]} is not kept`);
  if (log?.[1]) return logs(response, log[1], url.searchParams, log[2]);
  if (place === '/apis/swell.dev/v1/projects' && request.method === 'POST')
    return createProject(fake, response, parse());
  const project = /\/projects\/([^/]+)$/.exec(place)?.[1];
  if (project) {
    const row = world.projects.find((one) => one.name === project);
    if (!row) return refuse(response, 404, 'NotFound', `projects.swell.dev "${project}" not found`);
    if (request.method === 'DELETE') world.projects = world.projects.filter((one) => one !== row);
    if (request.method === 'PUT') row.description = String(parse().spec?.description ?? '');
    fake.changed();
    return answer(response, 200, {
      apiVersion: 'swell.dev/v1',
      kind: 'Project',
      metadata: { name: project, resourceVersion: '7' },
      spec: {
        description: row.description,
        nodePools: row.pools.map((pool) => ({ name: pool.name, resources: { gpu: { quota: pool.gpu.quota } } })),
        members: row.members.filter((one) => one.source !== 'User').map(({ source: _, ...one }) => one),
      },
    });
  }
  if (place === '/apis/swell.dev/v1/nodepools' && request.method === 'POST') {
    const name = parse().metadata?.name ?? '';
    if (world.pools.some((pool) => pool.name === name))
      return refuse(response, 409, 'AlreadyExists', `nodepools.swell.dev "${name}" already exists`);
    world.pools.push({
      name,
      status: 'Empty',
      nodes: [],
      gpus: { total: 0, held: 0, free: 0 },
      created: new Date().toISOString(),
    });
    fake.changed();
    return answer(response, 201, parse());
  }
  const named = /\/nodepools\/([^/]+)$/.exec(place)?.[1];
  if (named) {
    const pool = world.pools.find((one) => one.name === named);
    if (!pool) return refuse(response, 404, 'NotFound', `nodepools.swell.dev "${named}" not found`);
    if (request.method === 'PATCH') {
      const spec = parse().spec as {
        nodeSelector?: Record<string, string | null>;
        placement?: { gpu?: string; cpu?: string };
      };
      const label = Object.entries(spec.nodeSelector ?? {}).find(([, value]) => value !== null);
      pool.label = label ? { key: label[0], value: label[1] ?? '' } : null;
      pool.strategy = spec.placement;
      fake.changed();
    }
    if (request.method === 'DELETE') {
      world.pools = world.pools.filter((one) => one !== pool);
      fake.changed();
    }
    const selector = pool.label ? { nodeSelector: { [pool.label.key]: pool.label.value } } : {};
    return answer(response, 200, {
      apiVersion: 'swell.dev/v1',
      kind: 'NodePool',
      metadata: { name: named },
      spec: { ...selector, placement: pool.strategy },
    });
  }
  const namespace = /\/namespaces\/([^/]+)\/trainingjobs$/.exec(place)?.[1];
  if (namespace && request.method === 'POST')
    return submit(fake, response, body, namespace, url.searchParams.get('dryRun') === 'All');
  const job = /\/namespaces\/([^/]+)\/trainingjobs\/([^/]+)$/.exec(place);
  if (job) {
    const row = world.jobs.find((one) => one.namespace === job[1] && one.name === job[2]);
    if (!row) return refuse(response, 404, 'NotFound', `trainingjobs.swell.dev "${job[2]}" not found`);
    if (request.method === 'DELETE') world.jobs = world.jobs.filter((one) => one !== row);
    if (request.method === 'PATCH') row.status = /"suspend":true/.test(body) ? 'Suspended' : 'Pending';
    if (request.method !== 'GET') fake.changed();
    return answer(response, 200, {
      apiVersion: row.apiVersion,
      kind: row.kind,
      metadata: { name: row.name, namespace: row.namespace, uid: row.uid, resourceVersion: '3' },
      spec: {
        project: row.project,
        roles: { worker: { replicas: row.members.requested, elastic: { minReplicas: 1, maxReplicas: 4 } } },
      },
    });
  }
  refuse(response, 404, 'NotFound', `the server has no ${place}`);
}

function staticFile(root: string, pathname: string, response: ServerResponse): void {
  const file = path.join(root, pathname.includes('.') ? pathname : 'index.html');
  if (!file.startsWith(root) || !existsSync(file)) return answer(response, 404, { message: 'no such file' });
  response.writeHead(200, {
    'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream',
    'content-security-policy': CSP,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  createReadStream(file).pipe(response);
}

export async function startFake(root: string, jobs = 60, port = 0): Promise<Fake> {
  const live = new Set<{ socket: TextSocket; views: Map<number, { view: string; params: Record<string, unknown> }> }>();
  let revision = 1;
  let loggedIn = false;
  const session = {
    user: 'admin',
    groups: ['system:masters'],
    csrf: 'csrf-word',
    expires: new Date(Date.now() + 43200e3).toISOString(),
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://fake');
    fake.requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (!url.pathname.startsWith('/ui/api/')) return staticFile(root, url.pathname, response);
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => api(request, response, url, body));
  });
  const api = (request: IncomingMessage, response: ServerResponse, url: URL, body: string): void => {
    if (url.pathname === '/ui/api/login') {
      const given = JSON.parse(body) as { code?: string; token?: string };
      if (given.code !== CODE && given.token !== TOKEN)
        return answer(response, 401, {
          message: given.code ? 'The code is used or too old.' : 'The token is not valid.',
        });
      loggedIn = true;
      return answer(response, 200, session, { 'set-cookie': 'swell_session=abc; HttpOnly; SameSite=Strict; Path=/' });
    }
    if (!loggedIn || !/swell_session=abc/.test(request.headers.cookie ?? ''))
      return answer(response, 401, { message: 'Log in first.' });
    if (request.method !== 'GET' && request.headers['x-swell-csrf'] !== session.csrf)
      return refuse(response, 403, 'Forbidden', 'the CSRF header is missing');
    if (url.pathname === '/ui/api/session') return answer(response, 200, session);
    if (url.pathname === '/ui/api/logout') {
      loggedIn = false;
      return answer(response, 200, {});
    }
    const view = /^\/ui\/api\/views\/(\w+)$/.exec(url.pathname)?.[1];
    if (view)
      return answer(response, 200, {
        revision: String(revision),
        data: viewOf(fake.world, view, Object.fromEntries(url.searchParams)),
      });
    if (url.pathname === '/ui/api/history') {
      const names = (url.searchParams.get('series') ?? '').split(',');
      return answer(response, 200, {
        series: history(
          fake.world,
          names,
          Number(url.searchParams.get('from')),
          Number(url.searchParams.get('to')),
          Number(url.searchParams.get('points')),
        ),
      });
    }
    if (url.pathname === '/ui/api/tensorboard/open') {
      if (fake.denied.has('create pods/portforward'))
        return refuse(response, 403, 'Forbidden', 'you may not create pods/portforward in namespace vision');
      return answer(response, 200, { url: `${fake.url.replace('127.0.0.1', 'localhost')}/program` });
    }
    if (url.pathname === '/ui/api/tensorboard') {
      const name = url.searchParams.get('name') ?? '';
      const known = fake.boards.get(name);
      if (request.method === 'GET') return answer(response, 200, known ?? { state: 'None' });
      if (!fake.world.jobs.some((row) => row.name === name && row.kind === url.searchParams.get('kind')))
        return refuse(response, 404, 'NotFound', `job ${name} not found`);
      if (name.startsWith('eval'))
        return refuse(response, 409, 'Conflict', `${name} writes no curves: none of its containers has SWELL_LOG_DIR.`);
      const how = fake.opens
        ? { opens: true }
        : {
            opens: false,
            port: 30606,
            closed:
              'this server of the pages has no port for programs that pods serve: ' +
              'give it --ui-programs-address HOST:PORT',
          };
      const failed = { state: 'Failed', message: 'image img has no TensorBoard' };
      const state = name.startsWith('sweep') ? failed : { state: known ? 'Ready' : 'Starting', ...how };
      fake.boards.set(name, state);
      return answer(response, 200, state);
    }
    if (url.pathname.startsWith('/ui/api/users')) return users(fake, request, response, url, body);
    if (url.pathname === '/ui/api/plan')
      return answer(response, 200, {
        text: ['It needs 1 GPU.', '  NODE    FREE', '  node-7  1 of 8'],
        starts: true,
        displaces: [{ namespace: 'vision', name: 'unet-4', members: 1 }],
        placement: [{ node: 'node-7', members: 1 }],
      });
    if (url.pathname === '/ui/api/whatif') {
      const before = overview(fake.world);
      return answer(response, 200, {
        decisions: [
          { kind: 'Reclaimed', text: 'Stop vision/resnet-3 (2 GPUs): vision is over its quota.' },
          { kind: 'Scheduled', text: 'Start robotics/policy-9 on node-2.' },
        ],
        before,
        after: { ...before, jobs: { ...before.jobs, running: before.jobs.running + 1 } },
      });
    }
    if (url.pathname.startsWith('/ui/api/k8s/')) return kube(fake, request, response, url, body);
    answer(response, 404, { message: 'there is nothing here' });
  };
  server.on('upgrade', (request, stream) => {
    if (!fake.sockets || !loggedIn) return void stream.destroy();
    const client = {
      socket: new TextSocket(request, stream),
      views: new Map<number, { view: string; params: Record<string, unknown> }>(),
    };
    live.add(client);
    client.socket.onClose = () => live.delete(client);
    client.socket.onText = (text) => {
      const message = JSON.parse(text) as { op: string; id: number; view: string; params: Record<string, unknown> };
      if (message.op === 'unsubscribe') return void client.views.delete(message.id);
      const data = viewOf(fake.world, message.view, message.params);
      client.views.set(message.id, { view: message.view, params: message.params });
      client.socket.send(
        JSON.stringify(
          data === undefined
            ? { id: message.id, error: 'There is no such workload.' }
            : { id: message.id, revision: String(revision), data },
        ),
      );
    };
  });
  const fake: Fake = {
    server,
    url: '',
    world: makeWorld(jobs),
    requests: [],
    lost: new Set(),
    boards: new Map(),
    opens: true,
    denied: new Set(),
    sockets: true,
    changed: () => {
      revision += 1;
      for (const client of live)
        for (const [id, one] of client.views)
          client.socket.send(
            JSON.stringify({ id, revision: String(revision), data: viewOf(fake.world, one.view, one.params) }),
          );
    },
    close: () =>
      new Promise((done) => {
        for (const client of live) client.socket.close();
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}
