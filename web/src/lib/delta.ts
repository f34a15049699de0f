// What changed in a view, applied to what a tab has: items that stayed are the same objects, so that their rows
// are not rendered again. Pure.

// [first, count] are items of the list before; an object is a new one.
export interface Delta {
  data: Record<string, unknown>;
  lists: Record<string, ([number, number] | object)[]>;
}

// undefined: the delta does not fit what is here.
export function applied(before: unknown, delta: Delta): unknown {
  const data: Record<string, unknown> = { ...delta.data };
  for (const [name, steps] of Object.entries(delta.lists)) {
    const old = (before as Record<string, unknown> | undefined)?.[name];
    if (!Array.isArray(old)) return undefined;
    const items: unknown[] = [];
    for (const step of steps) {
      if (!Array.isArray(step)) {
        items.push(step);
        continue;
      }
      const [first, count] = step as [number, number];
      if (first < 0 || first + count > old.length) return undefined;
      for (let at = first; at < first + count; at += 1) items.push(old[at]);
    }
    data[name] = items;
  }
  return data;
}
