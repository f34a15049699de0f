// Size, throughput and loss of a job on one axis of time, and what more workers bring.
import { useMemo } from 'preact/hooks';
import { dateTime, gpuHours, number, secondsSince } from '../lib/format.ts';
import { align, pick, useHistory } from '../lib/history.ts';
import { bySize, type SizePace } from '../lib/pace.ts';
import type { JobData, Series } from '../lib/types.ts';
import { Card } from './basic.tsx';
import { Chart, type Mark } from './chart.tsx';

function Scatter({ paces, now }: { paces: SizePace[]; now: number }) {
  const W = 320;
  const H = 190;
  const PAD = 34;
  const most = Math.max(1, ...paces.map((pace) => pace.size));
  const top = Math.max(1e-9, ...paces.map((pace) => pace.throughput)) * 1.1;
  const x = (size: number) => PAD + (size / most) * (W - PAD - 10);
  const y = (value: number) => H - PAD - (value / top) * (H - PAD - 10);
  const per = paces[0] ? paces[0].throughput / paces[0].size : 0;
  return (
    <svg viewBox={`0 0 ${W} ${H}`} style={{ width: '100%', maxWidth: '460px' }} role="img" aria-label={`Throughput by number of workers: ${paces.map((pace) => `${pace.size}: ${number(pace.throughput)}`).join(', ')}`}>
      <g stroke="var(--line)"><path d={`M${PAD} 10V${H - PAD}H${W - 10}`} fill="none" /></g>
      {per > 0 && <path d={`M${x(0)} ${y(0)}L${x(most)} ${y(Math.min(top, per * most))}`} stroke="var(--strong-line)" stroke-dasharray="4 4" />}
      <path d={paces.map((pace, at) => `${at ? 'L' : 'M'}${x(pace.size)} ${y(pace.throughput)}`).join('')} fill="none" stroke="var(--accent)" stroke-width="1.75" />
      {paces.map((pace) => <circle key={pace.size} cx={x(pace.size)} cy={y(pace.throughput)} r={pace.size === now ? 6 : 4} fill={pace.size === now ? 'var(--accent)' : 'var(--card)'} stroke="var(--accent)" stroke-width="2"><title>{pace.size} workers: {number(pace.throughput)} /s</title></circle>)}
      <g fill="var(--muted)" font-size="11">
        {paces.map((pace) => <text key={pace.size} x={x(pace.size)} y={H - PAD + 16} text-anchor="middle">{pace.size}</text>)}
        <text x={W / 2} y={H - 4} text-anchor="middle">workers</text><text x={PAD + 4} y={16}>{number(top)} /s</text>
      </g>
    </svg>
  );
}

