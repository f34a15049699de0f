// What the user may do, as the API server says it; each answer is kept for a minute.
import { signal, type Signal } from '@preact/signals';
import { kube, session } from './api.ts';
import type { ProjectRow } from './types.ts';

export interface Wanted {
  verb: string;
  group: string;
  resource: string;
  namespace?: string;
  name?: string;
  subresource?: string;
}

const KEPT_MS = 60_000;
const KEPT_MAX = 500;
const RETRY_MS = 5_000;
const known = new Map<string, { at: number; answer: Signal<boolean | undefined> }>();

async function ask(key: string, wanted: Wanted, answer: Signal<boolean | undefined>): Promise<void> {
  try {
    const review = await kube.create<{ status?: { allowed?: boolean } }>(
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: wanted },
      },
    );
    answer.value = review.status?.allowed === true;
  } catch {
    // An action that may be refused is not offered. What was known stays. The request is sent again, since a page on
    // which nothing changes would not send one.
    answer.value ??= false;
    setTimeout(() => {
      if (session.value && known.get(key)?.answer === answer) void ask(key, wanted, answer);
    }, RETRY_MS);
  }
}

// undefined while the answer is under way.
export function may(
  verb: string,
  group: string,
  resource: string,
  namespace = '',
  subresource = '',
): boolean | undefined {
  const wanted: Wanted = { verb, group, resource };
  if (namespace) wanted.namespace = namespace;
  if (subresource) wanted.subresource = subresource;
  const key = JSON.stringify([session.value?.user, wanted]);
  const now = Date.now();
  let found = known.get(key);
  if (!found || now - found.at > KEPT_MS) {
    if (known.size >= KEPT_MAX) known.clear();
    const answer = found?.answer ?? signal<boolean | undefined>(undefined);
    found = { at: now, answer };
    known.set(key, found);
    void ask(key, wanted, answer);
  }
  return found.answer.value;
}

// The projects in which the user may make workloads. A user who may do that also sees the pods there, so other
// projects are not asked about.
export function ownProjects(rows: ProjectRow[]): ProjectRow[] {
  const leaves = rows.filter((row) => row.namespace);
  const everywhere = may('create', 'swell.dev', 'trainingjobs');
  if (everywhere !== false) return everywhere ? leaves : [];
  return leaves.filter(
    (row) => row.running !== null && may('create', 'swell.dev', 'trainingjobs', row.namespace ?? ''),
  );
}
