// Logs of a job: one pod followed as a stream, or all pods merged by time.
// A browser has six connections to a server, so merged logs are read pod by pod, again and again.
import type { CSSProperties } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { pieces, plainText } from '../lib/ansi.ts';
import { errorText, kube, query, send } from '../lib/api.ts';
import { merge, parseLine, readLines, type LogLine } from '../lib/logs.ts';
import { download } from '../lib/rows.ts';
import { number, plural } from '../lib/format.ts';
import type { JobMember } from '../lib/types.ts';
import { Button, CheckBox, Notice } from './basic.tsx';
import { Icon } from './icons.tsx';

const ROW = 20;
const TAIL = 2000;
const REREAD_MS = 3000;
const PODS_MAX = 64;

interface Source { lines: LogLine[]; error: string; ended: boolean }

function logPath(namespace: string, pod: string, params: Record<string, string | number | boolean>): string {
  return kube.path(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/log${query({ timestamps: true, ...params })}`);
}

function useLogs(namespace: string, pods: string[], follow: boolean, previous: boolean): Source {
  const [state, setState] = useState<Source>({ lines: [], error: '', ended: false });
  const key = pods.join(',');
  useEffect(() => {
    const stopped = new AbortController();
    let timer = 0;
    let seq = 0;
    setState({ lines: [], error: '', ended: false });
    const add = (pod: string, texts: string[], skip?: string) => {
      const lines = texts.filter(Boolean).map((line) => parseLine(pod, line, seq++)).filter((line) => !skip || line.time > skip);
      if (lines.length > 0) setState((old) => ({ ...old, lines: merge(old.lines, lines) }));
      return lines.at(-1)?.time;
    };
    const fail = (error: unknown) => {
      if (!stopped.signal.aborted) setState((old) => ({ ...old, error: errorText(error), ended: true }));
    };
    const stream = async (pod: string) => {
      const answer = await send('GET', logPath(namespace, pod, { follow: follow && !previous, previous, tailLines: TAIL }), { signal: stopped.signal });
      if (answer.body) await readLines(answer.body, (lines) => add(pod, lines));
      if (!stopped.signal.aborted) setState((old) => ({ ...old, ended: true }));
    };
    const seen = new Map<string, string>();
    const round = async () => {
      for (const pod of pods.slice(0, PODS_MAX)) {
        const since = seen.get(pod);
        try {
          const answer = await send('GET', logPath(namespace, pod, since ? { sinceTime: since } : { tailLines: Math.ceil(TAIL / pods.length), previous }), { signal: stopped.signal });
          const last = add(pod, (await answer.text()).split('\n'), since);
          if (last) seen.set(pod, last);
        } catch (error) {
          // A member that has not started has no log yet; the others have.
          if (stopped.signal.aborted) return;
          if (pods.length === 1) fail(error);
        }
      }
      if (follow && !previous && !stopped.signal.aborted) timer = window.setTimeout(() => void round(), REREAD_MS);
    };
    if (pods.length === 1 && pods[0]) stream(pods[0]).catch(fail);
    else void round();
    return () => {
      stopped.abort();
      clearTimeout(timer);
    };
  }, [namespace, key, follow, previous]);
  return state;
}

export function LogView({ namespace, name, members }: { namespace: string; name: string; members: JobMember[] }) {
  const pods = useMemo(() => [...new Set(members.map((member) => member.pod))], [members.map((member) => member.pod).join()]);
  const [choice, setChoice] = useState('');
  const [follow, setFollow] = useState(true);
  const [previous, setPrevious] = useState(false);
  const [times, setTimes] = useState(false);
  const [search, setSearch] = useState('');
  const [onlyHits, setOnlyHits] = useState(false);
  const merged = choice === '' && pods.length > 1;
  const source = useLogs(namespace, choice ? [choice] : pods, follow, previous);
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  const wanted = search.toLowerCase();
  const isHit = (line: LogLine) => wanted !== '' && plainText(line.text).toLowerCase().includes(wanted);
  const hits = useMemo(() => (wanted ? source.lines.filter(isHit).length : 0), [source.lines, wanted]);
  const lines = useMemo(() => (onlyHits && wanted ? source.lines.filter(isHit) : source.lines), [source.lines, wanted, onlyHits]);
  const measure = () => {
    const element = box.current;
    if (element) setRange([Math.max(0, Math.floor(element.scrollTop / ROW) - 20), Math.ceil((element.scrollTop + element.clientHeight) / ROW) + 20]);
  };
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  }, [lines, follow]);
  const scrolled = () => {
    const element = box.current;
    if (element && follow && element.scrollHeight - element.scrollTop - element.clientHeight > 60) setFollow(false);
    measure();
  };
  const save = () => download(`${choice || name}.log`, source.lines.map((line) => `${times && line.time ? `${line.time} ` : ''}${merged ? `[${line.pod}] ` : ''}${plainText(line.text)}\n`).join(''));
  return (
    <div class="stack" style={{ gap: '12px' }}>
      <div class="bar-line">
        <select aria-label="Worker" value={choice} onChange={(event) => setChoice(event.currentTarget.value)}>
          {pods.length > 1 && <option value="">All {pods.length} workers, merged</option>}
          {pods.map((pod) => <option key={pod} value={pods.length === 1 ? '' : pod}>{pod}</option>)}
        </select>
        <div class="search grow"><Icon name="search" /><input type="search" aria-label="Search the logs" placeholder="Search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></div>
        {wanted && <span class="muted small" role="status">{plural(hits, 'line')}</span>}
        {wanted && <CheckBox label="Only matching lines" checked={onlyHits} onChange={setOnlyHits} />}
        <div class="right">
          <CheckBox label="Follow" checked={follow} onChange={setFollow} />
          <CheckBox label="Times" checked={times} onChange={setTimes} />
          <CheckBox label="Before the restart" checked={previous} onChange={setPrevious} />
          <Button icon="download" label="Download the log" onClick={save} disabled={source.lines.length === 0} />
        </div>
      </div>
      {source.error && <Notice tone="wait">The log could not be read: {source.error}</Notice>}
      <div class="log" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={`Log of ${choice || name}`} aria-live="off">
        {lines.length === 0 && !source.error && <p class="muted" style={{ padding: '16px' }}>{pods.length === 0 ? 'The workload has no pods yet.' : source.ended ? 'The log is empty.' : 'Nothing has been printed yet.'}</p>}
        <div class="log-body" style={{ height: `${lines.length * ROW}px` }}>
          {lines.slice(range[0], range[1]).map((line, offset) => (
            <div key={line.seq} class={`log-line${isHit(line) ? ' hit' : ''}`} style={{ transform: `translateY(${(range[0] + offset) * ROW}px)` }}>
              {merged && <span class="who" style={{ '--tint': `var(--p${(pods.indexOf(line.pod) + 8) % 8})` } as CSSProperties}>{line.pod.startsWith(name) ? line.pod.slice(name.length + 1) : line.pod}</span>}
              {times && <span class="muted">{line.time.slice(11, 23)} </span>}
              {pieces(line.text).map((piece, at) => (piece.style ? <span key={at} class={piece.style}>{piece.text}</span> : piece.text))}
            </div>
          ))}
        </div>
      </div>
      <p class="muted small">{number(source.lines.length)} lines{merged ? `, read again every ${REREAD_MS / 1000} s` : ''}{pods.length > PODS_MAX && merged ? `, of the first ${PODS_MAX} workers` : ''}</p>
    </div>
  );
}
