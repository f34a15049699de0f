// Lanes of time: what state a job and each of its workers was in, with marks of what happened.
import type { CSSProperties } from 'preact';
import { clock, dateTime, span } from '../lib/format.ts';
import { now } from '../lib/clock.ts';
import type { JobData } from '../lib/types.ts';

const TINTS: Record<string, string> = {
  running: 'var(--ok)', pending: 'var(--wait)', queued: 'var(--wait)', starting: 'var(--accent)', resuming: 'var(--accent)', saving: 'var(--p3)', preempted: 'var(--bad)',
  failed: 'var(--bad)', suspended: 'var(--idle)', succeeded: 'var(--p2)', completed: 'var(--p2)', terminating: 'var(--p3)',
};
const tintOf = (state: string) => TINTS[state.toLowerCase()] ?? 'var(--idle)';
const MARK_TINTS: Record<string, string> = { preempted: 'var(--bad)', reclaimed: 'var(--bad)', failed: 'var(--bad)', shrunk: 'var(--wait)', grown: 'var(--ok)', resumed: 'var(--ok)', started: 'var(--ok)' };
const LANES_MAX = 64;
const TICKS = 5;
const ATTEMPTS_MAX = 20;

export function Timeline({ job }: { job: JobData }) {
  const parts = job.timeline;
  const end = job.summary.completed ? Date.parse(job.summary.completed) : now.value;
  const begin = Math.min(...[job.summary.created, ...parts.map((part) => part.from)].map((time) => (time ? Date.parse(time) : end)));
  const length = Math.max(1000, end - begin);
  const at = (time: string | number) => Math.max(0, Math.min(100, ((typeof time === 'number' ? time : Date.parse(time)) - begin) / length * 100));
  const lanes = [...new Set(parts.map((part) => part.member ?? ''))].sort((a, b) => Number(a !== '') - Number(b !== '') || a.localeCompare(b, 'en', { numeric: true }));
  const states = [...new Set(parts.map((part) => part.state))];
  const most = Math.max(1, ...job.sizes.map((size) => size.members));
  const sizes = job.sizes.map((size, index) => ({ ...size, to: job.sizes[index + 1]?.time ?? end }));
  return (
    <div class="stack">
      <div class="legend">{states.map((state) => <span key={state}><span class="swatch" style={{ background: tintOf(state) }} />{state}</span>)}</div>
      <div class="lanes" role="group" aria-label="States over time">
        {job.marks.length > 0 && <>
          <span class="muted">Events</span>
          <div class="lane marks">{job.marks.map((mark, index) => (
            <button type="button" key={index} title={`${clock(mark.time)} ${mark.kind}: ${mark.text}`} aria-label={`${clock(mark.time)} ${mark.kind}: ${mark.text}`} style={{ left: `${at(mark.time)}%`, '--tint': MARK_TINTS[mark.kind.toLowerCase()] ?? 'var(--accent)' } as CSSProperties} />
          ))}</div>
        </>}
        {sizes.length > 0 && <>
          <span class="muted">Size (most {most})</span>
          <div class="lane" style={{ height: '30px' }}>{sizes.map((size, index) => (
            <span key={index} title={`${size.members} members from ${clock(size.time)}`} style={{ left: `${at(size.time)}%`, width: `${at(size.to) - at(size.time)}%`, top: `${100 - (100 * size.members) / most}%`, '--tint': 'var(--accent)' } as CSSProperties} />
          ))}</div>
        </>}
        {lanes.slice(0, LANES_MAX).map((lane) => (
          <>
            <span class="cut" title={lane || 'the workload'} style={{ fontWeight: lane ? 400 : 650, maxWidth: '180px' }}>{lane ? lane.replace(`${job.summary.name}-`, '') : 'Workload'}</span>
            <div class="lane">{parts.filter((part) => (part.member ?? '') === lane).map((part, index) => (
              <span key={index} title={`${part.state} from ${dateTime(part.from)} for ${span(((part.to ? Date.parse(part.to) : end) - Date.parse(part.from)) / 1000)}`}
                style={{ left: `${at(part.from)}%`, width: `${at(part.to ?? end) - at(part.from)}%`, '--tint': tintOf(part.state) } as CSSProperties} />
            ))}</div>
          </>
        ))}
        <span />
        <div class="lane axis">{Array.from({ length: TICKS }, (_, tick) => (
          <span key={tick} style={{ left: `${(tick * 100) / (TICKS - 1)}%` }}>{clock(begin + (length * tick) / (TICKS - 1))}</span>
        ))}</div>
      </div>
      {lanes.length > LANES_MAX && <p class="muted small">The first {LANES_MAX} of {lanes.length} lanes.</p>}
      {parts.length === 0 && <p class="muted">{job.summary.completed ? 'Its pods had ended before their states were recorded.' : 'No states have been recorded yet.'}</p>}
      {job.attempts.length > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Attempts"><table class="list-table">
        <thead><tr><th class="num">Attempt</th><th>Began</th><th>Lasted</th><th>How it ended</th></tr></thead>
        <tbody>{job.attempts.slice(-ATTEMPTS_MAX).map((one) => <tr key={one.number}><td class="num">{one.number}</td><td class="nowrap">{dateTime(one.from)}</td><td class="nowrap">{span(((one.to ? Date.parse(one.to) : end) - Date.parse(one.from)) / 1000)}</td><td>{one.to ? one.reason ?? '–' : 'it runs'}</td></tr>)}</tbody>
      </table></div>}
      {job.marks.length > 0 && <ul class="feed">{[...job.marks].reverse().slice(0, 50).map((mark, index) => <li key={index}><time dateTime={mark.time}>{clock(mark.time)}</time><span><strong>{mark.kind}</strong> {mark.text}</span></li>)}</ul>}
    </div>
  );
}
