// The cluster over time: use, quotas, queue, preemptions, and what the GPUs cost.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { gpuHours, number, plural, shortSpan, span } from '../lib/format.ts';
import { align, growth, grown, integral, pick, sum, useHistory, within, type History } from '../lib/history.ts';
import { useView } from '../lib/live.ts';
import { hrefOf, param, setParams } from '../lib/router.ts';
import { csv, download } from '../lib/rows.ts';
import type { EventRow, OverviewData, PoolRow, ProjectRow, Rows, Series } from '../lib/types.ts';
import { Button, Card, Head, Menu, Notice, ProjectName, Segments, Tile } from '../parts/basic.tsx';
import { Chart, type ChartProps, type Curve, type Mark } from '../parts/chart.tsx';
import { readNumber } from '../parts/dialog.tsx';
import { ListTable, num } from '../parts/list_table.tsx';
import {
  NO_PROJECT,
  ProjectUsageChart,
  QuotaChart,
  UtilizationChart,
  ofProject,
  projectNames,
  rangeOf,
} from '../parts/usage_charts.tsx';

const RANGES: [string, string][] = [
  ['900', '15 min'],
  ['3600', '1 h'],
  ['21600', '6 h'],
  ['86400', '24 h'],
  ['604800', '7 d'],
  ['2592000', '30 d'],
  ['31536000', '1 y'],
];
const SERIES = [
  'gpu_total',
  'gpu_held',
  'gpu_utilized',
  'queue_length',
  'queue_gpus',
  'queue_wait_p50_seconds',
  'queue_wait_p95_seconds',
  'running_jobs',
  'preemptions',
  'preemptions_by_rule',
  'lost_gpu_seconds',
  'started_jobs',
  'started_wait_seconds',
  'project_gpu_held',
  'project_gpu_utilized',
  'project_gpu_quota',
  'project_gpu_fair_share',
  'project_gpu_requested',
];
const MARKED = /^(?:Preempted|Reclaimed|Shrunk|Grown|Resumed)$/;
const MARKS_MAX = 60;
const SYNC = 'analytics';

function marksOf(events: EventRow[] | undefined, from: number): Mark[] {
  const marks = new Map<string, Mark>();
  for (const event of events ?? []) {
    const time = Math.floor(Date.parse(event.time) / 1000);
    if (!MARKED.test(event.reason) || time < from) continue;
    const object =
      typeof event.object === 'string' ? event.object : `${event.object.namespace ?? ''}/${event.object.name}`;
    // A gang's pods are taken together: one mark.
    const group = object.replace(/-(?:[a-z]+)-\d+$/, '');
    marks.set(`${event.reason} ${group} ${Math.floor(time / 5)}`, {
      time,
      text: `${event.reason} ${group}: ${event.message}`,
      tone: /Grown|Resumed/.test(event.reason) ? 'ok' : 'bad',
    });
  }
  return [...marks.values()].slice(0, MARKS_MAX);
}

