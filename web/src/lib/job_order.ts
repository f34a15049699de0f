// Which workloads are over, and the order of all while nobody chooses another: that of swell list.
import { compare } from './rows.ts';
import type { WorkloadRow } from './types.ts';

const RUNS = ['Running', 'Hung', 'Restarting'];

export const isOver = (status: string) => /^(?:Succeeded|Completed|Failed|Deleting)$/.test(status);

function stage({ status }: WorkloadRow): number {
  if (isOver(status)) return 2;
  return RUNS.includes(status) ? 0 : 1;
}

// Those that run, those that wait, those that are over; in each the newest first, and in an array, whose jobs are made
// together, the lower index.
export function byState(rows: WorkloadRow[]): WorkloadRow[] {
  const keyed = rows.map((row) => {
    const at = stage(row);
    const time = (at === 2 && row.completed) || row.created;
    return { row, at, time: time ? Date.parse(time) : 0 };
  });
  keyed.sort((a, b) => a.at - b.at || b.time - a.time || compare(a.row.name, b.row.name));
  return keyed.map((entry) => entry.row);
}
