// Nodes and node pools.
import { answer, parsed, refuse, type Call, type Route } from './call.ts';

// The pods of a node, as the form that drains it reads them.
function podsOf(call: Call): void {
  const on = /spec\.nodeName=(\S+)/.exec(call.url.searchParams.get('fieldSelector') ?? '')?.[1];
  const pods = call.fake.world.nodes.find((one) => one.name === on)?.pods ?? [];
  answer(call, 200, {
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

function evict(call: Call, evicted: string): void {
  const { fake } = call;
  for (const one of fake.world.nodes) one.pods = one.pods.filter((pod) => pod.name !== evicted);
  fake.changed();
  answer(call, 201, { kind: 'Status', status: 'Success' });
}

function patchNode(call: Call, name: string): void {
  const { fake, body } = call;
  for (const one of fake.world.nodes) {
    if (one.name !== name) continue;
    one.unschedulable = /"unschedulable":true/.test(body);
    one.status = one.unschedulable ? 'Ready,SchedulingDisabled' : 'Ready';
  }
  fake.changed();
  answer(call, 200, {});
}

function createPool(call: Call): void {
  const { fake } = call;
  const name = parsed(call).metadata?.name ?? '';
  if (fake.world.pools.some((pool) => pool.name === name))
    return refuse(call, 409, 'AlreadyExists', `nodepools.swell.dev "${name}" already exists`);
  fake.world.pools.push({
    name,
    status: 'Empty',
    nodes: [],
    gpus: { total: 0, held: 0, free: 0 },
    created: new Date().toISOString(),
  });
  fake.changed();
  answer(call, 201, parsed(call));
}

function onePool(call: Call, name: string): void {
  const { fake, method } = call;
  const { world } = fake;
  const pool = world.pools.find((one) => one.name === name);
  if (!pool) return refuse(call, 404, 'NotFound', `nodepools.swell.dev "${name}" not found`);
  if (method === 'PATCH') {
    const spec = parsed(call).spec as {
      nodeSelector?: Record<string, string | null>;
      placement?: { gpu?: string; cpu?: string };
    };
    const label = Object.entries(spec.nodeSelector ?? {}).find(([, value]) => value !== null);
    pool.label = label ? { key: label[0], value: label[1] ?? '' } : null;
    pool.strategy = spec.placement;
    fake.changed();
  }
  if (method === 'DELETE') {
    world.pools = world.pools.filter((one) => one !== pool);
    fake.changed();
  }
  const selector = pool.label ? { nodeSelector: { [pool.label.key]: pool.label.value } } : {};
  answer(call, 200, {
    apiVersion: 'swell.dev/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: { ...selector, placement: pool.strategy },
  });
}

export const NODE_ROUTES: Route[] = [
  { path: /^\/api\/v1\/pods$/, handle: podsOf },
  { path: /\/([^/]+)\/eviction$/, handle: evict },
  { path: /^\/api\/v1\/nodes\/([^/]+)$/, methods: ['PATCH'], handle: patchNode },
  { path: /^\/apis\/swell\.dev\/v1\/nodepools$/, methods: ['POST'], handle: createPool },
  { path: /\/nodepools\/([^/]+)$/, handle: onePool },
];