export function Throughput({ job }: { job: JobData }) {
  const { summary } = job;
  const begin = secondsSince(summary.created) ?? 3600;
  const end = summary.completed ? Math.floor(Date.parse(summary.completed) / 1000) : undefined;
  const length = Math.max(60, Math.ceil(end ? begin - (secondsSince(summary.completed) ?? 0) : begin));
  // The length of the first render: a window that grows each second would be read anew each second.
  const seconds = useMemo(() => length, [summary.uid, end]);
  const history = useHistory(['job_members', 'job_throughput', 'job_loss', 'job_step'], seconds, end);
  const of = (name: string) => pick(history.series, name, { namespace: summary.namespace, job: summary.name })[0];
  // The sizes that the job itself reports are exact; samples stand in where it reports none.
  const known = job.sizes.map((size) => ({ t: Date.parse(size.time) / 1000, v: size.members }));
  const last: Series = { name: 'job_members', labels: {}, t: [...known.map((one) => one.t), end ?? Date.now() / 1000], v: [...known.map((one) => one.v), summary.members.running], steady: true };
  const sizes = known.length > 0 ? last : of('job_members') ?? last;
  const pace = of('job_throughput');
  const loss = of('job_loss');
  const steps = of('job_step');
  const unit = summary.throughputUnit ?? '';
  const marks: Mark[] = [
    ...job.checkpoints.map((one): Mark => ({ time: Date.parse(one.time) / 1000, text: `Checkpoint${one.step ? ` at step ${one.step}` : ''}`, tone: 'ok' })),
    ...job.marks.filter((mark) => /Preempt|Reclaim|Shrunk|Fail/i.test(mark.kind)).map((mark): Mark => ({ time: Date.parse(mark.time) / 1000, text: mark.text, tone: 'bad' })),
  ];
  const main = align([sizes, pace ?? { name: '', labels: {}, t: [], v: [] }]);
  const below = align(loss ? [loss] : []);
  const done = align(steps ? [steps] : []);
  const range: [number, number] | undefined = history.to ? [history.from, end ?? Date.now() / 1000] : undefined;
  const paces = bySize(sizes, pace);
  return (
    <div class="stack">
      <Card title="Size and throughput" right={<span class="muted small">green: checkpoints, red: preemptions</span>}>
        <Chart label="Size and throughput" times={main.times} range={range} sync={`job-${summary.uid}`} marks={marks} height={200} curves={[
          { label: 'Workers', values: main.values[0] ?? [], colour: 'accent', step: true, area: true },
          ...(pace ? [{ label: unit ? `Throughput, ${unit}/s` : 'Throughput /s', values: main.values[1] ?? [], colour: 'p1', right: true }] : []),
        ]} />
        {!pace && !history.loading && <p class="muted small">No throughput has been reported. A script that uses the SDK reports it.</p>}
      </Card>
      {loss && <Card title="Loss"><Chart label="Loss" times={below.times} range={range} sync={`job-${summary.uid}`} marks={marks} height={150} padRight={pace ? 52 : undefined} curves={[{ label: 'Loss', values: below.values[0] ?? [], colour: 'p3' }]} /></Card>}
      {steps && <Card title="Steps"><Chart label="Steps" times={done.times} range={range} sync={`job-${summary.uid}`} marks={marks} height={130} padRight={pace ? 52 : undefined} top={summary.progress?.total ?? undefined} curves={[{ label: summary.progress?.total ? `Steps of ${number(summary.progress.total)}` : 'Steps', values: done.values[0] ?? [], colour: 'ok', area: true }]} /></Card>}
      <div class="columns">
        <Card title="What more workers bring">
          {paces.length === 0 ? <p class="muted">This appears once the job has run at one size for a while.</p> : <>
            <Scatter paces={paces} now={summary.members.running} />
            <table class="list-table"><thead><tr><th class="num">Workers</th><th class="num">Throughput /s</th><th class="num">Per worker</th><th class="num">Efficiency</th></tr></thead>
              <tbody>{paces.map((one) => <tr key={one.size}><td class="num">{one.size}</td><td class="num">{number(one.throughput)}</td><td class="num">{number(one.throughput / one.size)}</td><td class="num">{Math.round(one.efficiency * 100)} %</td></tr>)}</tbody></table>
          </>}
        </Card>
        <Card title="Checkpoints and lost work">
          <p>{job.lostGpuSeconds ? <><strong>{gpuHours(job.lostGpuSeconds)} GPU-hours</strong> of work were lost when the job was stopped.</> : 'No work has been lost.'}</p>
          {job.checkpoints.length === 0 ? <p class="muted">No checkpoint has been reported.</p>
            : <table class="list-table"><thead><tr><th>Checkpoint</th><th class="num">Step</th></tr></thead><tbody>{[...job.checkpoints].reverse().slice(0, 12).map((one) => <tr key={one.time}><td>{dateTime(one.time)}</td><td class="num">{number(one.step)}</td></tr>)}</tbody></table>}
          {job.attempts.length > 1 && <table class="list-table"><thead><tr><th class="num">Attempt</th><th>From</th><th>To</th><th>Ended by</th></tr></thead>
            <tbody>{job.attempts.map((one) => <tr key={one.number}><td class="num">{one.number}</td><td>{dateTime(one.from)}</td><td>{dateTime(one.to)}</td><td>{one.reason ?? '–'}</td></tr>)}</tbody></table>}
        </Card>
      </div>
    </div>
  );
}
