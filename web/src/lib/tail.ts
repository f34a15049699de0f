// What a view said since the page was opened: it continues curves of the past up to this moment.
import { useRef } from 'preact/hooks';
import type { Series } from './types.ts';

interface Sample { t: number; values: Record<string, number> }
const SAMPLES_MAX = 600;
const SAME_S = 5;

export function useTail(values: Record<string, number> | undefined): Sample[] {
  const samples = useRef<Sample[]>([]);
  const t = Date.now() / 1000;
  const last = samples.current.at(-1);
  if (values) {
    const same = last !== undefined && JSON.stringify(last.values) === JSON.stringify(values);
    if (!same || t - last.t >= SAME_S) {
      samples.current = [...samples.current, { t, values }].slice(-SAMPLES_MAX);
    }
  }
  return samples.current;
}

// The series, and after its end what the view said.
export function continued(series: Series | undefined, tail: Sample[], key: string, name = key, labels: Record<string, string> = {}): Series {
  const out: Series = { name: series?.name ?? name, labels: series?.labels ?? labels, t: [...(series?.t ?? [])], v: [...(series?.v ?? [])] };
  const end = out.t.at(-1) ?? 0;
  for (const sample of tail) {
    if (sample.t <= end) continue;
    out.t.push(sample.t);
    out.v.push(sample.values[key] ?? 0);
  }
  return out;
}
