// The page of one job: what it does and why, its workers, logs, events and manifest.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { errorText, isNotFound, kube } from '../lib/api.ts';
import { now } from '../lib/clock.ts';
import {
  addressTexts,
  dateTime,
  heldTimeText,
  lostWorkText,
  number,
  preemptionsText,
  runOf,
  span,
  waitOf,
  withClocks,
  withoutCount,
} from '../lib/format.ts';
import { useView, type ViewState } from '../lib/live.ts';
import { go, hrefOf, param } from '../lib/router.ts';
import { asNew } from '../lib/job_form.ts';
import { isOver } from '../lib/job_order.ts';
import type { Hang, JobData, JobMember, KubeObject, QueuePlace, Rows, WhyData, WorkloadRow } from '../lib/types.ts';
import { toYaml } from '../lib/yaml.ts';
import {
  Age,
  Button,
  Card,
  Empty,
  Facts,
  Head,
  JobStatus,
  Missing,
  Notice,
  ProjectName,
  Status,
  TabPanel,
  Tabs,
  Waiting,
  chosenTab,
  copy,
  toast,
} from '../parts/basic.tsx';
import { open } from '../parts/dialog.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { HangCard } from '../parts/hang.tsx';
import {
  deleteJobs,
  isDeployment,
  isSuspended,
  mayAll,
  pathOf,
  resizeJob,
  resumeJobs,
  suspendJobs,
} from '../parts/job_actions.tsx';
import { LogView } from '../parts/log_view.tsx';
import { Manifest } from '../parts/manifest.tsx';
import { ProgressLine } from '../parts/progress.tsx';
import { SubmitForm } from '../parts/submit_form.tsx';
import { TensorboardButton } from '../parts/tensorboard.tsx';
import { Throughput } from '../parts/throughput.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { WhyCard } from '../parts/why.tsx';
import { EVENT_COLUMNS, withKeys } from './events.tsx';

function isElastic({ members }: WorkloadRow): boolean {
  return members.min !== null && members.min !== undefined && members.min !== members.max;
}

function Actions({ row, data }: { row: WorkloadRow; data?: JobData }) {
  const change = mayAll('patch', [row]);
  const drop = mayAll('delete', [row]);
  const create = mayAll('create', [row]);
  const says = data?.actions;
  const over = isOver(row.status);
  const elastic = isElastic(row);
  const server = isDeployment(row);
  const copy = () => {
    kube.get<KubeObject>(pathOf(row)).then(
      (object) => open((done) => <SubmitForm done={done} manifest={toYaml(asNew(object, `${row.name}-copy`))} />),
      (error: unknown) => toast(errorText(error), true),
    );
  };
  return (
    <>
      {change && (says?.suspend ?? (!server && !over && !isSuspended(row))) && (
        <Button icon="pause" onClick={() => suspendJobs([row])}>
          Suspend
        </Button>
      )}
      {change && (says?.resume ?? (!server && isSuspended(row))) && (
        <Button icon="play" onClick={() => resumeJobs([row])}>
          Resume
        </Button>
      )}
      {change && (says?.scale ?? (!over && elastic)) && <Button onClick={() => resizeJob(row)}>Resize</Button>}
      {!server && <TensorboardButton row={row} />}
      {create && !server && <Button onClick={copy}>Copy &amp; edit</Button>}
      {drop && (says?.delete ?? true) && (
        <Button icon="trash" danger onClick={() => deleteJobs([row], () => go('/workloads'))}>
          Delete
        </Button>
      )}
    </>
  );
}

const DONE: Record<string, string> = {
  Succeeded: 'Nothing: the workload has done its work.',
  Running: 'Nothing: the workload runs.',
};

function NextStep({ why, status }: { why: WhyData; status: string }) {
  const done = why.waits ? undefined : DONE[status];
  if (!why.next && !done) return null;
  return <Card title="What to do next">{why.next ? <p>{why.next}.</p> : <p class="muted">{done}</p>}</Card>;
}

