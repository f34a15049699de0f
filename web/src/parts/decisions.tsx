// A decision of the scheduler in words, with a link to the job that it is about.
import { hrefOf } from '../lib/router.ts';
import { Name } from './basic.tsx';
import type { Decision, ObjectRef } from '../lib/types.ts';

// Pods and pod groups belong to a job of their name; other kinds are jobs, nodes or projects.
export function hrefOfObject(ref: ObjectRef): string | undefined {
  if (ref.kind === 'Node') return hrefOf.node(ref.name);
  if (ref.kind === 'NodePool') return hrefOf.pool(ref.name);
  if (ref.kind === 'Project') return hrefOf.project(ref.name);
  if (!ref.namespace || /^(?:Pod|PodGroup|Service|ConfigMap|Secret|PersistentVolumeClaim)$/.test(ref.kind))
    return undefined;
  if (/^Cron(?:Job)?$/.test(ref.kind)) return hrefOf.cron({ namespace: ref.namespace, name: ref.name, kind: ref.kind });
  return /(?:Job|Workload)$/.test(ref.kind)
    ? hrefOf.job({ namespace: ref.namespace, name: ref.name, kind: ref.kind })
    : undefined;
}
export function ObjectLink({ object }: { object: ObjectRef | string }) {
  if (typeof object === 'string') return <span class="cut">{object}</span>;
  const text = object.namespace ? `${object.namespace}/${object.name}` : object.name;
  const href = hrefOfObject(object);
  return href ? (
    <a class="cut" href={href} title={`${object.kind} ${text}`} aria-label={text}>
      <Name text={text} />
    </a>
  ) : (
    <span class="cut" title={`${object.kind} ${text}`}>
      <Name text={text} />
    </span>
  );
}
const TONES: Record<string, string> = {
  Preempted: 'bad',
  Reclaimed: 'bad',
  Failed: 'bad',
  FailedScheduling: 'wait',
  Shrunk: 'wait',
  Suspended: 'wait',
  Grown: 'ok',
  Resumed: 'ok',
  Scheduled: 'ok',
  Started: 'ok',
  Promised: 'wait',
};
export function ReasonBadge({ reason, type }: { reason: string; type?: string }) {
  return (
    <span class={`badge ${TONES[reason] ?? (type === 'Warning' ? 'wait' : '')}`} title={reason}>
      <span class="cut">{reason}</span>
    </span>
  );
}
export function DecisionLine({ decision }: { decision: Decision }) {
  return (
    <div>
      <ReasonBadge reason={decision.reason} /> <ObjectLink object={decision.object} />
      <div class="muted">{decision.message}</div>
    </div>
  );
}
