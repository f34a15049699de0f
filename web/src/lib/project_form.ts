// The form of a project: what it begins with, what is wrong with it, and the object it makes. Pure.
import { plainNumber } from './format.ts';
import type { KubeObject, Member } from './types.ts';

export interface PoolQuota {
  pool: string;
  quota: string;
  limit: string;
  lends: string;
  weight: string;
}
export interface ProjectForm {
  name: string;
  description: string;
  parent: string;
  namespace: string;
  priority: string;
  autoscaling: string;
  quotas: PoolQuota[];
  members: Member[];
}

export const DEFAULT_POOL = ''; // nodes outside all pools; its share is spec.resources

export function newProject(pools: string[]): ProjectForm {
  return {
    name: '',
    description: '',
    parent: '',
    namespace: '',
    priority: '',
    autoscaling: '',
    members: [],
    quotas: (pools.length > 0 ? pools.slice(0, 1) : [DEFAULT_POOL]).map((pool) => ({
      pool,
      quota: '',
      limit: '',
      lends: '',
      weight: '',
    })),
  };
}

interface Shares {
  gpu?: { quota?: number; limit?: number; lendingLimit?: number; overQuotaWeight?: number };
  [resource: string]: unknown;
}
interface Spec {
  description?: string;
  parent?: string;
  namespace?: string;
  priority?: number;
  resources?: Shares;
  nodePools?: { name: string; resources?: Shares }[];
  members?: Member[];
  autoscaling?: { default?: string; [field: string]: unknown };
}

function text(value: number | undefined): string {
  if (value === undefined) return '';
  return value < 0 ? 'unlimited' : String(value);
}

export function formOf(object: KubeObject): ProjectForm {
  const spec = (object.spec ?? {}) as Spec;
  const quotaOf = (pool: string, shares: Shares | undefined): PoolQuota => ({
    pool,
    quota: text(shares?.gpu?.quota),
    limit: text(shares?.gpu?.limit),
    lends: text(shares?.gpu?.lendingLimit),
    weight: text(shares?.gpu?.overQuotaWeight),
  });
  const quotas = (spec.nodePools ?? []).map((pool) => quotaOf(pool.name, pool.resources));
  if (spec.resources?.gpu || quotas.length === 0) quotas.unshift(quotaOf(DEFAULT_POOL, spec.resources));
  return {
    name: object.metadata?.name ?? '',
    description: spec.description ?? '',
    parent: spec.parent ?? '',
    namespace: spec.namespace ?? '',
    priority: spec.priority === undefined ? '' : String(spec.priority),
    autoscaling: spec.autoscaling?.default ?? '',
    quotas,
    members: (spec.members ?? []).map((one) => ({ ...one, kind: one.kind ?? 'User', role: one.role ?? 'viewer' })),
  };
}

// undefined: empty. NaN: not an amount.
export function amount(value: string): number | undefined {
  const trimmed = plainNumber(value);
  if (trimmed === '') return undefined;
  if (/^(?:unlimited|no limit|-1|∞)$/i.test(trimmed)) return -1;
  return /^\d+(?:\.\d+)?$/.test(trimmed) ? Number(trimmed) : NaN;
}

// The path of a quota's field, as an error of the API names it.
export function quotaPath(form: ProjectForm, index: number, field: string): string {
  const quota = form.quotas[index];
  if (!quota || quota.pool === DEFAULT_POOL) return `spec.resources.gpu.${field}`;
  const at = form.quotas.slice(0, index).filter((one) => one.pool !== DEFAULT_POOL).length;
  return `spec.nodePools.${at}.resources.gpu.${field}`;
}
export function poolPath(form: ProjectForm, index: number): string {
  return form.quotas[index]?.pool
    ? quotaPath(form, index, '').replace(/\.resources\.gpu\.$/, '.name')
    : 'spec.resources';
}

export function fieldsOf(form: ProjectForm): string[] {
  return [
    'metadata.name',
    'spec.description',
    'spec.parent',
    'spec.namespace',
    'spec.priority',
    'spec.autoscaling.default',
    'spec.members',
    ...form.quotas.flatMap((_, index) => [
      poolPath(form, index),
      ...['quota', 'limit', 'lendingLimit', 'overQuotaWeight'].map((field) => quotaPath(form, index, field)),
    ]),
    ...form.members.map((_, index) => `spec.members.${index}.name`),
  ];
}

