// Crons and CronJobs, and what they started.
import type { CronData, CronRow, CronRun, WhyData } from '../../src/lib/types.ts';
import { answer, refuse, type Call, type Route } from './call.ts';
import type { World } from './world.ts';

export function makeCrons(now: number): CronRow[] {
  const at = (minutes: number) => new Date(now + minutes * 60e3).toISOString();
  const lastRun: CronRun = {
    kind: 'PyTorchJob',
    name: 'nightly-1795933980',
    status: 'Succeeded',
    began: at(-125),
    ended: at(-60),
  };
  const row = (name: string, more: Partial<CronRow>): CronRow => ({
    namespace: 'vision',
    name,
    kind: 'Cron',
    apiVersion: 'apps.kubedl.io/v1alpha1',
    plural: 'crons',
    uid: `uid-of-${name}`,
    project: 'vision',
    starts: 'PyTorchJob',
    schedule: '0 22 * * *',
    timeZone: null,
    policy: 'Allow',
    state: 'Active',
    reason: null,
    next: at(95),
    last: at(-125),
    active: 0,
    lastRun,
    created: at(-3 * 1440),
    ...more,
  });
  const batch = { kind: 'CronJob', apiVersion: 'batch/v1', plural: 'cronjobs', starts: 'Job' };
  return [
    row('nightly', {}),
    row('report', {
      ...batch,
      schedule: '*/10 * * * *',
      timeZone: 'Europe/Berlin',
      policy: 'Forbid',
      reason: 'the job of 2026-11-29T06:30:00Z waits: report-29932230 still runs, and concurrencyPolicy is Forbid',
      next: at(4),
      active: 1,
      lastRun: { kind: 'Job', name: 'report-29932230', status: 'Running', began: at(-16), ended: null },
    }),
    row('yearly', {
      ...batch,
      schedule: '0 3 1 1 *',
      state: 'Suspended',
      reason: 'yearly is suspended, and starts no jobs',
      next: null,
      last: null,
      lastRun: null,
    }),
  ];
}

const find = (world: World, namespace: string, name: string, kind: string) =>
  world.crons.find((row) => row.namespace === namespace && row.name === name && row.kind === kind);

export function cronData(world: World, namespace: string, name: string, kind: string): CronData | undefined {
  const summary = find(world, namespace, name, kind);
  if (!summary) return undefined;
  return {
    summary,
    runs: summary.lastRun ? [summary.lastRun] : [],
    events: summary.last
      ? [
          {
            time: summary.last,
            type: 'Normal',
            reason: 'SuccessfulCreate',
            object: { kind, namespace, name },
            message: `Created workload: ${summary.lastRun?.name}`,
            count: 1,
          },
        ]
      : [],
  };
}

export function whyCron(world: World, namespace: string, name: string, kind: string): WhyData | undefined {
  const row = find(world, namespace, name, kind);
  if (!row) return undefined;
  const sentence =
    row.state === 'Suspended'
      ? `${name} is suspended, and starts no jobs`
      : `${name} starts its next job at ${row.next}, in 95m`;
  return {
    sentence,
    lines: [`${sentence}.`, ...(row.reason ? [`Why:      ${row.reason}`] : []), 'Last:     it Succeeded 60m ago'],
    next: row.state === 'Suspended' ? `arena cron resume ${name} -n ${namespace} lets it start jobs again` : undefined,
  };
}

function oneCron(call: Call, namespace: string, name: string): void {
  const { fake, method, body } = call;
  const row = fake.world.crons.find((one) => one.namespace === namespace && one.name === name);
  if (!row) return refuse(call, 404, 'NotFound', `crons.apps.kubedl.io "${name}" not found`);
  if (method === 'DELETE') fake.world.crons = fake.world.crons.filter((one) => one !== row);
  if (method === 'PATCH')
    Object.assign(row, /"suspend":true/.test(body) ? { state: 'Suspended', next: null } : { state: 'Active' });
  if (method !== 'GET') fake.changed();
  answer(call, 200, {
    apiVersion: row.apiVersion,
    kind: row.kind,
    metadata: { name, namespace, uid: row.uid },
    spec: { schedule: row.schedule, suspend: row.state === 'Suspended' },
  });
}

export const CRON_ROUTES: Route[] = [{ path: /\/namespaces\/([^/]+)\/(?:crons|cronjobs)\/([^/]+)$/, handle: oneCron }];
