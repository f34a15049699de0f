// Curves of a chart that are too many for its colours. Pure.
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
