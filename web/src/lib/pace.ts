// What each size of a job brought: its mean throughput there. Pure.
import { align } from './history.ts';
import type { Series } from './types.ts';

export interface SizePace {
  size: number;
  throughput: number;
  efficiency: number;
}

const SAMPLES_MIN = 2;

// Efficiency is the throughput of one worker, as a part of that at the smallest size.
export function bySize(sizes: Series, pace: Series | undefined): SizePace[] {
  if (!pace) return [];
  const { values } = align([sizes, pace]);
  const sums = new Map<number, { sum: number; count: number }>();
  (values[0] ?? []).forEach((size, at) => {
    const value = values[1]?.[at];
    if (!size || value === null || value === undefined || value <= 0) return;
    const one = sums.get(size) ?? { sum: 0, count: 0 };
    sums.set(size, { sum: one.sum + value, count: one.count + 1 });
  });
  const means = [...sums]
    .filter(([, one]) => one.count >= SAMPLES_MIN)
    .map(([size, one]) => ({ size, throughput: one.sum / one.count }))
    .sort((a, b) => a.size - b.size);
  const first = means[0];
  return means.map((one) => ({
    ...one,
    efficiency: first ? one.throughput / one.size / (first.throughput / first.size) : 1,
  }));
}
