// The lines of a job's logs: each log that has ended is read once, those that grow are followed. A browser has six
// connections to a server, so one log that grows is a stream, and several are read again and again.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, errorText, kube, send } from './api.ts';
import { pathOfLog } from './log_parts.ts';
import { LINES_MAX, merge, parseLine, readLines, sortKey, underWay, type LogLine } from './logs.ts';
import type { LogPart } from './types.ts';

export const REREAD_MS = 3000;
export const PARTS_MAX = 64;
const TAIL = 4000;
const TAIL_LEAST = 200;

export interface Source {
  lines: LogLine[];
  open: LogLine[]; // lines under way, such as a progress bar: each is written anew until it ends
  error: string;
  missing: string[];
  read: boolean;
  cut: boolean; // there may be older lines that were not asked for
}
interface Kept {
  lines: LogLine[];
  open?: LogLine;
  asked: number; // for so many lines at first
  last: string;
  read: boolean;
  done: boolean;
  missing: string;
}

const isGone = (error: unknown) => error instanceof ApiError && (error.status === 404 || error.status === 400);

// Reads the chosen logs until it is stopped.
class Reader {
  private readonly kept = new Map<string, Kept>();
  private readonly stopped = new AbortController();
  private stream: { key: string; stop: AbortController } | undefined;
  private seq = 0;
  private timer = 0;
  private busy = false;
  private again = false;

  constructor(
    private readonly namespace: string,
    private readonly onLines: (source: Source, fresh: LogLine[] | null) => void,
  ) {}

  chosen: LogPart[] = [];
  all: LogPart[] = [];
  follow = true;
  private error = '';

  of(part: LogPart): Kept {
    const known = this.kept.get(part.key);
    if (known) return known;
    const made: Kept = { lines: [], asked: 0, last: '', read: false, done: false, missing: '' };
    this.kept.set(part.key, made);
    return made;
  }

  // `fresh` is null after another choice: all lines are assembled again.
  report(fresh: LogLine[] | null): void {
    const own = this.chosen.map((part) => this.of(part));
    this.onLines(
      {
        lines:
          fresh ??
          merge(
            [],
            own.flatMap((one) => one.lines),
          ),
        open: own.map((one) => one.open).filter((line) => line !== undefined),
        error: this.error,
        missing: this.chosen.filter((part) => this.of(part).missing).map((part) => part.key),
        read: own.every((one) => one.read),
        cut: own.some((one) => one.asked > 0 && one.lines.length >= one.asked),
      },
      fresh,
    );
  }

  private add(part: LogPart, texts: string[], rest = ''): void {
    const kept = this.of(part);
    const before = kept.open?.text;
    kept.open = rest ? parseLine(part.key, rest, this.seq++) : undefined;
    const lines = texts
      .filter(Boolean)
      .map((line) => parseLine(part.key, line, this.seq++))
      .filter((line) => !kept.last || sortKey(line.time) > sortKey(kept.last));
    if (lines.length === 0 && kept.open?.text === before) return;
    kept.last = lines.at(-1)?.time ?? kept.last;
    kept.lines = [...kept.lines, ...lines].slice(-Math.max(500, Math.ceil(LINES_MAX / this.chosen.length)));
    if (this.chosen.some((one) => one.key === part.key)) this.report(lines);
  }

  // How many lines of each log are asked for at first.
  private tail(): number {
    return Math.max(TAIL_LEAST, Math.ceil(TAIL / this.chosen.length));
  }

  private path(part: LogPart, more: Record<string, string | number | boolean>): string {
    const kept = this.of(part);
    const { last } = kept;
    if (!last) kept.asked = this.tail();
    const from: Record<string, string | number> = last ? { sinceTime: last } : { tailLines: this.tail() };
    return kube.path(pathOfLog(this.namespace, part, this.all, { ...from, ...more }));
  }

  private async readOnce(part: LogPart): Promise<void> {
    const kept = this.of(part);
    try {
      const answer = await send('GET', this.path(part, {}), { signal: this.stopped.signal });
      const texts = (await answer.text()).split('\n');
      // A line without an end may become longer, so it counts as read when it has ended.
      const rest = part.running ? underWay(texts.pop() ?? '') : '';
      this.add(part, texts, rest);
      this.error = '';
      kept.missing = '';
    } catch (error) {
      if (this.stopped.signal.aborted) return;
      // Soon after a pod is gone, its log is listed under another key. A log that stays missing is not kept.
      if (!isGone(error)) {
        this.error = errorText(error);
        return;
      }
      if (!part.live) kept.missing = errorText(error);
    }
    kept.read = true;
    if (!part.running) kept.done = true;
  }

  private async followOne(part: LogPart): Promise<void> {
    const stop = new AbortController();
    this.stream = { key: part.key, stop };
    const kept = this.of(part);
    try {
      const answer = await send('GET', this.path(part, { follow: true }), { signal: stop.signal });
      kept.read = true;
      this.error = '';
      if (answer.body) await readLines(answer.body, (lines, rest) => this.add(part, lines, rest));
    } catch (error) {
      if (!stop.signal.aborted && !isGone(error)) this.error = errorText(error);
    }
    if (this.stream?.stop === stop) this.stream = undefined;
  }

  private async round(): Promise<void> {
    const parts = this.chosen.slice(-PARTS_MAX);
    const growing = this.follow ? parts.filter((part) => part.live && part.running) : [];
    const streamed = growing.length === 1 ? growing[0] : undefined;
    if (this.stream && this.stream.key !== streamed?.key) this.stream.stop.abort();
    for (const part of parts) {
      const kept = this.of(part);
      if (this.stopped.signal.aborted || !this.chosen.includes(part)) return;
      if (kept.done || part.key === streamed?.key || (kept.read && !this.follow && part.running)) continue;
      await this.readOnce(part);
    }
    if (streamed && this.stream?.key !== streamed.key && !this.stopped.signal.aborted) void this.followOne(streamed);
    this.report([]);
  }

  async wake(): Promise<void> {
    this.again = true;
    if (this.busy) return;
    this.busy = true;
    while (this.again) {
      this.again = false;
      await this.round();
    }
    this.busy = false;
    clearTimeout(this.timer);
    if (this.follow && !this.stopped.signal.aborted) this.timer = window.setTimeout(() => void this.wake(), REREAD_MS);
  }

  stop(): void {
    this.stopped.abort();
    this.stream?.stop.abort();
    clearTimeout(this.timer);
  }
}

export function useLogs(namespace: string, job: string, chosen: LogPart[], all: LogPart[], follow: boolean): Source {
  const [source, setSource] = useState<Source>({
    lines: [],
    open: [],
    error: '',
    missing: [],
    read: false,
    cut: false,
  });
  const reader = useRef<Reader | undefined>(undefined);
  useEffect(() => {
    const made = new Reader(namespace, (next, fresh) =>
      setSource((old) => ({ ...next, lines: fresh === null ? next.lines : merge(old.lines, fresh) })),
    );
    reader.current = made;
    return () => made.stop();
  }, [namespace, job]);
  const key = chosen.map((part) => part.key).join(',');
  const states = chosen.map((part) => `${Number(part.live)}${Number(part.running)}`).join('');
  const before = useRef('');
  useEffect(() => {
    const it = reader.current;
    if (!it) return;
    it.chosen = chosen;
    it.all = all;
    it.follow = follow;
    const choice = `${job} ${key}`;
    if (before.current !== choice) it.report(null);
    before.current = choice;
    void it.wake();
  }, [namespace, job, key, states, follow]);
  return source;
}
