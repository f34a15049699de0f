// Filters, order and CSV of tables. Pure functions.

export type Cell = string | number | boolean | null | undefined;
export interface Filter {
  key: string;
  values: string[];
}

export function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell === 'boolean') return cell ? 'Yes' : 'No';
  return String(cell);
}

// Empty cells come last in both directions.
export function compare(a: Cell, b: Cell): number {
  const aEmpty = a === null || a === undefined || a === '';
  const bEmpty = b === null || b === undefined || b === '';
  if (aEmpty || bEmpty) return Number(aEmpty) - Number(bEmpty);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(textOf(a), textOf(b));
}
const collator = new Intl.Collator('en', { numeric: true });

export function sortRows<T>(rows: T[], value: (row: T) => Cell, descending: boolean): T[] {
  const keyed = rows.map((row, index) => ({ row, index, value: value(row) }));
  keyed.sort((a, b) => {
    const empty = Number(textOf(a.value) === '') - Number(textOf(b.value) === '');
    if (empty) return empty;
    return (descending ? -compare(a.value, b.value) : compare(a.value, b.value)) || a.index - b.index;
  });
  return keyed.map((entry) => entry.row);
}

// The columns that fit into these pixels. Those with the highest `spare` are left out first, until the texts of the
// others can be read. If a wide column of a lower `spare` goes too, narrow ones come back into its place.
export function fitting<T extends { key: string; width: number; roomy?: number; spare?: number }>(
  columns: T[],
  pixels: number,
  kept = '', // the key of a column that is never left out
): T[] {
  let left = columns.reduce((sum, one) => sum + (one.roomy ?? one.width), 0) - pixels;
  const out = new Set<T>();
  const spared = columns
    .filter((column) => column.spare && column.key !== kept)
    .sort((a, b) => (b.spare ?? 0) - (a.spare ?? 0));
  for (const one of spared) {
    if (left <= 0) break;
    out.add(one);
    left -= one.roomy ?? one.width;
  }
  for (const one of spared.reverse()) {
    const room = one.roomy ?? one.width;
    if (!out.has(one) || left + room > 0) continue;
    out.delete(one);
    left += room;
  }
  return columns.filter((one) => !out.has(one));
}

// Every word must occur in some cell; case does not matter.
export function matchesSearch(cells: Cell[], search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = cells.map(textOf).join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

export function distinct<T>(rows: T[], value: (row: T) => Cell): { value: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const text = textOf(value(row));
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts]
    .map(([text, count]) => ({ value: text, count }))
    .sort((a, b) => b.count - a.count || collator.compare(a.value, b.value));
}

// Filters in an address: status=Running,Pending&project=team-a. A comma in a value is written as %2C first.
export function readFilters(params: URLSearchParams, keys: string[]): Filter[] {
  return keys
    .filter((key) => params.has(key))
    .map((key) => ({
      key,
      values: (params.get(key) ?? '').split(',').map((value) => value.replaceAll('%2C', ',')),
    }));
}
export function writeFilter(values: string[]): string {
  return values.map((value) => value.replaceAll(',', '%2C')).join(',');
}

// RFC 4180; a cell that a spreadsheet would run as a formula begins with an apostrophe.
export function csv(header: string[], rows: Cell[][]): string {
  const quote = (cell: Cell): string => {
    let text = textOf(cell);
    if (typeof cell !== 'number' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((row) => row.map(quote).join(',')).join('\r\n') + '\r\n';
}

export function download(name: string, text: string, type = 'text/plain'): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
