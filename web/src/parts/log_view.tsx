// Logs of a job: of all its members and attempts merged by time, or of one; also of pods that are gone.
import type { CSSProperties } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { pieces, plainText } from '../lib/ansi.ts';
import { attemptsOf, chooseParts, markOf, membersOf, titleOf } from '../lib/log_parts.ts';
import { fractionOf, type LogLine } from '../lib/logs.ts';
import { download } from '../lib/rows.ts';
import { clock, dateTime, plural } from '../lib/format.ts';
import type { JobMember, LogPart } from '../lib/types.ts';
import { PARTS_MAX, REREAD_MS, useLogs } from '../lib/use_logs.ts';
import { Button, CheckBox, Notice } from './basic.tsx';
import { Icon } from './icons.tsx';

const ROW = 20;
const OVERSCAN = 20;
const AT_END_PX = 60; // nearer than this, the box is at its end
const LEAST_PX = 260; // of the box's height
const BELOW_PX = 64; // the count of the lines, and the page's end

// A line, or where another log begins.
type Item = { line: LogLine } | { part: LogPart };

function attemptText(parts: LogPart[], attempt: number): string {
  const own = parts.filter((part) => part.attempt === attempt);
  const results = [...new Set(own.map((part) => part.result).filter(Boolean))];
  const begin = own
    .map((part) => part.started)
    .filter((time): time is string => Boolean(time))
    .sort()[0];
  let end = '';
  if (results.length === 1) end = `, ${results[0]}`;
  else if (own.some((part) => part.running)) end = ', now';
  return `Attempt ${attempt}${begin ? `, ${dateTime(begin).slice(5, 16)}` : ''}${end}`;
}

// One member's logs have a title each; among several members each line is marked.
function itemsOf(lines: LogLine[], parts: Map<string, LogPart>, titled: boolean): Item[] {
  if (!titled) return lines.map((line) => ({ line }));
  const items: Item[] = [];
  let last = '';
  for (const line of lines) {
    const part = parts.get(line.pod);
    if (line.pod !== last && part) items.push({ part });
    last = line.pod;
    items.push({ line });
  }
  return items;
}

function WorkerChoice({ pods, choice, choose }: { pods: string[]; choice: string; choose: (pod: string) => void }) {
  return (
    <select aria-label="Worker" value={choice} onChange={(event) => choose(event.currentTarget.value)}>
      {pods.length > 1 && <option value="">All {pods.length} workers, merged</option>}
      {pods.map((pod) => (
        <option key={pod} value={pods.length === 1 ? '' : pod}>
          {pod}
        </option>
      ))}
    </select>
  );
}

function AttemptChoice({
  parts,
  attempt,
  choose,
}: {
  parts: LogPart[];
  attempt: string;
  choose: (attempt: string) => void;
}) {
  const attempts = attemptsOf(parts);
  return (
    <select aria-label="Attempt" value={attempt} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">All attempts</option>
      <option value="last">The last one</option>
      {attempts.length > 1 &&
        attempts.map((one) => (
          <option key={one} value={String(one)}>
            {attemptText(parts, one)}
          </option>
        ))}
    </select>
  );
}

const NAMED_MAX = 4;

function MissingLogs({ parts, count, job }: { parts: LogPart[]; count: number; job: string }) {
  const names = parts.slice(0, NAMED_MAX).map((part) => titleOf(job, part));
  const more = count > NAMED_MAX ? ` and ${count - NAMED_MAX} more` : '';
  return (
    <Notice tone="wait">
      {names.join('; ')}
      {more}: the log is not there any more. Clusters started by <code>swell up</code> keep logs of pods that are gone;
      others do not.
    </Notice>
  );
}

// How a line is shown, and saved.
interface Look {
  job: string;
  times: boolean;
  markOf?: (line: LogLine) => { text: string; tint: number }; // among lines of several members
  isHit: (line: LogLine) => boolean;
}

