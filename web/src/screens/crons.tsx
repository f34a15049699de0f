// What starts workloads at the times of a schedule: KubeDL's Crons and Kubernetes' CronJobs.
import { errorText, isNotFound, kube } from '../lib/api.ts';
import { now } from '../lib/clock.ts';
import { dateTime, secondsSince, span, zoneText } from '../lib/format.ts';
import { useView } from '../lib/live.ts';
import { go, hrefOf, param } from '../lib/router.ts';
import type { CronData, CronRow, CronRun, Rows, WhyData } from '../lib/types.ts';
import {
  Age,
  Button,
  Card,
  Empty,
  Facts,
  Head,
  Missing,
  Notice,
  ProjectName,
  Status,
  TabPanel,
  Tabs,
  Waiting,
  chosenTab,
  toast,
} from '../parts/basic.tsx';
import { confirm } from '../parts/dialog.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { mayAll, pathOf } from '../parts/job_actions.tsx';
import { Manifest } from '../parts/manifest.tsx';
import { WhyCard } from '../parts/why.tsx';
import { EVENT_COLUMNS, withKeys } from './events.tsx';

// "in 3 min", or "due" where the time has come and no workload has started.
function Next({ row }: { row: CronRow }) {
  if (!row.next) return <span class="muted">–</span>;
  const left = (Date.parse(row.next) - now.value) / 1000;
  return <span title={dateTime(row.next)}>{left > 0 ? `in ${span(left)}` : 'due'}</span>;
}

function RunLink({ row, run }: { row: CronRow; run?: CronRun | null }) {
  if (!run) return <span class="muted">–</span>;
  return (
    <>
      <a class="cut" href={hrefOf.job({ namespace: row.namespace, name: run.name, kind: run.kind })}>
        {run.name}
      </a>
      <Status word={run.status} />
    </>
  );
}

const scheduleOf = (row: CronRow) => `${row.schedule}${row.timeZone ? ` ${row.timeZone}` : ''}`;

const COLUMNS: Column<CronRow>[] = [
  { key: 'name', title: 'Cron', value: (row) => row.name, width: 160, grow: 1.2 },
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    cell: (row) => <Status word={row.state} reason={row.reason} />,
    width: 136,
    grow: 0.3,
    filter: true,
  },
  { key: 'schedule', title: 'Schedule', value: scheduleOf, width: 180, grow: 0.6 },
  {
    key: 'next',
    title: 'Next run',
    value: (row) => row.next,
    cell: (row) => <Next row={row} />,
    width: 120,
    grow: 0.4,
    num: true,
  },
  {
    key: 'last',
    title: 'Last run',
    value: (row) => row.last,
    cell: (row) => <Age time={row.last} />,
    width: 120,
    grow: 0.3,
    spare: 2,
  },
  {
    key: 'run',
    title: 'Last workload',
    value: (row) => row.lastRun?.name,
    cell: (row) => <RunLink row={row} run={row.lastRun} />,
    width: 240,
    grow: 1.4,
    spare: 1,
  },
  { key: 'active', title: 'Active', value: (row) => row.active, width: 76, grow: 0.2, num: true, spare: 3 },
  {
    key: 'project',
    title: 'Project',
    value: (row) => row.project,
    cell: (row) => <ProjectName name={row.project} />,
    width: 120,
    grow: 0.7,
    filter: true,
  },
  { key: 'kind', title: 'Kind', value: (row) => row.kind, width: 100, grow: 0.3, filter: true, spare: 5 },
  { key: 'starts', title: 'Starts', value: (row) => row.starts, width: 120, grow: 0.4, filter: true, spare: 6 },
  { key: 'policy', title: 'While one runs', value: (row) => row.policy, width: 130, hidden: true, filter: true },
  { key: 'namespace', title: 'Namespace', value: (row) => row.namespace, width: 130, hidden: true, filter: true },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 110,
    hidden: true,
  },
];

export function Crons() {
  const view = useView<Rows<CronRow>>('crons');
  return (
    <>
      <Head title="Crons" />
      <Grid
        name="crons"
        label="Crons"
        error={view.error}
        columns={COLUMNS}
        rows={view.data?.rows}
        rowKey={(row) => row.uid}
        href={hrefOf.cron}
        address
        what={['cron', 'crons']}
        partial={view.data?.partial}
        empty={
          <Empty title="There are no crons">
            <p>
              A cron starts a workload at each time of a schedule: <code>arena cron pytorchjob</code>, or a CronJob of
              Kubernetes.
            </p>
          </Empty>
        }
      />
    </>
  );
}

function suspend(row: CronRow, on: boolean): void {
  kube.patch(pathOf(row), { spec: { suspend: on } }).then(
    () => toast(on ? `${row.name} starts no more workloads. Those that run continue.` : `${row.name} is resumed.`),
    (error: unknown) => toast(errorText(error), true),
  );
}

function remove(row: CronRow): void {
  confirm({
    title: `Delete ${row.name}?`,
    action: 'Delete',
    danger: true,
    text: 'The cron and the workloads that it started are deleted. This cannot be undone.',
    run: async () => {
      await kube.remove(`${pathOf(row)}?propagationPolicy=Background`);
      toast(`${row.name} is deleted.`);
      go('/crons');
    },
  });
}

