// Size, throughput and loss of a job on one axis of time, and what more workers bring.
import { useMemo } from 'preact/hooks';
import { dateTime, gpuTime, number, secondsSince } from '../lib/format.ts';
import { align, pick, useHistory } from '../lib/history.ts';
import { bySize } from '../lib/pace.ts';
import type { Goodput, JobData, Series } from '../lib/types.ts';
import { Card } from './basic.tsx';
import { Chart, type Curve as ChartCurve, type Mark } from './chart.tsx';
import { Curve } from './curve.tsx';
import { ListTable, num } from './list_table.tsx';

const NO_SAMPLES: Series = { name: '', labels: {}, t: [], v: [] };
const CHECKPOINTS_MAX = 12;
const RIGHT_AXIS_PX = 52; // charts below one with an axis on the right leave as much room

function GoodputTable({ goodput }: { goodput: Goodput }) {
  // Where the batch grows with the workers, a record of a larger one is worth less.
  const counted = goodput.sizes.some((one) => one.efficiency !== undefined);
  const heads = [
    num('Workers'),
    num(`${goodput.unit}/s`),
    ...(counted ? [num('Efficiency'), num('Goodput')] : [num('Speed-up')]),
    'Known as',
  ];
  return (
    <ListTable heads={heads}>
      {goodput.sizes.map((one) => (
        <tr key={one.members}>
          <td>
            {one.members}
            {one.members === goodput.members ? ' (now)' : ''}
          </td>
          <td>{number(one.perSecond)}</td>
          {counted && <td>{one.efficiency} %</td>}
          <td>{number(one.relative)}</td>
          <td>{one.source}</td>
        </tr>
      ))}
    </ListTable>
  );
}

