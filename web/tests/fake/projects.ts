// Projects and users, with as much of the API server's checks as the forms are tested with.
import { answer, parsed, refuse, type Call, type Route } from './call.ts';

interface ProjectSpec {
  parent?: string;
  description?: string;
  nodePools?: { name: string; resources?: { gpu?: { quota?: number } } }[];
  resources?: { gpu?: { quota?: number } };
  autoscaling?: { default?: string };
}

const POOL_GPUS = 64;

function wrongsOf(spec: ProjectSpec): { field: string; message: string }[] {
  const wrongs = (spec.nodePools ?? []).flatMap(({ name, resources }, at) => {
    const quota = resources?.gpu?.quota ?? 0;
    if (quota <= POOL_GPUS) return [];
    const message = `Invalid value: ${quota}: the node pool ${name} has ${POOL_GPUS} GPUs`;
    return [{ field: `spec.nodePools[${at}].resources.gpu.quota`, message }];
  });
  if (spec.autoscaling && spec.description === 'no autoscaling here')
    wrongs.push({ field: 'spec.autoscaling.default', message: `Unsupported value: "${spec.autoscaling.default}"` });
  return wrongs;
}

function createProject(call: Call): void {
  const { fake } = call;
  const object = parsed(call);
  const name = object.metadata?.name ?? '';
  const spec = (object.spec ?? {}) as ProjectSpec;
  if (fake.world.projects.some((row) => row.name === name))
    return refuse(call, 409, 'AlreadyExists', `projects.swell.dev "${name}" already exists`);
  const wrongs = wrongsOf(spec);
  if (wrongs.length > 0) return refuse(call, 422, 'Invalid', `Project.swell.dev "${name}" is invalid`, wrongs);
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
  answer(call, 201, object);
}

function oneProject(call: Call, name: string): void {
  const { fake, method } = call;
  const { world } = fake;
  const row = world.projects.find((one) => one.name === name);
  if (!row) return refuse(call, 404, 'NotFound', `projects.swell.dev "${name}" not found`);
  if (method === 'DELETE') world.projects = world.projects.filter((one) => one !== row);
  if (method === 'PUT') row.description = String(parsed(call).spec?.description ?? '');
  fake.changed();
  answer(call, 200, {
    apiVersion: 'swell.dev/v1',
    kind: 'Project',
    metadata: { name, resourceVersion: '7' },
    spec: {
      description: row.description,
      nodePools: row.pools.map((pool) => ({ name: pool.name, resources: { gpu: { quota: pool.gpu.quota } } })),
      members: row.members.filter((one) => one.source !== 'User').map(({ source: _, ...one }) => one),
    },
  });
}

function deleteUser(call: Call): void {
  const { fake, url } = call;
  fake.world.users = fake.world.users.filter((row) => row.name !== url.searchParams.get('name'));
  fake.changed();
  answer(call, 200, {});
}

const credentials = (name: string) => ({ name, kubeconfig: `users:\n- name: ${name}\n` });

function createUser(call: Call): void {
  const { fake, body } = call;
  const { name, role, projects } = JSON.parse(body) as { name: string; role: string; projects?: string[] };
  if (name.includes(' '))
    return refuse(call, 422, 'Invalid', 'name: expected letters and digits', [
      { field: 'name', message: `"${name}": expected letters and digits` },
    ]);
  fake.world.users.push({
    name,
    role,
    created: new Date().toISOString(),
    projects: (projects ?? []).map((project) => ({ name: project, role })),
  });
  fake.changed();
  answer(call, 200, credentials(name));
}

export const PROJECT_ROUTES: Route[] = [
  { path: /^\/apis\/swell\.dev\/v1\/projects$/, methods: ['POST'], handle: createProject },
  { path: /\/projects\/([^/]+)$/, handle: oneProject },
];
export const USER_ROUTES: Route[] = [
  { path: /^\/ui\/api\/users/, methods: ['DELETE'], handle: deleteUser },
  { path: /^\/ui\/api\/users$/, handle: createUser },
  {
    path: /^\/ui\/api\/users\//,
    handle: (call) => answer(call, 200, credentials((JSON.parse(call.body) as { name: string }).name)),
  },
];
