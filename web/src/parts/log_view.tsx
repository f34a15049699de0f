// Logs of a job: of all its members and attempts merged by time, or of one; also of pods that are gone.
import type { CSSProperties } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { pieces, plainText } from '../lib/ansi.ts';
import { attemptsOf, chooseParts, markOf, membersOf, titleOf } from '../lib/log_parts.ts';
import type { LogLine } from '../lib/logs.ts';
import { download } from '../lib/rows.ts';
import { clock, number, plural } from '../lib/format.ts';
import type { JobMember, LogPart } from '../lib/types.ts';
import { PARTS_MAX, REREAD_MS, useLogs } from '../lib/use_logs.ts';
import { Button, CheckBox, Notice } from './basic.tsx';
import { Icon } from './icons.tsx';

const ROW = 20;

// A line, or where another log begins.
type Item = { line: LogLine } | { part: LogPart };

function attemptText(parts: LogPart[], attempt: number): string {
  const own = parts.filter((part) => part.attempt === attempt);
  const results = [...new Set(own.map((part) => part.result).filter(Boolean))];
  const begin = own.map((part) => part.started).filter((time): time is string => Boolean(time)).sort()[0];
  return `Attempt ${attempt}${begin ? `, ${clock(begin)}` : ''}${results.length === 1 ? `, ${results[0]}` : own.some((part) => part.running) ? ', now' : ''}`;
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

export function LogView({ namespace, name, members, logs }: { namespace: string; name: string; members: JobMember[]; logs: LogPart[] }) {
  const pods = membersOf(logs, members.map((member) => member.pod));
  const [choice, setChoice] = useState('');
  const [attempt, setAttempt] = useState('');
  const [follow, setFollow] = useState(true);
  const [times, setTimes] = useState(false);
  const [search, setSearch] = useState('');
  const [onlyHits, setOnlyHits] = useState(false);
  const ofChoice = logs.filter((part) => choice === '' || part.member === choice);
  const attempts = attemptsOf(ofChoice);
  const several = ofChoice.length > new Set(ofChoice.map((part) => part.member)).size;
  const chosen = chooseParts(logs, choice, several ? attempt : '');
  const merged = new Set(chosen.map((part) => part.member)).size > 1;
  const titled = !merged && several && attempt === '';
  const source = useLogs(namespace, name, chosen, logs, follow);
  const byKey = useMemo(() => new Map(logs.map((part) => [part.key, part])), [logs]);
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  const wanted = search.toLowerCase();
  const isHit = (line: LogLine) => wanted !== '' && plainText(line.text).toLowerCase().includes(wanted);
  const hits = useMemo(() => (wanted ? source.lines.filter(isHit).length : 0), [source.lines, wanted]);
  const items = useMemo(() => itemsOf(onlyHits && wanted ? source.lines.filter(isHit) : source.lines, byKey, titled), [source.lines, wanted, onlyHits, byKey, titled]);
  const measure = () => {
    const element = box.current;
    if (element) setRange([Math.max(0, Math.floor(element.scrollTop / ROW) - 20), Math.ceil((element.scrollTop + element.clientHeight) / ROW) + 20]);
  };
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  }, [items, follow]);
  const scrolled = () => {
    const element = box.current;
    if (element && follow && element.scrollHeight - element.scrollTop - element.clientHeight > 60) setFollow(false);
    measure();
  };
  const mark = (line: LogLine) => {
    const part = byKey.get(line.pod);
    return part ? markOf(name, part, several) : line.pod;
  };
  const save = () => download(`${choice || name}.log`, items.map((item) => ('part' in item ? `==> ${titleOf(name, item.part)} <==\n` : `${times && item.line.time ? `${item.line.time} ` : ''}${merged ? `[${mark(item.line)}] ` : ''}${plainText(item.line.text)}\n`)).join(''));
  return (
    <div class="stack" style={{ gap: '12px' }}>
      <div class="bar-line">
        <select aria-label="Worker" value={choice} onChange={(event) => { setChoice(event.currentTarget.value); setAttempt(''); }}>
          {pods.length > 1 && <option value="">All {pods.length} workers, merged</option>}
          {pods.map((pod) => <option key={pod} value={pods.length === 1 ? '' : pod}>{pod}</option>)}
        </select>
        {several && <select aria-label="Attempt" value={attempt} onChange={(event) => setAttempt(event.currentTarget.value)}>
          <option value="">All attempts</option>
          <option value="last">The last one</option>
          {attempts.length > 1 && attempts.map((one) => <option key={one} value={String(one)}>{attemptText(ofChoice, one)}</option>)}
        </select>}
        <div class="search grow"><Icon name="search" /><input type="search" aria-label="Search the logs" placeholder="Search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></div>
        {wanted && <span class="muted small" role="status">{plural(hits, 'line')}</span>}
        {wanted && <CheckBox label="Only matching lines" checked={onlyHits} onChange={setOnlyHits} />}
        <div class="right">
          <CheckBox label="Follow" checked={follow} onChange={setFollow} />
          <CheckBox label="Times" checked={times} onChange={setTimes} />
          <Button icon="download" label="Download the log" onClick={save} disabled={source.lines.length === 0} />
        </div>
      </div>
      {source.error && <Notice tone="wait">A log could not be read: {source.error}</Notice>}
      {source.missing.length > 0 && <Notice tone="wait">{source.missing.map((key) => byKey.get(key)).filter((part): part is LogPart => Boolean(part)).slice(0, 4).map((part) => titleOf(name, part)).join('; ')}{source.missing.length > 4 ? ` and ${source.missing.length - 4} more` : ''}: the log is not there any more. Clusters started by <code>swell up</code> keep logs of pods that are gone; others do not.</Notice>}
      <div class="log" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={`Log of ${choice || name}`} aria-live="off">
        {items.length === 0 && !source.error && <p class="muted" style={{ padding: '16px' }}>{logs.length === 0 ? 'Nothing of the workload has started yet.' : source.read ? 'Nothing has been printed yet.' : 'The log is being read.'}</p>}
        <div class="log-body" style={{ height: `${items.length * ROW}px` }}>
          {items.slice(range[0], range[1]).map((item, offset) => {
            const style = { transform: `translateY(${(range[0] + offset) * ROW}px)` };
            if ('part' in item) return <div key={`part-${item.part.key}-${range[0] + offset}`} class="log-line break" style={style}>==&gt; {titleOf(name, item.part)} &lt;==</div>;
            const { line } = item;
            return (
              <div key={line.seq} class={`log-line${isHit(line) ? ' hit' : ''}`} style={style}>
                {merged && <span class="who" style={{ '--tint': `var(--p${(pods.indexOf(byKey.get(line.pod)?.member ?? '') + 8) % 8})` } as CSSProperties}>{mark(line)}</span>}
                {times && <span class="muted">{line.time.slice(11, 23)} </span>}
                {pieces(line.text).map((piece, at) => (piece.style ? <span key={at} class={piece.style}>{piece.text}</span> : piece.text))}
              </div>
            );
          })}
        </div>
      </div>
      <p class="muted small">{number(source.lines.length)} lines{chosen.length > 1 ? ` of ${plural(chosen.length, 'log')}` : ''}{merged && follow ? `, read again every ${REREAD_MS / 1000} s` : ''}{chosen.length > PARTS_MAX ? `; the newest ${PARTS_MAX} logs are shown` : ''}</p>
    </div>
  );
}