function Actions({ row }: { row: CronRow }) {
  const change = mayAll('patch', [row]);
  const suspended = row.state === 'Suspended';
  return (
    <>
      {change && (
        <Button icon={suspended ? 'play' : 'pause'} onClick={() => suspend(row, !suspended)}>
          {suspended ? 'Resume' : 'Suspend'}
        </Button>
      )}
      {mayAll('delete', [row]) && (
        <Button icon="trash" danger onClick={() => remove(row)}>
          Delete
        </Button>
      )}
    </>
  );
}

function Why({ row }: { row: CronRow }) {
  const view = useView<WhyData>('why', { namespace: row.namespace, name: row.name, kind: row.kind });
  if (view.data) {
    return (
      <>
        <WhyCard why={view.data} />
        {view.data.next && (
          <Card title="What to do next">
            <p>{view.data.next}.</p>
          </Card>
        )}
      </>
    );
  }
  return (
    <Card title="Why">
      <Waiting state={view} />
    </Card>
  );
}

function lastedOf(run: CronRun): number | null {
  if (!run.began) return null;
  return run.ended ? (Date.parse(run.ended) - Date.parse(run.began)) / 1000 : secondsSince(run.began, now.value);
}

const RUN_COLUMNS: Column<CronRun>[] = [
  { key: 'name', title: 'Workload', value: (run) => run.name, width: 200, grow: 1.4 },
  {
    key: 'status',
    title: 'Status',
    value: (run) => run.status,
    cell: (run) => <Status word={run.status} />,
    width: 130,
    grow: 0.4,
    filter: true,
  },
  { key: 'kind', title: 'Kind', value: (run) => run.kind, width: 120, grow: 0.4, spare: 3 },
  {
    key: 'began',
    title: 'Began',
    value: (run) => run.began,
    cell: (run) => <Age time={run.began} />,
    width: 130,
    grow: 0.4,
  },
  {
    key: 'lasted',
    title: 'Lasted',
    value: lastedOf,
    cell: (run) => <>{span(lastedOf(run))}</>,
    width: 110,
    grow: 0.3,
    num: true,
  },
];

function Runs({ data }: { data: CronData }) {
  return (
    <Grid
      name={`runs-${data.summary.name}`}
      label="Runs"
      columns={RUN_COLUMNS}
      rows={data.runs}
      rowKey={(run) => run.name}
      href={(run) => hrefOf.job({ namespace: data.summary.namespace, name: run.name, kind: run.kind })}
      height="480px"
      what={['run', 'runs']}
      empty={<Empty title="It has started no workload yet">Its runs appear here.</Empty>}
    />
  );
}

function Events({ data }: { data: CronData }) {
  return (
    <Grid
      name={`events-${data.summary.name}`}
      label="Events"
      columns={EVENT_COLUMNS}
      rows={withKeys(data.events)}
      rowKey={(one) => one.key}
      sort="-time"
      height="480px"
      what={['event', 'events']}
      empty={<Empty title="It has no events">They are kept for an hour.</Empty>}
    />
  );
}

const POLICIES: Record<string, string> = {
  Allow: 'another starts beside it',
  Forbid: 'the next one waits',
  Replace: 'it is ended for the next one',
};

function CronFacts({ row }: { row: CronRow }) {
  return (
    <Facts
      facts={[
        ['Schedule', <code>{row.schedule}</code>],
        ['Time zone', zoneText(row.timeZone ?? 'UTC')],
        ['Next run', row.next ? <>{dateTime(row.next)}</> : '–'],
        ['Last run', row.last ? dateTime(row.last) : '–'],
        ['Starts', row.starts],
        ['While one runs', POLICIES[row.policy] ?? row.policy],
        ['Project', <ProjectName name={row.project} />],
        ['Created', <Age time={row.created} />],
      ]}
    />
  );
}

const TABS: [string, string][] = [
  ['runs', 'Runs'],
  ['why', 'Why'],
  ['events', 'Events'],
  ['yaml', 'YAML'],
];

export function CronPage() {
  const ref = { namespace: param('namespace'), name: param('name'), kind: param('kind') };
  const view = useView<CronData>('cron', ref);
  const crumbs = [
    { text: 'Crons', href: '/crons' },
    { text: ref.namespace, href: `/crons?${new URLSearchParams({ namespace: ref.namespace })}` },
  ];
  const { data } = view;
  if (!data) {
    const state = isNotFound(view.error) ? { data: null } : view;
    return (
      <Missing
        name={ref.name}
        text={`There is no ${ref.kind} ${ref.namespace}/${ref.name}`}
        crumbs={crumbs}
        state={state}
      >
        It may have been deleted, or you have no right to see it. <a href="/crons">See all crons</a>
      </Missing>
    );
  }
  const row = data.summary;
  const badge = (
    <>
      <Status word={row.state} reason={row.reason} />
      <span class="muted">{row.kind}</span>
    </>
  );
  const tab = chosenTab(TABS);
  return (
    <>
      <Head title={row.name} crumbs={crumbs} badge={badge}>
        <Actions row={row} />
      </Head>
      {row.reason && (
        <Notice tone="wait">
          {row.state === 'Active' ? row.reason.replace(/^the/, 'The') : row.reason}.{' '}
          <a href={hrefOf.cron(row, 'why')}>Why</a>
        </Notice>
      )}
      <Card>
        <CronFacts row={row} />
      </Card>
      <Tabs tabs={TABS} />
      <TabPanel tabs={TABS}>
        {tab === 'runs' && <Runs data={data} />}
        {tab === 'why' && <Why row={row} />}
        {tab === 'events' && <Events data={data} />}
        {tab === 'yaml' && <Manifest of={row} what={row.kind} />}
      </TabPanel>
    </>
  );
}
