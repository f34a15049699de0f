// Projects in the order of a tree: each after its department. Pure.
import type { ProjectRow } from './types.ts';

export type TreeRow = ProjectRow & { depth: number };

// Depth first, by name. A child stands at the root if its parent is not visible, or is a descendant of its own.
export function treeOrder(rows: ProjectRow[]): TreeRow[] {
  const byName = new Map(rows.map((row) => [row.name, row]));
  const children = new Map<string, ProjectRow[]>();
  for (const row of [...rows].sort((a, b) => a.name.localeCompare(b.name))) {
    const parent = row.parent && byName.has(row.parent) ? row.parent : '';
    children.set(parent, [...(children.get(parent) ?? []), row]);
  }
  const out: TreeRow[] = [];
  const seen = new Set<string>();
  const take = (parent: string, depth: number) => {
    for (const row of children.get(parent) ?? []) {
      if (seen.has(row.name)) continue;
      seen.add(row.name);
      out.push({ ...row, depth });
      take(row.name, depth + 1);
    }
  };
  take('', 0);
  for (const row of rows) {
    if (!seen.has(row.name)) {
      seen.add(row.name);
      out.push({ ...row, depth: 0 });
      take(row.name, 1);
    }
  }
  return out;
}
