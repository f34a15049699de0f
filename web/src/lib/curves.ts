// What a chart draws of its curves: too many for its colours, one upon the other, and how high it reaches. Pure.
import type { Curve } from '../parts/chart.tsx';

const CURVES_MOST = 10;

// The largest by themselves and the sum of the rest.
export function withOthers(curves: Curve[]): Curve[] {
  if (curves.length <= CURVES_MOST) return curves;
  const size = (curve: Curve) => curve.values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const largest = new Set([...curves].sort((a, b) => size(b) - size(a)).slice(0, CURVES_MOST - 1));
  const rest = curves.filter((curve) => !largest.has(curve));
  const values = (rest[0]?.values ?? []).map((_, at) => {
    const known = rest.map((curve) => curve.values[at]).filter((value) => value !== null && value !== undefined);
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) : null;
  });
  return [
    ...curves.filter((curve) => largest.has(curve)),
    { label: `${rest.length} others`, values, colour: 'muted', step: true },
  ];
}

// Each curve on top of those before it. Where nothing is known of any, there is a gap and not 0.
export function stack(curves: (number | null)[][]): (number | null)[][] {
  const sums: number[] = [];
  const known = (at: number) => curves.some((values) => values[at] !== null && values[at] !== undefined);
  return curves.map((values) =>
    values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + (value ?? 0);
      return known(at) ? (sums[at] ?? 0) : null;
    }),
  );
}

const LOOSE_MOST = 2;

// The value up to which a chart reaches. A loose curve may leave it, where the others would else be lines at its foot.
export function highest(curves: Pick<Curve, 'loose' | 'right'>[], drawn: (number | null)[][]): number {
  let all = 0;
  let kept = 0;
  curves.forEach((curve, at) => {
    if (curve.right) return;
    const most = (drawn[at] ?? []).reduce<number>((top, value) => Math.max(top, value ?? 0), 0);
    all = Math.max(all, most);
    if (!curve.loose) kept = Math.max(kept, most);
  });
  return kept > 0 ? Math.min(all, LOOSE_MOST * kept) : all;
}