function textOf(item: Item, look: Look): string {
  if ('part' in item) return `==> ${titleOf(look.job, item.part)} <==\n`;
  const { line } = item;
  const time = look.times && line.time ? `${line.time} ` : '';
  const mark = look.markOf?.(line).text;
  return `${time}${mark ? `[${mark}] ` : ''}${plainText(line.text)}\n`;
}

function Pieces({ text }: { text: string }) {
  const styled = pieces(text).map((piece, at) =>
    piece.style ? (
      <span key={at} class={piece.style}>
        {piece.text}
      </span>
    ) : (
      piece.text
    ),
  );
  return <>{styled}</>;
}

function Line({ line, look, style }: { line: LogLine; look: Look; style: CSSProperties }) {
  const mark = look.markOf?.(line);
  return (
    <div class={`log-line${look.isHit(line) ? ' hit' : ''}`} style={style}>
      {mark && (
        <span class="who" style={{ '--tint': `var(--p${mark.tint})` } as CSSProperties}>
          {mark.text}
        </span>
      )}
      {look.times && (
        <time class="muted" dateTime={line.time} title={dateTime(line.time)}>
          {clock(line.time)}
          {fractionOf(line.time).padEnd(5)}
        </time>
      )}
      <Pieces text={line.text} />
    </div>
  );
}

function Lines({ items, look, range: [first, last] }: { items: Item[]; look: Look; range: [number, number] }) {
  return (
    <div class="log-body" style={{ height: `${items.length * ROW}px` }}>
      {items.slice(first, last).map((item, offset) => {
        const style = { transform: `translateY(${(first + offset) * ROW}px)` };
        if ('line' in item) return <Line key={item.line.seq} line={item.line} look={look} style={style} />;
        return (
          <div key={`part-${item.part.key}-${first + offset}`} class="log-line break" style={style}>
            ==&gt; {titleOf(look.job, item.part)} &lt;==
          </div>
        );
      })}
    </div>
  );
}

function nothingText(started: boolean, read: boolean): string {
  if (!started) return 'Nothing of the workload has started yet.';
  return read ? 'Nothing has been printed yet.' : 'The log is being read.';
}

// The lines in sight of a box that follows its end while the user wants that.
function useSight(items: Item[], follow: boolean, unfollow: () => void) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  const measure = () => {
    const element = box.current;
    if (!element) return;
    const first = Math.floor(element.scrollTop / ROW) - OVERSCAN;
    const last = Math.ceil((element.scrollTop + element.clientHeight) / ROW) + OVERSCAN;
    setRange([Math.max(0, first), last]);
  };
  // As high as leaves its end in sight below what the page has above it.
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const top = Math.round(element.getBoundingClientRect().top + window.scrollY);
    element.style.height = `max(${LEAST_PX}px, calc(100dvh - ${top + BELOW_PX}px))`;
  });
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  }, [items, follow]);
  const scrolled = () => {
    const element = box.current;
    if (element && follow && element.scrollHeight - element.scrollTop - element.clientHeight > AT_END_PX) unfollow();
    measure();
  };
  return { box, range, scrolled };
}

// The lines that the search leaves, and how many it finds.
function useFound(source: LogLine[], byKey: Map<string, LogPart>, titled: boolean) {
  const [search, setSearch] = useState('');
  const [onlyHits, setOnlyHits] = useState(false);
  const wanted = search.toLowerCase();
  const isHit = (line: LogLine) => wanted !== '' && plainText(line.text).toLowerCase().includes(wanted);
  const hits = useMemo(() => (wanted ? source.filter(isHit).length : 0), [source, wanted]);
  const items = useMemo(
    () => itemsOf(onlyHits && wanted ? source.filter(isHit) : source, byKey, titled),
    [source, wanted, onlyHits, byKey, titled],
  );
  return { search, setSearch, onlyHits, setOnlyHits, isHit, hits, items };
}