function Legend({ marks }: { marks: Mark[] }) {
  if (marks.length === 0) return null;
  return (
    <details>
      <summary class="muted small">
        {plural(marks.length, 'reclaim, preemption or return', 'reclaims, preemptions and returns')} in this time
      </summary>
      <ul class="feed">
        {marks.map((mark, index) => (
          <li key={index}>
            <time>{new Date(mark.time * 1000).toTimeString().slice(0, 8)}</time>
            <span>{mark.text}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

// Several curves of one name each, each summed over pools.
function Lines({
  label,
  history,
  names,
  marks,
  height = 170,
  format,
  steps,
  per = 1,
}: {
  label: string;
  history: History;
  names: [string, string, string, boolean?][];
  marks?: Mark[];
  height?: number;
  format?: (value: number | null | undefined) => string;
  steps?: ChartProps['steps'];
  per?: number; // so many of a series are one of the chart
}) {
  const drawn = useMemo(() => {
    const { times, values } = align(
      names.map(([name]) => sum(pick(history.series, name)) ?? { name, labels: {}, t: [], v: [] }),
    );
    return {
      times,
      curves: names.map(([, title, colour, area], at): Curve => ({
        label: title,
        values: (values[at] ?? []).map((value) => (value === null ? null : value / per)),
        colour,
        step: true,
        area,
      })),
    };
  }, [history]);
  return (
    <Chart
      label={label}
      times={drawn.times}
      curves={drawn.curves}
      range={rangeOf(history)}
      sync={SYNC}
      marks={marks}
      height={height}
      format={format}
      steps={steps}
    />
  );
}

// What the scheduler's rules are for.
const RULES: Record<string, string> = {
  reclaim: 'Reclaim: a project took its share back',
  preempt: 'Preempt: a higher priority needed the place',
  shrink: 'Shrink: an elastic workload made room',
  consolidate: 'Consolidate: pods moved together to make room',
  'stale-gangs': 'Stale gangs: too few members were left',
};

function ByRule({ history }: { history: History }) {
  const rules = pick(history.series, 'preemptions_by_rule').map((one) => ({
    rule: one.labels.rule || 'other',
    pods: growth(one, history.from),
    series: grown(one, history.from),
  }));
  const drawn = useMemo(() => {
    const { times, values } = align(rules.map((one) => one.series));
    return {
      times,
      curves: rules.map((one, at): Curve => ({
        label: one.rule,
        values: values[at] ?? [],
        colour: `p${at % 8}`,
        step: true,
      })),
    };
  }, [history]);
  return (
    <Card title="Preemptions by rule" id="preemptions-by-rule">
      {rules.length === 0 ? (
        <p class="muted">In this time the scheduler took no pod from its place.</p>
      ) : (
        <>
          <Chart
            label="Pods taken from their places, by rule, counted up"
            times={drawn.times}
            curves={drawn.curves}
            stacked
            steps="whole"
            range={rangeOf(history)}
            sync={SYNC}
            height={150}
          />
          <ListTable heads={['Rule', num('Pods')]}>
            {rules.map((one) => (
              <tr key={one.rule}>
                <td>{RULES[one.rule] ?? one.rule}</td>
                <td>{number(one.pods)}</td>
              </tr>
            ))}
          </ListTable>
        </>
      )}
    </Card>
  );
}

function Waits({ history, marks }: { history: History; marks: Mark[] }) {
  // The account of use may be older than the history: only a counter that begins later than the history began at 0.
  const begin = Math.max(history.from, pick(history.series, 'queue_length')[0]?.t[0] ?? history.from);
  const rows = pick(history.series, 'started_jobs')
    .map((one) => one.labels.project ?? '')
    .sort()
    .map((project) => {
      const started = growth(pick(history.series, 'started_jobs', { project })[0], begin);
      const waited = growth(pick(history.series, 'started_wait_seconds', { project })[0], begin);
      return { project, started, mean: started > 0 ? waited / started : null };
    })
    .filter((row) => row.started > 0);
  return (
    <Card title="Waits" id="waits">
      <Lines
        label="How long those wait that wait now"
        history={history}
        marks={marks}
        names={[
          ['queue_wait_p95_seconds', '95 % wait at most', 'wait', true],
          ['queue_wait_p50_seconds', 'Half wait at most', 'muted'],
        ]}
        height={150}
        format={shortSpan}
        steps="spans"
      />
      {rows.length === 0 ? (
        <p class="muted small">No workload has started in this time.</p>
      ) : (
        <ListTable heads={['Project', num('Started'), num('Mean wait')]}>
          {rows.map((row) => (
            <tr key={row.project}>
              <td>{row.project ? <ProjectName name={row.project} /> : NO_PROJECT}</td>
              <td>{number(row.started)}</td>
              <td>{span(row.mean)}</td>
            </tr>
          ))}
        </ListTable>
      )}
    </Card>
  );
}

interface Use {
  project: string;
  hours: number;
  over: number;
  idle: number | null;
  quota: number;
  quotaUsed: number | null; // the part of the quota's hours, where both are known
  cost: number;
}

// The hours between two curves, where the first is above the second.
// `unknown`: how much of the first counts where the second has no value.
function hoursBetween(upper: Series, lower: Series, unknown: 'none' | 'all'): number {
  const { times, values } = align([upper, lower]);
  const difference = times.map((_, at) => {
    const below = values[1]?.[at] ?? (unknown === 'all' ? 0 : null);
    return below === null ? null : Math.max(0, (values[0]?.[at] ?? 0) - below);
  });
  return integral({ name: '', labels: {}, t: times, v: difference }) / 3600;
}

export function consumption(history: History, names: string[], price: number, pool: string): Use[] {
  return names.map((project) => {
    const of = (name: string) => ofProject(history.series, name, project, pool);
    const held = of('project_gpu_held');
    const quota = of('project_gpu_quota');
    const used = of('project_gpu_utilized');
    const hours = integral(held) / 3600;
    const ofQuota = within(held, quota);
    return {
      project,
      hours,
      over: held && quota ? hoursBetween(held, quota, 'all') : 0,
      // Where it was measured: what was held then, and not used.
      idle: held && used && used.t.length > 1 ? hoursBetween(held, used, 'none') : null,
      quota: integral(quota) / 3600,
      quotaUsed: ofQuota.whole > 0 ? ofQuota.part / ofQuota.whole : null,
      cost: hours * price,
    };
  });
}

// Work without a project has a row if it held GPUs.
function usesOf(history: History, names: string[], price: number, pool: string, all: boolean): Use[] {
  const outside = all ? consumption(history, [''], price, pool) : [];
  return [...consumption(history, names, price, pool), ...outside.filter((one) => one.hours > 0)];
}

function totalOf(uses: Use[]): { hours: number; over: number; idle: number; cost: number } {
  const total = { hours: 0, over: 0, idle: 0, cost: 0 };
  for (const one of uses) {
    total.hours += one.hours;
    total.over += one.over;
    total.idle += one.idle ?? 0;
    total.cost += one.cost;
  }
  return total;
}

function saveConsumption(uses: Use[], price: number): void {
  const round = (value: number) => Math.round(value * 100) / 100;
  const header = [
    'Project',
    'GPU-hours',
    'Held but not used',
    'Over quota',
    'Quota GPU-hours',
    'Price per GPU-hour',
    'Cost',
  ];
  const rows = uses.map((one) => [
    one.project || NO_PROJECT,
    round(one.hours),
    one.idle === null ? null : round(one.idle),
    round(one.over),
    round(one.quota),
    price,
    round(one.cost),
  ]);
  download('consumption.csv', csv(header, rows), 'text/csv');
}

const USE_HEADS = [
  'Project',
  num('GPU-hours'),
  num('Held but not used'),
  num('Over quota'),
  num('Quota used'),
  num('Cost'),
];

function UseTable({ uses, price }: { uses: Use[]; price: number }) {
  const total = totalOf(uses);
  const quotaUsed = (one: Use) => (one.quotaUsed === null ? '–' : `${Math.round(100 * one.quotaUsed)} %`);
  return (
    <ListTable label="Consumption" heads={USE_HEADS}>
      {uses.map((one) => (
        <tr key={one.project}>
          <td>{one.project ? <ProjectName name={one.project} /> : NO_PROJECT}</td>
          <td>{number(one.hours)}</td>
          <td>{number(one.idle)}</td>
          <td>{number(one.over)}</td>
          <td>{quotaUsed(one)}</td>
          <td>{price ? number(one.cost) : '–'}</td>
        </tr>
      ))}
      <tr>
        <td>
          <strong>{uses.every((one) => one.project) ? 'All projects' : 'All'}</strong>
        </td>
        <td>
          <strong>{number(total.hours)}</strong>
        </td>
        <td>{number(total.idle)}</td>
        <td>{number(total.over)}</td>
        <td />
        <td>{price ? number(total.cost) : '–'}</td>
      </tr>
    </ListTable>
  );
}

function Consumption({ history, names, pool, all }: { history: History; names: string[]; pool: string; all: boolean }) {
  const price = Math.max(0, readNumber(param('price')) ?? 0);
  const uses = usesOf(history, names, price, pool, all);
  const save = () => saveConsumption(uses, price);
  const right = (
    <>
      <label class="small muted" for="price">
        Price per GPU-hour
      </label>
      <input
        id="price"
        style={{ width: '84px' }}
        inputMode="decimal"
        value={param('price')}
        placeholder="0"
        onInput={(event) => setParams({ price: event.currentTarget.value })}
      />
      <Button icon="download" label="Download consumption as CSV" onClick={save} disabled={uses.length === 0} />
    </>
  );
  return (
    <Card title="Consumption" right={right}>
      {uses.length === 0 ? (
        <p class="muted">No work has held GPUs in this time.</p>
      ) : (
        <UseTable uses={uses} price={price} />
      )}
    </Card>
  );
}

function Filters({ names, pools }: { names: string[]; pools: PoolRow[] }) {
  const chosen = param('project').split(',').filter(Boolean);
  const toggle = (name: string) =>
    setParams({
      project: (chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]).join(','),
    });
  return (
    <>
      {pools.length > 0 && (
        <select
          aria-label="Node pool"
          value={param('pool')}
          onChange={(event) => setParams({ pool: event.currentTarget.value })}
        >
          <option value="">All node pools</option>
          {pools.map((pool) => (
            <option key={pool.name} value={pool.name}>
              {pool.name}
            </option>
          ))}
        </select>
      )}
      <Menu icon="filter" text={chosen.length > 0 ? plural(chosen.length, 'project') : 'All projects'} toLeft>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            <ProjectName name={name} plain />
          </label>
        ))}
        <div class="ends">
          <Button plain onClick={() => setParams({ project: null })}>
            All projects
          </Button>
        </div>
      </Menu>
    </>
  );
}

// The part of all GPUs that was held; of a cluster without samples yet, what is held now.
function heldPartOf(held: { part: number; whole: number }, overview?: OverviewData): number | null {
  if (held.whole > 0) return held.part / held.whole;
  return overview?.gpus.total ? overview.gpus.held / overview.gpus.total : null;
}

function Tiles({ history, pool, overview }: { history: History; pool: string; overview?: OverviewData }) {
  const series = (name: string) => sum(pick(history.series, name, pool ? { pool } : {}));
  const grew = (name: string) => growth(sum(pick(history.series, name)));
  const heldPart = heldPartOf(within(series('gpu_held'), series('gpu_total')), overview);
  const used = within(series('gpu_utilized'), series('gpu_held'));
  return (
    <div class="tiles">
      <Tile
        label="Held"
        value={heldPart === null ? '–' : `${Math.round(100 * heldPart)}`}
        unit={heldPart === null ? '' : '%'}
        note="of all GPU time"
      />
      <Tile
        label="Used"
        value={used.whole > 0 ? `${Math.round((100 * used.part) / used.whole)}` : '–'}
        unit={used.whole > 0 ? '%' : ''}
        note="of held GPU time"
      />
      <Tile
        label="Held but not used"
        value={gpuHours(used.whole - used.part)}
        note="GPU-hours"
        href="/nodes?sort=-idle"
      />
      <Tile
        label="Preemptions"
        value={number(grew('preemptions'))}
        note="pods, in this time"
        href={hrefOf.preemptions}
      />
      <Tile label="Lost GPU-hours" value={gpuHours(grew('lost_gpu_seconds'))} note="since the last checkpoints" />
    </div>
  );
}

// The curves of the whole cluster: queue, running workloads, preemptions, lost work.
function ClusterCharts({ history, marks }: { history: History; marks: Mark[] }) {
  return (
    <div class="columns">
      <Card title="Queue">
        <Lines
          label="Waiting workloads and the GPUs they request"
          history={history}
          marks={marks}
          names={[
            ['queue_length', 'Waiting workloads', 'wait', true],
            ['queue_gpus', 'GPUs they request', 'muted'],
          ]}
          steps="whole"
        />
      </Card>
      <Waits history={history} marks={marks} />
      <Card title="Running workloads">
        <Lines
          label="Running workloads"
          history={history}
          marks={marks}
          names={[['running_jobs', 'Running', 'ok', true]]}
          steps="whole"
        />
      </Card>
      <Card title="Preemptions">
        <Lines
          label="Preemptions, counted up"
          history={history}
          names={[['preemptions', 'Preemptions, counted up', 'bad', true]]}
          steps="whole"
        />
      </Card>
      <ByRule history={history} />
      <Card title="Lost GPU-hours">
        <Lines
          label="GPU-hours of work lost by preemptions"
          history={history}
          names={[['lost_gpu_seconds', 'GPU-hours, cumulative', 'bad', true]]}
          per={3600}
        />
      </Card>
    </div>
  );
}

function UnitChoice({ asShare }: { asShare: boolean }) {
  return (
    <Segments
      label="Unit"
      value={asShare ? 'share' : 'gpus'}
      options={[
        ['gpus', 'GPUs'],
        ['share', 'Share'],
      ]}
      onChange={(as) => setParams({ as: as === 'share' ? as : null })}
    />
  );
}

// The window of time that the address names: the last seconds, or what was zoomed into.
function chosenTime(): { seconds: number; zoomedTo?: number } {
  const from = Number(param('from'));
  const to = Number(param('to'));
  if (from > 0 && to > from) return { seconds: to - from, zoomedTo: to };
  return { seconds: Number(param('range')) || 3600 };
}

const resetZoom = () => setParams({ from: null, to: null }, false);
const zoom = (start: number, end: number) =>
  setParams({ from: String(Math.floor(start)), to: String(Math.ceil(end)) }, false);

function TimeChoice({ seconds, zoomed }: { seconds: number; zoomed: boolean }) {
  return (
    <>
      {zoomed && <Button onClick={resetZoom}>Reset zoom</Button>}
      <Segments
        label="Time"
        value={zoomed ? '' : String(seconds)}
        options={RANGES}
        onChange={(range) => setParams({ range: range === '3600' ? null : range, from: null, to: null })}
      />
    </>
  );
}

function QuotaCard({ name, children }: { name: string; children: ComponentChildren }) {
  const right = (
    <a class="small" href={hrefOf.project(name, 'history')}>
      History
    </a>
  );
  return (
    <Card title={<ProjectName name={name} />} right={right}>
      {children}
    </Card>
  );
}

export function Analytics() {
  const { seconds, zoomedTo } = chosenTime();
  const zoomed = zoomedTo !== undefined;
  const history = useHistory(SERIES, seconds, zoomedTo);
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows;
  const pools = useView<Rows<PoolRow>>('nodepools').data?.rows ?? [];
  const overview = useView<OverviewData>('overview').data;
  const events = useView<Rows<EventRow>>('events', { limit: 2000 }).data?.rows;
  const pool = param('pool');
  const all = projectNames(history, projects);
  const only = param('project').split(',').filter(Boolean);
  const names = only.length > 0 ? all.filter((name) => only.includes(name)) : all;
  const marks = useMemo(() => marksOf(events, history.from), [events, history.from]);
  const shared = { history, projects, sync: SYNC, marks, live: !zoomed, pool, onZoom: zoom };
  const asShare = param('as') === 'share';
  return (
    <>
      <Head title="Analytics">
        <Filters names={all} pools={pools} />
        <TimeChoice seconds={seconds} zoomed={zoomed} />
      </Head>
      {pool && (
        <p class="muted small">
          GPUs are those of the node pool {pool}. Queue and preemptions are those of the whole cluster, and so is the
          use by project where it is not recorded by pool.
        </p>
      )}
      {history.error && <Notice tone="bad">The history could not be read: {history.error}</Notice>}
      <Tiles history={history} pool={pool} overview={overview} />
      <Card title="GPU Utilization" id="gpu-utilization">
        <UtilizationChart {...shared} overview={overview} height={200} />
      </Card>
      <Card title="Project Resource Usage" id="project-usage" right={<UnitChoice asShare={asShare} />}>
        <ProjectUsageChart {...shared} overview={overview} only={names} asShare={asShare} height={220} />
        <Legend marks={marks} />
      </Card>
      <h2 id="quota-usage">Quota vs. Usage</h2>
      <div class="columns">
        {names.map((name) => (
          <QuotaCard key={name} name={name}>
            <QuotaChart {...shared} project={name} height={150} />
          </QuotaCard>
        ))}
        {names.length === 0 && (
          <Card>
            <p class="muted">
              There are no projects yet. <a href="/projects">Make a project</a>
            </p>
          </Card>
        )}
      </div>
      <ClusterCharts history={history} marks={marks} />
      <Consumption history={history} names={names} pool={pool} all={only.length === 0} />
    </>
  );
}
