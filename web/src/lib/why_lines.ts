// The lines of swell why: "Quota:    vision holds 4/4 GPUs" is a fact with a label, and a table begins with "Nodes:".

export interface WhyLines {
  facts: [string, string][];
  rest: string[];
}

export function labelled(lines: string[]): WhyLines {
  const facts: [string, string][] = [];
  for (const [at, line] of lines.entries()) {
    const found = /^([A-Z][A-Za-z ]*): +(\S.*)$/.exec(line);
    if (!found?.[1] || !found[2]) return { facts, rest: lines.slice(at) };
    facts.push([found[1], found[2]]);
  }
  return { facts, rest: [] };
}

export interface TextTable {
  title: string;
  heads: string[];
  rows: string[][];
}

const HEADS = /^ *[A-Z]+(?: [A-Z]+)*(?: {2,}[A-Z]+(?: [A-Z]+)*)+$/;

// Where the columns of a table in plain text begin, by its line of headings.
function startsOf(heads: string): number[] {
  return [...heads.matchAll(/\S+(?: \S+)*/g)].map((word) => word.index);
}

// A line belongs to the table if it begins where the headings do, and has a gap before each further column.
function cellsOf(line: string, starts: number[]): string[] | undefined {
  if (line.search(/\S/) !== starts[0]) return undefined;
  const apart = starts.slice(1).every((start) => line.slice(start - 2, start).trim() === '');
  const cells = starts.map((start, at) => line.slice(start, starts[at + 1]).trim());
  return apart && cells[1] ? cells : undefined;
}

// Tables of such lines, and the lines between them.
export function tablesOf(lines: string[]): (TextTable | string[])[] {
  const out: (TextTable | string[])[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const heads = lines[at + 1] ?? '';
    at += 1;
    if (!line.endsWith(':') || !HEADS.test(heads)) {
      const last = out.at(-1);
      if (Array.isArray(last)) last.push(line);
      else out.push([line]);
      continue;
    }
    const starts = startsOf(heads);
    const table: TextTable = {
      title: line.slice(0, -1),
      heads: starts.map((from, one) => heads.slice(from, starts[one + 1]).trim()),
      rows: [],
    };
    for (at += 1; at < lines.length; at += 1) {
      const cells = cellsOf(lines[at] ?? '', starts);
      if (!cells) break;
      table.rows.push(cells);
    }
    out.push(table);
  }
  return out;
}