// What the scheduler knows of a job with autoscaling by goodput, and what it decides from that.
function GoodputCard({ goodput }: { goodput: Goodput }) {
  const points = goodput.sizes.map((one) => ({
    size: one.members,
    throughput: one.perSecond,
    expected: !one.measured,
  }));
  return (
    <Card title="Goodput" right={<span class="muted small">dotted: not measured yet</span>}>
      <p class="sentence">{goodput.sentence}.</p>
      {goodput.next && <p>One GPU more is {goodput.next}.</p>}
      {points.length > 0 && <Curve points={points} now={goodput.members} wanted={goodput.wanted} />}
      {points.length > 0 && <GoodputTable goodput={goodput} />}
      {goodput.noise && <p class="muted">The gradient's noise scale is {goodput.noise}.</p>}
      {goodput.decision && <p class="muted">{goodput.decision}</p>}
      {goodput.typeDecision && <p class="muted">GPU type: {goodput.typeDecision}</p>}
      {goodput.fit && <p class="muted small">{goodput.fit}</p>}
    </Card>
  );
}

// What more workers bring, from the job's own past.
function PaceCard({ paces, members }: { paces: ReturnType<typeof bySize>; members: number }) {
  if (paces.length === 0) {
    return (
      <Card title="What more workers bring">
        <p class="muted">This appears once the job has run at one size for a while.</p>
      </Card>
    );
  }
  return (
    <Card title="What more workers bring">
      <Curve points={paces} now={members} />
      <ListTable heads={[num('Workers'), num('Throughput /s'), num('Per worker'), num('Efficiency')]}>
        {paces.map((one) => (
          <tr key={one.size}>
            <td>{one.size}</td>
            <td>{number(one.throughput)}</td>
            <td>{number(one.throughput / one.size)}</td>
            <td>{Math.round(one.efficiency * 100)} %</td>
          </tr>
        ))}
      </ListTable>
    </Card>
  );
}

function Checkpoints({ checkpoints }: { checkpoints: JobData['checkpoints'] }) {
  if (checkpoints.length === 0) return <p class="muted">No checkpoint has been reported.</p>;
  const newest = [...checkpoints].reverse().slice(0, CHECKPOINTS_MAX);
  return (
    <ListTable heads={['Checkpoint', num('Step')]}>
      {newest.map((one) => (
        <tr key={one.time}>
          <td>{dateTime(one.time)}</td>
          <td>{number(one.step)}</td>
        </tr>
      ))}
    </ListTable>
  );
}

// Attempts of one job are of one year. A line ends between day and time only.
function DayTime({ time }: { time?: string | null }) {
  const [day, clock] = dateTime(time).replace(/^\d+-/, '').split(' ');
  return (
    <>
      <span class="nowrap">{day}</span> <span class="nowrap">{clock}</span>
    </>
  );
}

function Attempts({ attempts }: { attempts: JobData['attempts'] }) {
  return (
    <ListTable heads={[num('Attempt'), 'From', 'To', 'Ended by']}>
      {attempts.map((one) => (
        <tr key={one.number}>
          <td>{one.number}</td>
          <td>
            <DayTime time={one.from} />
          </td>
          <td>
            <DayTime time={one.to} />
          </td>
          <td>{one.reason ?? '–'}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function Lost({ job }: { job: JobData }) {
  const { lostGpuSeconds: lost, heldGpuSeconds: held } = job;
  if (lost === null || lost === undefined)
    return <p class="muted">What was lost is not known: no account is kept of workloads of this kind.</p>;
  if (lost === 0) return <p>No work has been lost.</p>;
  return (
    <p>
      <strong>{gpuTime(lost)}</strong> of work were lost: what the job did after its last checkpoint, each time that it
      was stopped. {held ? `It has held ${gpuTime(held)} in all.` : ''}
    </p>
  );
}

function LostWorkCard({ job }: { job: JobData }) {
  return (
    <Card title="Checkpoints and lost work">
      <Lost job={job} />
      <Checkpoints checkpoints={job.checkpoints} />
      {job.attempts.length > 1 && <Attempts attempts={job.attempts} />}
    </Card>
  );
}

// What the charts of a job have in common.
interface Shared {
  range?: [number, number];
  sync: string;
  marks: Mark[];
}

interface SizeProps {
  sizes: Series;
  pace?: Series;
  unit: string;
  loading: boolean;
  shared: Shared;
}

function SizeCard({ sizes, pace, unit, loading, shared }: SizeProps) {
  const { times, values } = align([sizes, pace ?? NO_SAMPLES]);
  const curves: ChartCurve[] = [
    { label: 'Workers', values: values[0] ?? [], colour: 'accent', step: true, area: true },
  ];
  if (pace) {
    const label = unit ? `Throughput, ${unit}/s` : 'Throughput /s';
    curves.push({ label, values: values[1] ?? [], colour: 'p1', right: true });
  }
  return (
    <Card title="Size and throughput" right={<span class="muted small">green: checkpoints, red: preemptions</span>}>
      <Chart label="Size and throughput" times={times} height={200} curves={curves} steps="whole" {...shared} />
      {!pace && !loading && (
        <p class="muted small">No throughput has been reported. A script that uses the SDK reports it.</p>
      )}
    </Card>
  );
}

interface BelowProps {
  series: Series;
  padRight?: number;
  shared: Shared;
}

function LossCard({ series, padRight, shared }: BelowProps) {
  const { times, values } = align([series]);
  const curves = [{ label: 'Loss', values: values[0] ?? [], colour: 'p3' }];
  return (
    <Card title="Loss">
      <Chart label="Loss" times={times} height={150} padRight={padRight} curves={curves} {...shared} />
    </Card>
  );
}

function StepsCard({ series, padRight, shared, total }: BelowProps & { total?: number | null }) {
  const { times, values } = align([series]);
  const label = total ? `Steps of ${number(total)}` : 'Steps';
  const curves = [{ label, values: values[0] ?? [], colour: 'ok', area: true }];
  return (
    <Card title="Steps">
      <Chart
        label="Steps"
        times={times}
        height={130}
        padRight={padRight}
        top={total ?? undefined}
        curves={curves}
        {...shared}
      />
    </Card>
  );
}

function marksOf(job: JobData): Mark[] {
  const checkpoints = job.checkpoints.map((one): Mark => ({
    time: Date.parse(one.time) / 1000,
    text: `Checkpoint${one.step ? ` at step ${one.step}` : ''}`,
    tone: 'ok',
  }));
  const stops = job.marks.filter((mark) => /Preempt|Reclaim|Shrunk|Fail/i.test(mark.kind));
  return [
    ...checkpoints,
    ...stops.map((mark): Mark => ({ time: Date.parse(mark.time) / 1000, text: mark.text, tone: 'bad' })),
  ];
}

// The sizes that the job itself reports are exact; samples stand in where it reports none.
function sizesOf(job: JobData, end: number | undefined, samples: Series | undefined): Series {
  const known = job.sizes.map((size) => ({ t: Date.parse(size.time) / 1000, v: size.members }));
  if (known.length === 0 && samples) return samples;
  return {
    name: 'job_members',
    labels: {},
    t: [...known.map((one) => one.t), end ?? Date.now() / 1000],
    v: [...known.map((one) => one.v), job.summary.members.running],
    steady: true,
  };
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
  const sizes = sizesOf(job, end, of('job_members'));
  const pace = of('job_throughput');
  const loss = of('job_loss');
  const steps = of('job_step');
  const shared: Shared = {
    range: history.to ? [history.from, end ?? Date.now() / 1000] : undefined,
    sync: `job-${summary.uid}`,
    marks: marksOf(job),
  };
  const below = { padRight: pace ? RIGHT_AXIS_PX : undefined, shared };
  return (
    <div class="stack">
      <SizeCard
        sizes={sizes}
        pace={pace}
        unit={summary.throughputUnit ?? ''}
        loading={history.loading}
        shared={shared}
      />
      {loss && <LossCard series={loss} {...below} />}
      {steps && <StepsCard series={steps} total={summary.progress?.total} {...below} />}
      <div class="columns">
        {job.goodput ? (
          <GoodputCard goodput={job.goodput} />
        ) : (
          <PaceCard paces={bySize(sizes, pace)} members={summary.members.running} />
        )}
        <LostWorkCard job={job} />
      </div>
    </div>
  );
}
