// Lanes of time: what state a job and each of its workers was in, with marks of what happened.
import type { CSSProperties } from 'preact';
import { dateTime, moment, span } from '../lib/format.ts';
import { now } from '../lib/clock.ts';
import type { JobData } from '../lib/types.ts';
import { ListTable, num } from './list_table.tsx';

const TINTS: Record<string, string> = {
  running: 'var(--ok)',
  pending: 'var(--wait)',
  queued: 'var(--wait)',
  starting: 'var(--accent)',
  resuming: 'var(--accent)',
  saving: 'var(--p3)',
  preempted: 'var(--bad)',
  failed: 'var(--bad)',
  suspended: 'var(--idle)',
  succeeded: 'var(--p2)',
  completed: 'var(--p2)',
  terminating: 'var(--p3)',
};
const tintOf = (state: string) => TINTS[state.toLowerCase()] ?? 'var(--idle)';
const MARK_TINTS: Record<string, string> = {
  preempted: 'var(--bad)',
  reclaimed: 'var(--bad)',
  failed: 'var(--bad)',
  shrunk: 'var(--wait)',
  grown: 'var(--ok)',
  resumed: 'var(--ok)',
  started: 'var(--ok)',
};
const LANES_MAX = 64;
const TICKS = 5;
const ATTEMPTS_MAX = 20;
const FEED_MAX = 50;

// The time that the lanes show, and where a moment of it lies, in percent.
class Axis {
  readonly length: number;

  constructor(
    readonly begin: number,
    readonly end: number,
  ) {
    this.length = Math.max(1000, end - begin);
  }

  at(time: string | number): number {
    const ms = typeof time === 'number' ? time : Date.parse(time);
    return Math.max(0, Math.min(100, ((ms - this.begin) / this.length) * 100));
  }

  text(time: string | number): string {
    return moment(time, this.length);
  }
}

// Seconds of a part. One without an end lasts until now.
function secondsOf(part: { from: string; to?: string | null }, axis: Axis): number {
  return ((part.to ? Date.parse(part.to) : axis.end) - Date.parse(part.from)) / 1000;
}

function Legend({ states }: { states: string[] }) {
  return (
    <div class="legend">
      {states.map((state) => (
        <span key={state}>
          <span class="swatch" style={{ background: tintOf(state) }} />
          {state}
        </span>
      ))}
    </div>
  );
}

function Marks({ marks, axis }: { marks: JobData['marks']; axis: Axis }) {
  if (marks.length === 0) return null;
  return (
    <>
      <span class="muted">Events</span>
      <div class="lane marks">
        {marks.map((mark, index) => {
          const text = `${axis.text(mark.time)} ${mark.kind}: ${mark.text}`;
          const tint = MARK_TINTS[mark.kind.toLowerCase()] ?? 'var(--accent)';
          const style = { left: `${axis.at(mark.time)}%`, '--tint': tint } as CSSProperties;
          return <button type="button" key={index} title={text} aria-label={text} style={style} />;
        })}
      </div>
    </>
  );
}

function Sizes({ sizes, axis }: { sizes: JobData['sizes']; axis: Axis }) {
  if (sizes.length === 0) return null;
  const most = Math.max(1, ...sizes.map((size) => size.members));
  const styleOf = (members: number, from: number, to: number) =>
    ({
      left: `${from}%`,
      width: `${to - from}%`,
      top: `${100 - (100 * members) / most}%`,
      '--tint': 'var(--accent)',
    }) as CSSProperties;
  return (
    <>
      <span class="muted">Size (most {most})</span>
      <div class="lane" style={{ height: '30px' }}>
        {sizes.map((size, index) => (
          <span
            key={index}
            title={`${size.members} members from ${axis.text(size.time)}`}
            style={styleOf(size.members, axis.at(size.time), axis.at(sizes[index + 1]?.time ?? axis.end))}
          />
        ))}
      </div>
    </>
  );
}

