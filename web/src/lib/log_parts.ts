// The logs of a job: one for each start of a container, also of pods that are gone. Pure.
import { query } from './api.ts';
import type { LogPart } from './types.ts';

export function shortName(job: string, member: string): string {
  return member.startsWith(`${job}-`) ? member.slice(job.length + 1) : member;
}

// "worker-0, attempt 2, start 3, preempted"
export function titleOf(job: string, part: LogPart): string {
  return [
    shortName(job, part.member),
    `attempt ${part.attempt}`,
    part.start > 1 ? `start ${part.start}` : '',
    part.result ?? '',
  ]
    .filter(Boolean)
    .join(', ');
}
// What marks a line among those of others: "worker-0 #2", "worker-0 #2.3" after restarts in place.
export function markOf(job: string, part: LogPart, several: boolean): string {
  return `${shortName(job, part.member)}${several ? ` #${part.attempt}${part.start > 1 ? `.${part.start}` : ''}` : ''}`;
}

export function membersOf(parts: LogPart[], pods: string[]): string[] {
  return [...new Set([...pods, ...parts.map((part) => part.member)])];
}
export function attemptsOf(parts: LogPart[]): number[] {
  return [...new Set(parts.map((part) => part.attempt))].sort((a, b) => a - b);
}

// `attempt`: "" for all, "last" for the newest start of each member, or a number.
export function chooseParts(parts: LogPart[], member: string, attempt: string): LogPart[] {
  const own = parts.filter((part) => member === '' || part.member === member);
  if (attempt === '') return own;
  if (attempt !== 'last') return own.filter((part) => String(part.attempt) === attempt);
  const newest = new Map<string, LogPart>();
  for (const part of own) {
    const known = newest.get(part.member);
    if (!known || part.attempt > known.attempt || (part.attempt === known.attempt && part.start >= known.start))
      newest.set(part.member, part);
  }
  return own.filter((part) => newest.get(part.member) === part);
}

// The path of a log: of a pod that is there, of its start before, or of one that its node has kept.
export function pathOfLog(
  namespace: string,
  part: LogPart,
  all: LogPart[],
  params: Record<string, string | number | boolean>,
): string {
  const pod = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(part.member)}/log`;
  const common = { timestamps: true, container: part.container ?? '', ...params };
  if (part.live) return `${pod}${query(common)}`;
  const now = all.find((other) => other.live && other.uid === part.uid);
  if (now && now.start === part.start + 1) return `${pod}${query({ ...common, previous: true })}`;
  const search = query({ ...common, node: part.node ?? '', restart: part.start - 1 });
  return `${pod}/${encodeURIComponent(part.uid)}${search}`;
}
