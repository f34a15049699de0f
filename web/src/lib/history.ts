// Series of the past, read again while they are on the page.
import { useEffect, useState } from 'preact/hooks';
import { errorText, json, query } from './api.ts';
import { link, paused } from './live.ts';
import type { Series } from './types.ts';

export interface History {
  from: number;
  to: number;
  series: Series[];
  loading: boolean;
  error?: string;
}

const OPENED_S = Date.now() / 1000;
const LEAST_S = 60;

// Where a curve that is to fit begins: not long before the first sample, so that a young cluster shows
// more than an empty hour.
export function fittedFrom(history: History): number {
  const first = history.series.reduce((least, one) => Math.min(least, one.t[0] ?? Infinity), Infinity);
  const begin = Number.isFinite(first) ? first : OPENED_S;
  const span = history.to - history.from;
  return begin - history.from > span / 3 ? Math.max(history.from, Math.min(begin, history.to - LEAST_S)) : history.from;
}

const POINTS = 400;
const REREAD_MS = 5_000;

export function useHistory(names: string[], seconds: number, until?: number): History {
  const [state, setState] = useState<History>(() => ({ from: 0, to: 0, series: [], loading: true }));
  const key = names.join(',');
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const stopped = new AbortController();
    const read = async () => {
      const to = until ?? Math.floor(Date.now() / 1000);
      const from = to - seconds;
      if (!document.hidden && !paused.peek() && link.peek() !== 'hidden') {
        try {
          const answer = await json<{ series: Series[] }>(
            'GET',
            `/ui/api/history${query({ series: key, from, to, points: POINTS })}`,
            { signal: stopped.signal },
          );
          if (!gone) setState({ from, to, series: answer.series ?? [], loading: false });
        } catch (error) {
          if (!gone) setState((old) => ({ ...old, from, to, loading: false, error: errorText(error) }));
        }
      }
      // A year does not change in five seconds.
      if (!gone && until === undefined)
        timer = window.setTimeout(() => void read(), Math.max(REREAD_MS, (seconds / POINTS) * 500));
    };
    void read();
    return () => {
      gone = true;
      stopped.abort();
      clearTimeout(timer);
    };
  }, [key, seconds, until]);
  return state;
}

const SAMPLED_S = 15; // how often the cluster is sampled, at least

// How long a value holds after which no other comes, in seconds.
export function heldFor({ t }: Series): number {
  return 3 * (t.length > 1 ? ((t.at(-1) ?? 0) - (t[0] ?? 0)) / (t.length - 1) : SAMPLED_S);
}

// All series on the times of any of them; a value holds until the next sample of its series, unless that is far away.
export function align(series: Series[]): { times: number[]; values: (number | null)[][] } {
  const times = [...new Set(series.flatMap((one) => one.t))].sort((a, b) => a - b);
  const values = series.map((one) => {
    const gap = one.holds ?? (one.t.length > 1 && !one.steady ? heldFor(one) : Infinity);
    let at = -1;
    return times.map((time) => {
      while (at + 1 < one.t.length && (one.t[at + 1] ?? 0) <= time) at += 1;
      if (at < 0 || time - (one.t[at] ?? 0) > gap) return null;
      return one.v[at] ?? null;
    });
  });
  return { times, values };
}

export function pick(series: Series[], name: string, labels: Record<string, string> = {}): Series[] {
  return series.filter(
    (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels?.[key] === value),
  );
}

// Several series as one, by sum. They are sampled together, so a series without a sample at some time has
// ended or not begun, and adds nothing there: a pool's nodes are not counted twice when they change pools.
export function sum(series: Series[]): Series | undefined {
  if (series.length <= 1) return series[0];
  const totals = new Map<number, number | null>();
  for (const one of series) {
    one.t.forEach((time, at) => {
      const value = one.v[at];
      const before = totals.get(time) ?? null;
      totals.set(time, value === null || value === undefined ? before : (before ?? 0) + value);
    });
  }
  const t = [...totals.keys()].sort((a, b) => a - b);
  return { name: series[0]?.name ?? '', labels: {}, t, v: t.map((time) => totals.get(time) ?? null) };
}

// The area below a curve: values × seconds.
export function integral(series: Series | undefined, above = 0): number {
  if (!series) return 0;
  let total = 0;
  for (let i = 0; i + 1 < series.t.length; i += 1) {
    const value = series.v[i];
    if (value !== null && value !== undefined)
      total += Math.max(0, value - above) * ((series.t[i + 1] ?? 0) - (series.t[i] ?? 0));
  }
  return total;
}
// The area below both curves, and below the second alone, over the times at which both are known: a part of a whole.
// Series that are sampled by turns begin at different times, and a part is never more than its whole.
export function within(part: Series | undefined, whole: Series | undefined): { part: number; whole: number } {
  if (!part || !whole) return { part: 0, whole: 0 };
  const { times, values } = align([part, whole]);
  const both = (of: (part: number, whole: number) => number): Series => ({
    name: '',
    labels: {},
    t: times,
    v: times.map((_, at) => {
      const [one, all] = [values[0]?.[at], values[1]?.[at]];
      return one === null || one === undefined || all === null || all === undefined ? null : of(one, all);
    }),
  });
  return { part: integral(both(Math.min)), whole: integral(both((_, all) => all)) };
}
// A counter's growth; it starts again from 0 when its process does. `from`: a series that begins later than that, in
// seconds, began at 0.
export function growth(series: Series | undefined, from?: number): number {
  if (!series) return 0;
  let total = 0;
  let last: number | null = isBornAfter(series, from) ? 0 : null;
  for (const value of series.v) {
    if (value === null || value === undefined) continue;
    if (last !== null) total += value >= last ? value - last : value;
    last = value;
  }
  return total;
}
function isBornAfter(series: Series, from: number | undefined): boolean {
  const first = series.v.findIndex((value) => value !== null && value !== undefined);
  const begin = series.t[first];
  if (from === undefined || begin === undefined) return false;
  const step = series.t.length > 1 ? ((series.t.at(-1) ?? 0) - (series.t[0] ?? 0)) / (series.t.length - 1) : 0;
  return begin > from + 2 * Math.max(15, step);
}

// The growth of a counter up to each of its samples.
export function grown(series: Series, from: number): Series {
  let total = 0;
  let last: number | null = isBornAfter(series, from) ? 0 : null;
  const v = series.v.map((value) => {
    if (value === null || value === undefined) return null;
    if (last !== null) total += value >= last ? value - last : value;
    last = value;
    return total;
  });
  return { ...series, v };
}
