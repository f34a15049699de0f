// Lines of logs: a bounded store, and how lines of several pods are merged. Pure but for reading streams.

export interface LogLine {
  pod: string;
  time: string;
  text: string;
  seq: number;
}
export const LINES_MAX = 20_000;

const STAMP = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?/;

// A progress bar draws its line again after each "\r". What it drew last, with the "\r" that may end it.
function lastDrawn(text: string): string {
  const before = text.replace(/\r+$/, '').lastIndexOf('\r');
  return text.slice(before + 1);
}

// "2026-01-02T03:04:05.123456789Z text", as the API server writes lines with timestamps.
export function parseLine(pod: string, line: string, seq: number): LogLine {
  const match = STAMP.exec(line);
  return { pod, time: match?.[1] ?? '', text: lastDrawn(match ? line.slice(match[0].length) : line), seq };
}

// The line under way, from what follows the last end of a line. Only what is shown of it is kept.
export function underWay(rest: string): string {
  const stamp = STAMP.exec(rest)?.[0] ?? '';
  return stamp + lastDrawn(rest.slice(stamp.length));
}

// Nanoseconds compare as text when all have the same number of digits.
export function sortKey(time: string): string {
  const match = /^(.*?)(?:\.(\d+))?Z$/.exec(time);
  return match ? `${match[1]}.${(match[2] ?? '').padEnd(9, '0')}` : time;
}

// The thousandths of a second behind a clock: ".123", or nothing.
export function fractionOf(time: string): string {
  return /\.\d{1,3}/.exec(time)?.[0] ?? '';
}

// By time; lines of one pod keep their order.
export function merge(old: LogLine[], more: LogLine[]): LogLine[] {
  if (more.length === 0) return old;
  const last = old.at(-1);
  const all = [...old, ...more];
  if (last && more.every((line) => sortKey(line.time) >= sortKey(last.time)) && isSorted(more))
    return all.slice(-LINES_MAX);
  const keyed = all.map((line) => ({ line, key: sortKey(line.time) }));
  keyed.sort((a, b) => {
    if (a.key === b.key) return a.line.seq - b.line.seq;
    return a.key < b.key ? -1 : 1;
  });
  return keyed.map((entry) => entry.line).slice(-LINES_MAX);
}
function isSorted(lines: LogLine[]): boolean {
  return lines.every((line, index) => index === 0 || sortKey(lines[index - 1]?.time ?? '') <= sortKey(line.time));
}

// `rest` is the line under way; when the stream ends, it is the last line.
export async function readLines(
  body: ReadableStream<Uint8Array>,
  onLines: (lines: string[], rest: string) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split('\n');
    rest = underWay(lines.pop() ?? '');
    if (done) break;
    onLines(lines, rest);
  }
  if (rest) onLines([rest], '');
}
