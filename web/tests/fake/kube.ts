// What the pages ask of the API server.
import { answer, parsed, refuse, routed, type Call, type Route } from './call.ts';
import { CRON_ROUTES } from './crons.ts';
import { JOB_ROUTES } from './jobs.ts';
import { NODE_ROUTES } from './nodes.ts';
import { PROJECT_ROUTES } from './projects.ts';

const list = (items: unknown[]) => (call: Call) => answer(call, 200, { items });

function mayDo(call: Call): void {
  const wanted = (parsed(call).spec?.resourceAttributes ?? {}) as Record<string, string | undefined>;
  const what = `${wanted.verb} ${wanted.resource}`;
  const { denied } = call.fake;
  answer(call, 201, {
    status: { allowed: !denied.has(what) && !denied.has(`${what} in ${wanted.namespace ?? 'the cluster'}`) },
  });
}

function audit(call: Call): void {
  const user = call.url.searchParams.get('user');
  const items = call.fake.world.audit.filter((one) => !user || one.user?.username === user);
  answer(call, 200, { items, more: false });
}

const LEASE = {
  metadata: { name: 'swell-controller', namespace: 'kube-system' },
  spec: { holderIdentity: 'this-machine' },
};
const STORAGE = {
  provisioner: 'local.swell.dev',
  metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
};
const PRIORITIES = ['train', 'interactive', 'build', 'inference', 'nosuch'];

const ROUTES: Route[] = [
  { path: /\/selfsubjectaccessreviews$/, handle: mayDo },
  {
    path: /^\/version$/,
    handle: (call) => answer(call, 200, { gitVersion: 'v1.37.2+swell', platform: 'linux/amd64' }),
  },
  { path: /^\/swell\/v1\/audit$/, handle: audit },
  { path: /^\/readyz$/, handle: (call) => void call.response.end('ok') },
  { path: /\/leases$/, handle: list([LEASE]) },
  { path: /\/priorityclasses$/, handle: list(PRIORITIES.map((name) => ({ metadata: { name } }))) },
  { path: /\/storageclasses$/, handle: list([STORAGE]) },
  {
    path: /\/persistentvolumeclaims(?:\/|$)/,
    handle: (call) => answer(call, call.method === 'POST' ? 201 : 200, call.body ? parsed(call) : {}),
  },
  ...NODE_ROUTES,
  ...CRON_ROUTES,
  ...JOB_ROUTES,
  ...PROJECT_ROUTES,
];

export function kube(call: Call, path: string): void {
  if (!routed(ROUTES, call, path)) refuse(call, 404, 'NotFound', `the server has no ${path}`);
}