// What swell why says of it, and nothing where that says nothing.
function Starts({ changes, start, runs }: { changes: string[]; start?: string; runs: boolean }) {
  if (changes.length === 0 && !start) return null;
  const what = runs ? 'What would let it grow' : 'What would start it';
  return (
    <Card title={changes.length > 0 ? what : 'When it starts'}>
      {start && <p style={{ whiteSpace: 'pre-line' }}>{withClocks(start)}</p>}
      {changes.length > 1 && <p class="muted">Any one of these would do:</p>}
      <ul class="stack" style={{ gap: '8px' }}>
        {changes.map((change) => (
          <li key={change}>
            <strong>{change}</strong>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Displaced({ jobs }: { jobs: NonNullable<WhyData['displaces']> }) {
  if (jobs.length === 0) return null;
  const textOf = (one: (typeof jobs)[number]) => {
    if (typeof one === 'string') return one;
    return `${one.namespace}/${one.name}${one.members ? `, ${one.members} members` : ''}`;
  };
  return (
    <Card title="It would displace">
      <ul>
        {jobs.map((one, index) => (
          <li key={index}>{textOf(one)}</li>
        ))}
      </ul>
    </Card>
  );
}

// `told`: what the page says of the workload above the tabs.
function Why({ row, hang, told }: { row: WorkloadRow; hang?: Hang | null; told?: string }) {
  const view = useView<WhyData>('why', { namespace: row.namespace, name: row.name, kind: row.kind });
  const why = view.data;
  if (!why) {
    return (
      <Card title="Why">
        <Waiting state={view} />
      </Card>
    );
  }
  return (
    <div class="stack">
      <WhyCard why={why} told={told} />
      {hang && !hang.now && <HangCard hang={hang} />}
      <div class="columns">
        <NextStep why={why} status={row.status} />
        <Starts changes={why.wouldStartWith ?? []} start={why.start} runs={row.members.running > 0} />
        <Displaced jobs={why.displaces ?? []} />
      </div>
    </div>
  );
}

const WARNINGS: Record<string, string> = {
  Straggler: 'A rank is slow',
  CheckpointFailed: 'The last save failed',
  WorldMismatch: 'Ranks train apart',
  SuspensionWaits: 'The suspension waits',
};

// The pages have no terminal. They offer the command that opens one.
const shellOf = (namespace: string, pod: string) => `swell exec -it -n ${namespace} ${pod} -- sh`;

const PLACE_COLUMNS: Column<JobMember>[] = [
  { key: 'pod', title: 'Pod', value: (row) => row.pod, width: 190, grow: 1.4 },
  {
    key: 'status',
    title: 'Status',
    value: (row) => row.status,
    cell: (row) => (
      <>
        <Status word={row.status} reason={row.reason ?? row.message} />
        {row.straggler && (
          <>
            {' '}
            <Status word="slow" reason="Much slower than the other ranks" />
          </>
        )}
      </>
    ),
    width: 150,
    grow: 0.5,
    filter: true,
  },
  {
    key: 'node',
    title: 'Node',
    value: (row) => row.node,
    cell: (row) =>
      row.node ? (
        <a class="cut" href={hrefOf.node(row.node)}>
          {row.node}
        </a>
      ) : (
        <span class="muted">–</span>
      ),
    width: 130,
    filter: true,
  },
  { key: 'gpus', title: 'GPU index', value: (row) => row.gpus?.join(', '), width: 104, grow: 0.5, sparse: true },
  { key: 'role', title: 'Role', value: (row) => row.role, width: 90, grow: 0.4, filter: true, spare: 3 },
  { key: 'index', title: 'Index', value: (row) => row.index, width: 70, grow: 0.2, num: true, spare: 6 },
];

const STATE_COLUMNS: Column<JobMember>[] = [
  {
    key: 'restarts',
    title: 'Restarts',
    value: (row) => row.restarts ?? 0,
    width: 98,
    grow: 0.2,
    num: true,
    spare: 2,
  },
  { key: 'attempt', title: 'Attempt', value: (row) => row.attempt, width: 92, grow: 0.2, num: true, spare: 7 },
  {
    key: 'cpu',
    title: 'CPU used',
    value: (row) => row.cpu,
    cell: (row) => number(row.cpu),
    width: 104,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 9,
  },
  {
    key: 'memory',
    title: 'Memory used',
    value: (row) => row.memory,
    cell: (row) => (row.memory ? `${number(row.memory / 2 ** 30)} GiB` : '–'),
    width: 134,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 8,
  },
  {
    key: 'started',
    title: 'Started',
    value: (row) => row.started,
    cell: (row) => <Age time={row.started} />,
    width: 110,
    grow: 0.4,
    spare: 4,
  },
  {
    key: 'exit',
    title: 'Exit code',
    value: (row) => row.exitCode,
    width: 84,
    grow: 0.2,
    num: true,
    sparse: true,
    spare: 5,
  },
  {
    key: 'message',
    title: 'Message',
    value: (row) => row.message ?? row.reason,
    cell: (row) => (
      <span class="cut two" title={row.message ?? row.reason ?? undefined}>
        {row.message ?? row.reason ?? '–'}
      </span>
    ),
    width: 180,
    grow: 1.2,
    sparse: true,
  },
];

function Shell({ namespace, member }: { namespace: string; member: JobMember }) {
  if (member.status !== 'Running') return <span class="muted">–</span>;
  const command = shellOf(namespace, member.pod);
  return (
    <Button
      plain
      label={`Copy command for a shell in ${member.pod}: ${command}`}
      onClick={() => copy(command, `Copied: ${command}`, command)}
    >
      Copy command
    </Button>
  );
}

function shellColumn(namespace: string): Column<JobMember> {
  return {
    key: 'shell',
    title: 'Shell',
    value: () => '',
    cell: (row) => <Shell namespace={namespace} member={row} />,
    width: 156,
    grow: 0.2,
    spare: 1,
  };
}

function Workers({ data }: { data: JobData }) {
  const { namespace, name } = data.summary;
  const exec = may('create', '', 'pods', namespace, 'exec');
  // A new list of columns would draw every row again with each update.
  const columns = useMemo(
    () => [...PLACE_COLUMNS, ...(exec ? [shellColumn(namespace)] : []), ...STATE_COLUMNS],
    [exec, namespace],
  );
  return (
    <Grid
      name={`workers-${name}`}
      label="Workers"
      rows={data.members}
      rowKey={(row) => `${row.pod} ${row.attempt ?? ''}`}
      height="560px"
      what={['worker', 'workers']}
      empty={
        <Empty title="The workload has no pods now">While it waits, is suspended or is over, it holds no GPUs.</Empty>
      }
      columns={columns}
    />
  );
}

function workersText(row: WorkloadRow): string {
  const { members } = row;
  const range = isElastic(row) ? `, from ${members.min} to ${members.max}` : '';
  return `${members.running} of ${members.requested}${range}`;
}

// "3rd of 7 in robotics" is told in full by swell why.
function queueText({ place, of, project }: QueuePlace): string {
  const where = project ? ` in ${project}` : '';
  if (of === 1) return `nothing else waits${where}`;
  return place === null ? `one of ${of}${where}` : `${place} of ${of}${where}`;
}

function priorityText(row: WorkloadRow): string {
  const priority = row.priority ?? 'default';
  if (row.preemptible === false) return `${priority}, not preemptible`;
  return row.preemptible ? `${priority}, preemptible` : String(priority);
}

const OF_JOBS = new Set(['Waited', 'Throughput', 'Preemptions', 'GPU time', 'Lost work']);
const OF_RUNS = new Set(['Duration', 'Throughput', 'Preemptions', 'GPU time', 'Lost work']);

// Without those that say nothing of a server, or of a workload that has not run yet.
function factsOf(row: WorkloadRow, facts: [string, ComponentChildren][]): [string, ComponentChildren][] {
  const ran = Boolean(row.started) || row.members.running > 0 || isOver(row.status) || Boolean(row.preemptions);
  const own = isDeployment(row) ? facts.filter(([term]) => !OF_JOBS.has(term)) : facts;
  return ran ? own : own.filter(([term]) => !OF_RUNS.has(term));
}

function Addresses({ of }: { of: string[] }) {
  return (
    <>
      {of.map((text) => (
        <div key={text}>{text}</div>
      ))}
    </>
  );
}

function Summary({ row, data }: { row: WorkloadRow; data?: JobData }) {
  const created = (
    <>
      <Age time={row.created} />
      {row.createdBy ? ` by ${row.createdBy}` : ''}
    </>
  );
  const to = (tab: string, text: string) => <a href={hrefOf.job(row, tab)}>{text}</a>;
  const addresses = addressTexts(data?.addresses ?? []);
  return (
    <Card>
      {data?.sentence && (
        <p class="sentence" style={{ marginBottom: '12px' }}>
          {withClocks(withoutCount(data.sentence))}
        </p>
      )}
      <ProgressLine row={row} />
      <Facts
        facts={factsOf(row, [
          ['Project', <ProjectName name={row.project} />],
          ['Workers', to('workers', workersText(row))],
          ...(addresses.length > 0 ? [['Address', <Addresses of={addresses} />] as [string, ComponentChildren]] : []),
          ['GPUs held', to('workers', `${number(row.gpus.held)} of ${number(row.gpus.requested)}`)],
          ['Priority', priorityText(row)],
          [row.waitsSince ? 'Has waited' : 'Waited', span(waitOf(row, now.value))],
          ...(row.queue ? [['Queue', to('why', queueText(row.queue))] as [string, ComponentChildren]] : []),
          ['Duration', span(runOf(row, now.value))],
          [
            'Throughput',
            row.throughput ? to('throughput', `${number(row.throughput)} ${row.throughputUnit ?? ''}/s`) : '–',
          ],
          ['Preemptions', to('timeline', preemptionsText(row.preemptions, row.shrinks))],
          ['GPU time', data ? heldTimeText(data, row.gpus.held, now.value) : '–'],
          ['Lost work', data ? to('throughput', lostWorkText(data)) : '–'],
          ['Created', created],
          ...(row.completed ? [['Completed', dateTime(row.completed)] as [string, string]] : []),
        ])}
      />
    </Card>
  );
}

// What keeps the workload from running, where its sentence does not say so already.
function reasonToShow(row: WorkloadRow, data?: JobData): string | undefined {
  const runs = row.status === 'Running' || row.status === 'Hung';
  if (!row.reason || runs || isOver(row.status) || data?.sentence?.includes(row.reason)) return undefined;
  return row.reason;
}

function Events({ data }: { data: JobData }) {
  return (
    <Grid
      name={`events-${data.summary.name}`}
      label="Events"
      columns={EVENT_COLUMNS}
      rows={withKeys(data.events)}
      rowKey={(one) => one.key}
      sort="-time"
      height="560px"
      what={['event', 'events']}
      empty={<Empty title="The workload has no events">They are kept for an hour.</Empty>}
    />
  );
}

const TABS: [string, string][] = [
  ['timeline', 'Timeline'],
  ['throughput', 'Throughput'],
  ['why', 'Why'],
  ['workers', 'Workers'],
  ['logs', 'Logs'],
  ['events', 'Events'],
  ['yaml', 'YAML'],
];
// Servers train nothing.
const tabsOf = (row: WorkloadRow) => (isDeployment(row) ? TABS.filter(([tab]) => tab !== 'throughput') : TABS);

function TabContent({ row, view }: { row: WorkloadRow; view: ViewState<JobData> }) {
  const tab = chosenTab(tabsOf(row));
  const data = view.data;
  // These two are read apart from the job.
  if (tab === 'why') return <Why row={row} hang={data?.hang} told={data?.sentence} />;
  if (tab === 'yaml') return <Manifest of={row} what="Workload" />;
  if (!data) {
    return (
      <Card>
        <Waiting state={view} />
      </Card>
    );
  }
  switch (tab) {
    case 'timeline':
      return (
        <Card title="States over time">
          <Timeline job={data} />
        </Card>
      );
    case 'throughput':
      return <Throughput job={data} />;
    case 'workers':
      return <Workers data={data} />;
    case 'logs':
      return <LogView namespace={row.namespace} name={row.name} members={data.members} logs={data.logs ?? []} />;
    case 'events':
      return <Events data={data} />;
    default:
      return null;
  }
}

export function JobPage() {
  const ref = { namespace: param('namespace'), name: param('name'), kind: param('kind') };
  const view = useView<JobData>('job', ref);
  const list = useView<Rows<WorkloadRow>>('workloads');
  const data = view.data;
  const row =
    data?.summary ??
    list.data?.rows.find(
      (one) => one.namespace === ref.namespace && one.name === ref.name && (!ref.kind || one.kind === ref.kind),
    );
  const crumbs = [
    { text: 'Workloads', href: '/workloads' },
    { text: ref.namespace, href: hrefOf.workloads({ namespace: ref.namespace }) },
  ];
  if (!row) {
    // The list may be older than the workload.
    const state = isNotFound(view.error) ? list : view;
    return (
      <Missing name={ref.name} text={`There is no workload ${ref.namespace}/${ref.name}`} crumbs={crumbs} state={state}>
        It may have been deleted, or you have no right to see it. <a href="/workloads">See all workloads</a>
      </Missing>
    );
  }
  const badge = (
    <>
      <JobStatus row={row} />
      <span class="muted">{row.kind}</span>
    </>
  );
  const reason = reasonToShow(row, data);
  return (
    <>
      <Head title={row.name} crumbs={crumbs} badge={badge}>
        <Actions row={row} data={data} />
      </Head>
      {reason && (
        <Notice tone="wait">
          {withClocks(reason)} <a href={hrefOf.job(row, 'why')}>Why</a>
        </Notice>
      )}
      <Summary row={row} data={data} />
      {data?.warnings?.map((one) => (
        <Notice key={one.type} tone="wait">
          <strong>{WARNINGS[one.type] ?? one.type}.</strong> {withClocks(one.message)}{' '}
          {one.since && <span class="muted">Since {dateTime(one.since)}.</span>}
        </Notice>
      ))}
      {data?.hang?.now && <HangCard hang={data.hang} />}
      <Tabs tabs={tabsOf(row)} />
      <TabPanel tabs={tabsOf(row)}>
        <TabContent row={row} view={view} />
      </TabPanel>
    </>
  );
}