function SearchFields({ found }: { found: ReturnType<typeof useFound> }) {
  return (
    <>
      <div class="search grow">
        <Icon name="search" />
        <input
          type="search"
          aria-label="Search the logs"
          placeholder="Search"
          value={found.search}
          onInput={(event) => found.setSearch(event.currentTarget.value)}
        />
      </div>
      {found.search && (
        <span class="muted small" role="status">
          {plural(found.hits, 'line')}
        </span>
      )}
      {found.search && <CheckBox label="Only matching lines" checked={found.onlyHits} onChange={found.setOnlyHits} />}
    </>
  );
}

export function LogView({
  namespace,
  name,
  members,
  logs,
}: {
  namespace: string;
  name: string;
  members: JobMember[];
  logs: LogPart[];
}) {
  const pods = membersOf(
    logs,
    members.map((member) => member.pod),
  );
  const [choice, setChoice] = useState('');
  const [attempt, setAttempt] = useState('');
  const [follow, setFollow] = useState(true);
  const [times, setTimes] = useState(false);
  const ofChoice = logs.filter((part) => choice === '' || part.member === choice);
  const several = ofChoice.length > new Set(ofChoice.map((part) => part.member)).size;
  const chosen = chooseParts(logs, choice, several ? attempt : '');
  const merged = new Set(chosen.map((part) => part.member)).size > 1;
  const source = useLogs(namespace, name, chosen, logs, follow);
  const lines = useMemo(() => [...source.lines, ...source.open], [source.lines, source.open]);
  const byKey = useMemo(() => new Map(logs.map((part) => [part.key, part])), [logs]);
  const found = useFound(lines, byKey, !merged && several && attempt === '');
  const sight = useSight(found.items, follow, () => setFollow(false));
  const mark = (line: LogLine) => {
    const part = byKey.get(line.pod);
    const text = part ? markOf(name, part, several) : line.pod;
    return { text, tint: (pods.indexOf(part?.member ?? '') + 8) % 8 };
  };
  const look: Look = { job: name, times, markOf: merged ? mark : undefined, isHit: found.isHit };
  const chooseWorker = (pod: string) => {
    setChoice(pod);
    setAttempt('');
  };
  const save = () => download(`${choice || name}.log`, found.items.map((item) => textOf(item, look)).join(''));
  const missing = source.missing.map((key) => byKey.get(key)).filter((part): part is LogPart => Boolean(part));
  return (
    <div class="stack" style={{ gap: '12px' }}>
      <div class="bar-line">
        <WorkerChoice pods={pods} choice={choice} choose={chooseWorker} />
        {several && <AttemptChoice parts={ofChoice} attempt={attempt} choose={setAttempt} />}
        <SearchFields found={found} />
        <div class="right">
          <CheckBox label="Follow" checked={follow} onChange={setFollow} />
          <CheckBox label="Times" checked={times} onChange={setTimes} />
          <Button icon="download" label="Download the log" onClick={save} disabled={lines.length === 0} />
        </div>
      </div>
      {source.error && <Notice tone="wait">A log could not be read: {source.error}</Notice>}
      {source.missing.length > 0 && <MissingLogs parts={missing} count={source.missing.length} job={name} />}
      <div
        class="log"
        ref={sight.box}
        onScroll={sight.scrolled}
        tabIndex={0}
        role="log"
        aria-label={`Log of ${choice || name}`}
        aria-live="off"
      >
        {found.items.length === 0 && !source.error && (
          <p class="muted" style={{ padding: '16px' }}>
            {nothingText(logs.length > 0, source.read)}
          </p>
        )}
        <Lines items={found.items} look={look} range={sight.range} />
      </div>
      <p class="muted small">
        {source.cut ? 'The last ' : ''}
        {plural(lines.length, 'line')}
        {chosen.length > 1 ? ` of ${plural(chosen.length, 'log')}` : ''}
        {merged && follow ? `, read again every ${REREAD_MS / 1000} s` : ''}
        {chosen.length > PARTS_MAX ? `; the newest ${PARTS_MAX} logs are shown` : ''}
        {source.cut && (
          <>
            . <code>{`swell logs ${choice || name} -n ${namespace}${merged ? ' --all' : ''}`}</code> prints all.
          </>
        )}
      </p>
    </div>
  );
}