// The states of one member; without a name, those of the workload.
function Lane({ name, job, axis }: { name: string; job: JobData; axis: Axis }) {
  const styleOf = (part: JobData['timeline'][number]) =>
    ({
      left: `${axis.at(part.from)}%`,
      width: `${axis.at(part.to ?? axis.end) - axis.at(part.from)}%`,
      '--tint': tintOf(part.state),
    }) as CSSProperties;
  return (
    <>
      <span class="cut" title={name || 'the workload'} style={{ fontWeight: name ? 400 : 650, maxWidth: '180px' }}>
        {name ? name.replace(`${job.summary.name}-`, '') : 'Workload'}
      </span>
      <div class="lane">
        {job.timeline
          .filter((part) => (part.member ?? '') === name)
          .map((part, index) => (
            <span
              key={index}
              title={`${part.state} from ${dateTime(part.from)} for ${span(secondsOf(part, axis))}`}
              style={styleOf(part)}
            />
          ))}
      </div>
    </>
  );
}

function Ticks({ axis }: { axis: Axis }) {
  // Clocks tell seconds: more of them in a shorter time would be the same.
  const count = Math.min(TICKS, Math.floor(axis.length / 1000) + 1);
  return (
    <>
      <span />
      <div class="lane axis">
        {Array.from({ length: count }, (_, tick) => (
          <span key={tick} style={{ left: `${(tick * 100) / (count - 1)}%` }}>
            {axis.text(axis.begin + (axis.length * tick) / (count - 1))}
          </span>
        ))}
      </div>
    </>
  );
}

function Attempts({ attempts, axis }: { attempts: JobData['attempts']; axis: Axis }) {
  if (attempts.length === 0) return null;
  return (
    <ListTable label="Attempts" fills heads={[num('Attempt'), 'Began', num('Lasted'), 'How it ended']}>
      {attempts.slice(-ATTEMPTS_MAX).map((one) => (
        <tr key={one.number}>
          <td>{one.number}</td>
          <td class="nowrap">{dateTime(one.from)}</td>
          <td class="nowrap">{span(secondsOf(one, axis))}</td>
          <td>{one.to ? (one.reason ?? '–') : 'it runs'}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function Feed({ marks, axis }: { marks: JobData['marks']; axis: Axis }) {
  if (marks.length === 0) return null;
  const newest = [...marks].reverse().slice(0, FEED_MAX);
  return (
    <ul class="feed">
      {newest.map((mark, index) => (
        <li key={index}>
          <time dateTime={mark.time} title={dateTime(mark.time)}>
            {axis.text(mark.time)}
          </time>
          <span>
            <strong>{mark.kind}</strong> {mark.text}
          </span>
        </li>
      ))}
    </ul>
  );
}

function axisOf(job: JobData): Axis {
  const end = job.summary.completed ? Date.parse(job.summary.completed) : now.value;
  const begins = [job.summary.created, ...job.timeline.map((part) => part.from)];
  return new Axis(Math.min(...begins.map((time) => (time ? Date.parse(time) : end))), end);
}

// The workload first, then its members.
function lanesOf(job: JobData): string[] {
  return [...new Set(job.timeline.map((part) => part.member ?? ''))].sort(
    (a, b) => Number(a !== '') - Number(b !== '') || a.localeCompare(b, 'en', { numeric: true }),
  );
}

export function Timeline({ job }: { job: JobData }) {
  const axis = axisOf(job);
  const lanes = lanesOf(job);
  const none = job.summary.completed
    ? 'Its pods had ended before their states were recorded.'
    : 'No states have been recorded yet.';
  return (
    <div class="stack">
      <Legend states={[...new Set(job.timeline.map((part) => part.state))]} />
      <div class="lanes" role="group" aria-label="States over time">
        <Marks marks={job.marks} axis={axis} />
        <Sizes sizes={job.sizes} axis={axis} />
        {lanes.slice(0, LANES_MAX).map((lane) => (
          <Lane key={lane} name={lane} job={job} axis={axis} />
        ))}
        <Ticks axis={axis} />
      </div>
      {lanes.length > LANES_MAX && (
        <p class="muted small">
          The first {LANES_MAX} of {lanes.length} lanes.
        </p>
      )}
      {job.timeline.length === 0 && <p class="muted">{none}</p>}
      <Attempts attempts={job.attempts} axis={axis} />
      <Feed marks={job.marks} axis={axis} />
    </div>
  );
}
