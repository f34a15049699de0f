// Size, throughput and loss of a job on one axis of time, and what more workers bring.
import { useMemo } from 'preact/hooks';
import { dateTime, gpuHours, number, secondsSince } from '../lib/format.ts';
import { align, pick, useHistory } from '../lib/history.ts';
import { bySize } from '../lib/pace.ts';
import type { Goodput, JobData, Series } from '../lib/types.ts';
import { Card } from './basic.tsx';
import { Chart, type Mark } from './chart.tsx';
import { Curve } from './curve.tsx';

// What the scheduler knows of a job that grows while that pays, and what it makes of it.
function GoodputCard({ goodput }: { goodput: Goodput }) {
  const points = goodput.sizes.map((one) => ({ size: one.members, throughput: one.perSecond, expected: !one.measured }));
  // Where the batch grows with the workers, a record of a larger one is worth less.
  const counted = goodput.sizes.some((one) => one.efficiency !== undefined);
  return (
    <Card title="Goodput" right={<span class="muted small">dotted: not measured yet</span>}>
      <p class="sentence">{goodput.sentence}.</p>
      {goodput.next && <p>One GPU more is {goodput.next}.</p>}
      {points.length > 0 && <Curve points={points} now={goodput.members} wanted={goodput.wanted} />}
      {points.length > 0 && <table class="list-table"><thead><tr><th class="num">Workers</th><th class="num">{goodput.unit}/s</th>{counted && <th class="num">Efficiency</th>}<th class="num">{counted ? 'Goodput' : 'Speed-up'}</th><th>Known as</th></tr></thead>
        <tbody>{goodput.sizes.map((one) => <tr key={one.members}><td class="num">{one.members}{one.members === goodput.members ? ' (now)' : ''}</td><td class="num">{number(one.perSecond)}</td>{counted && <td class="num">{one.efficiency} %</td>}<td class="num">{number(one.relative)}</td><td>{one.source}</td></tr>)}</tbody></table>}
      {goodput.noise && <p class="muted">The gradient's noise scale is {goodput.noise}.</p>}
      {goodput.decision && <p class="muted">{goodput.decision}</p>}
      {goodput.fit && <p class="muted small">{goodput.fit}</p>}
    </Card>
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
        {job.goodput ? <GoodputCard goodput={job.goodput} /> : <Card title="What more workers bring">
          {paces.length === 0 ? <p class="muted">This appears once the job has run at one size for a while.</p> : <>
            <Curve points={paces} now={summary.members.running} />
            <table class="list-table"><thead><tr><th class="num">Workers</th><th class="num">Throughput /s</th><th class="num">Per worker</th><th class="num">Efficiency</th></tr></thead>
              <tbody>{paces.map((one) => <tr key={one.size}><td class="num">{one.size}</td><td class="num">{number(one.throughput)}</td><td class="num">{number(one.throughput / one.size)}</td><td class="num">{Math.round(one.efficiency * 100)} %</td></tr>)}</tbody></table>
          </>}
        </Card>}
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
