// What the views said since this tab was opened: it continues curves of the past up to this moment.
import { heldFor } from './history.ts';
import type { Series } from './types.ts';

export interface Sample {
  t: number;
  values: Record<string, number>;
}
const SAMPLES_MAX = 600;
const SAME_S = 5; // a value that stays is noted this often
const tails = new Map<string, Sample[]>();

// Notes values under a key, if they have changed or the last note is old. All samples of the key, oldest first.
export function noted(key: string, values: Record<string, number> | undefined, t = Date.now() / 1000): Sample[] {
  const samples = tails.get(key) ?? [];
  const last = samples.at(-1);
  if (!values || (last && t - last.t < SAME_S && JSON.stringify(last.values) === JSON.stringify(values)))
    return samples;
  const next = [...samples, { t, values }].slice(-SAMPLES_MAX);
  tails.set(key, next);
  return next;
}

// With the session: the next user may see less.
export function forgetNotes(): void {
  tails.clear();
}

// The series, and after its end what was noted.
export function continued(series: Series | undefined, tail: Sample[], key: string): Series {
  const out: Series = {
    name: series?.name ?? key,
    labels: series?.labels ?? {},
    t: [...(series?.t ?? [])],
    v: [...(series?.v ?? [])],
  };
  const end = out.t.at(-1) ?? 0;
  // The notes say nothing of what is gone, as a deleted project: its curve ended where its samples did.
  const next = tail.find((sample) => sample.t > end);
  if (series && next && next.values[key] === undefined) out.holds = heldFor(series);
  for (const sample of tail) {
    if (sample.t <= end) continue;
    out.t.push(sample.t);
    out.v.push(sample.values[key] ?? null);
  }
  return out;
}