export function checkProject(form: ProjectForm, add: (field: string, message: string) => void): void {
  const seen = new Set<string>();
  form.quotas.forEach((quota, index) => {
    if (seen.has(quota.pool))
      add(
        poolPath(form, index),
        `${quota.pool || 'The line for nodes without a pool'} is listed twice. Keep one line for each node pool.`,
      );
    seen.add(quota.pool);
    const bad = 'Enter a number of 0 or more, or "unlimited".';
    for (const [field, value] of [
      ['quota', quota.quota],
      ['limit', quota.limit],
      ['lendingLimit', quota.lends],
    ] as const) {
      if (Number.isNaN(amount(value))) add(quotaPath(form, index, field), bad);
    }
    const weight = amount(quota.weight);
    if (weight !== undefined && !(weight >= 0))
      add(quotaPath(form, index, 'overQuotaWeight'), 'Enter a number of 0 or more.');
    const [least, most] = [amount(quota.quota), amount(quota.limit)];
    if (least !== undefined && most !== undefined && least >= 0 && most >= 0 && most < least) {
      add(
        quotaPath(form, index, 'limit'),
        `The limit ${most} is below the quota ${least}. Raise the limit or lower the quota.`,
      );
    }
  });
  if (form.priority.trim() && !/^-?\d+$/.test(form.priority.trim())) add('spec.priority', 'Enter a whole number.');
  form.members.forEach((member, index) => {
    if (!member.name.trim()) add(`spec.members.${index}.name`, 'Enter the name, or remove this line.');
  });
}

function withGpu(shares: Shares | undefined, quota: PoolQuota): Shares {
  const gpu: NonNullable<Shares['gpu']> = {};
  const [least, most, lends, weight] = [
    amount(quota.quota),
    amount(quota.limit),
    amount(quota.lends),
    amount(quota.weight),
  ];
  if (least !== undefined) gpu.quota = least;
  if (most !== undefined) gpu.limit = most;
  if (lends !== undefined) gpu.lendingLimit = lends;
  if (weight !== undefined) gpu.overQuotaWeight = weight;
  const next: Shares = { ...shares };
  if (Object.keys(gpu).length > 0) next.gpu = gpu;
  else delete next.gpu;
  return next;
}

// The object to write: what the form does not show stays as it was.
export function projectObject(form: ProjectForm, before?: KubeObject): KubeObject {
  const old = (before?.spec ?? {}) as Spec;
  const spec: Spec = { ...old };
  const put = <K extends keyof Spec>(key: K, value: Spec[K] | undefined | '') => {
    if (value === undefined || value === '') delete spec[key];
    else spec[key] = value;
  };
  put('description', form.description.trim());
  put('parent', form.parent);
  put('namespace', form.namespace.trim());
  put('priority', form.priority.trim() ? Number(form.priority) : undefined);
  const { default: _, ...rest } = old.autoscaling ?? {};
  const scaling = form.autoscaling ? { ...rest, default: form.autoscaling } : rest;
  put('autoscaling', Object.keys(scaling).length > 0 ? scaling : undefined);
  const own = form.quotas.find((quota) => quota.pool === DEFAULT_POOL);
  const resources = own ? withGpu(old.resources, own) : { ...old.resources, gpu: undefined };
  put('resources', Object.values(resources).some((one) => one !== undefined) ? resources : undefined);
  const pools = form.quotas
    .filter((quota) => quota.pool !== DEFAULT_POOL)
    .map((quota) => ({
      name: quota.pool,
      resources: withGpu(old.nodePools?.find((one) => one.name === quota.pool)?.resources, quota),
    }));
  put('nodePools', pools.length > 0 ? pools : undefined);
  put('members', form.members.length > 0 ? form.members.map((one) => ({ ...one, name: one.name.trim() })) : undefined);
  return {
    apiVersion: 'swell.dev/v1',
    kind: 'Project',
    metadata: before?.metadata ? { ...before.metadata, managedFields: undefined } : { name: form.name.trim() },
    spec: spec as Record<string, unknown>,
  };
}
