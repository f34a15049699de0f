// Projects as a tree with their quotas, and the page of one project.
import { kube, objectPath } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { now } from '../lib/clock.ts';
import { bound, bytes, number, percent, plural, ratio, secondsSince, span } from '../lib/format.ts';
import { useHistory } from '../lib/history.ts';
import { byState } from '../lib/job_order.ts';
import { useView } from '../lib/live.ts';
import { PENDING, RUNNING, go, hrefOf, param } from '../lib/router.ts';
import { treeOrder, type TreeRow } from '../lib/tree.ts';
import type { ProjectRow, Rows, Share, WorkloadRow } from '../lib/types.ts';
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
  QuotaBar,
  QuotaCell,
  Status,
  TabPanel,
  Tabs,
  chosenTab,
  toast,
} from '../parts/basic.tsx';
import { confirm, open } from '../parts/dialog.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { ListTable, num } from '../parts/list_table.tsx';
import { ProjectForm } from '../parts/project_form.tsx';
import { TimeRange, chosenSeconds } from '../parts/time_range.tsx';
import { QuotaChart } from '../parts/usage_charts.tsx';
import { WORKLOAD_COLUMNS } from './workloads.tsx';

const hasQuota = (share: Share): share is Share & { quota: number } =>
  share.quota !== null && share.quota !== undefined && share.quota >= 0;
const isOver = (share: Share) => hasQuota(share) && share.held > share.quota;

function shareText(share: Share | undefined, show: (value: number) => string = number): string {
  if (!share) return '–';
  return `${show(share.held)} / ${hasQuota(share) ? show(share.quota) : '∞'}`;
}

interface CountProps {
  project: string;
  status: string;
  count: number | null;
  what?: string;
}

// A number of workloads, which leads to them. It is unknown where they are not the user's to see.
function Count({ project, status, count, what }: CountProps) {
  const text = [count ?? '–', what].filter((part) => part !== undefined).join(' ');
  if (count === null) return <span class="muted">{text}</span>;
  return <a href={hrefOf.workloads({ project, status })}>{text}</a>;
}
function LongestWait({ row }: { row: ProjectRow }) {
  if (!row.longestPendingSince) return <span class="muted">–</span>;
  return (
    <a href={hrefOf.workloads({ project: row.name, status: PENDING, sort: '-wait' })}>
      {span(secondsSince(row.longestPendingSince, now.value))}
    </a>
  );
}

const COLUMNS: Column<TreeRow>[] = [
  {
    key: 'name',
    title: 'Project',
    value: (row) => row.name,
    cell: (row) => (
      <span style={{ display: 'flex', paddingLeft: `${row.depth * 18}px` }}>
        <ProjectName name={row.name} plain />
      </span>
    ),
    width: 160,
    roomy: 240,
    grow: 1.3,
  },
  {
    key: 'gpu',
    title: 'GPUs held / quota',
    value: (row) => row.resources.gpu.held,
    cell: (row) => <QuotaCell share={row.resources.gpu} name={row.name} />,
    width: 190,
    grow: 2,
  },
  {
    key: 'status',
    title: 'Status',
    value: (row) => row.status,
    cell: (row) => <Status word={row.status} reason={row.message} />,
    width: 100,
    grow: 0.5,
    filter: true,
  },
  {
    key: 'ratio',
    title: 'Ratio',
    value: (row) =>
      row.resources.gpu.quota ? Math.round((100 * row.resources.gpu.held) / row.resources.gpu.quota) : null,
    cell: (row) => (
      <span style={{ fontWeight: isOver(row.resources.gpu) ? 650 : undefined }}>
        {percent(row.resources.gpu.held, row.resources.gpu.quota)}
      </span>
    ),
    width: 76,
    grow: 0.3,
    num: true,
    spare: 6,
  },
  {
    key: 'requested',
    title: 'Requested',
    value: (row) => row.resources.gpu.requested,
    cell: (row) => number(row.resources.gpu.requested),
    width: 106,
    grow: 0.3,
    num: true,
    spare: 3,
  },
  {
    key: 'fair',
    title: 'Fair share',
    value: (row) => row.resources.gpu.fairShare,
    cell: (row) => number(row.resources.gpu.fairShare),
    width: 100,
    grow: 0.3,
    num: true,
    spare: 2,
  },
  {
    key: 'limit',
    title: 'Limit',
    value: (row) => row.resources.gpu.limit,
    cell: (row) => bound(row.resources.gpu.limit),
    width: 84,
    grow: 0.3,
    num: true,
    spare: 8,
  },
  {
    key: 'weight',
    title: 'Weight',
    value: (row) => row.resources.gpu.weight,
    cell: (row) => number(row.resources.gpu.weight),
    width: 84,
    grow: 0.3,
    num: true,
    hidden: true,
  },
  { key: 'priority', title: 'Priority', value: (row) => row.priority, width: 78, grow: 0.3, num: true, hidden: true },
  {
    key: 'running',
    title: 'Running',
    value: (row) => row.running,
    cell: (row) => <Count project={row.name} status={RUNNING} count={row.running} />,
    width: 92,
    grow: 0.3,
    num: true,
  },
  {
    key: 'pending',
    title: 'Pending',
    value: (row) => row.pending,
    cell: (row) => <Count project={row.name} status={PENDING} count={row.pending} />,
    width: 92,
    grow: 0.3,
    num: true,
  },
  {
    key: 'wait',
    title: 'Longest wait',
    value: (row) => secondsSince(row.longestPendingSince),
    cell: (row) => <LongestWait row={row} />,
    width: 126,
    grow: 0.4,
    num: true,
    spare: 5,
  },
  {
    key: 'pools',
    title: 'Node pools',
    value: (row) => row.pools.map((pool) => pool.name).join(', '),
    width: 140,
    grow: 0.8,
    spare: 9,
  },
  {
    key: 'members',
    title: 'Members',
    value: (row) => row.members.length,
    cell: (row) => <a href={hrefOf.project(row.name, 'members')}>{row.members.length}</a>,
    width: 96,
    grow: 0.3,
    num: true,
    spare: 7,
  },
  {
    key: 'cpu',
    title: 'CPU held / quota',
    value: (row) => row.resources.cpu?.held,
    cell: (row) => shareText(row.resources.cpu),
    width: 130,
    grow: 0.5,
    num: true,
    hidden: true,
  },
  {
    key: 'memory',
    title: 'Memory held / quota',
    value: (row) => row.resources.memory?.held,
    cell: (row) => <span class="cut">{shareText(row.resources.memory, bytes)}</span>,
    width: 170,
    grow: 0.5,
    num: true,
    hidden: true,
  },
  { key: 'namespace', title: 'Namespace', value: (row) => row.namespace, width: 130, hidden: true },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 110,
    hidden: true,
  },
];

// For users who may not see to whom projects were given: the members that the project names are the fewest it has.
const PARTIAL_COLUMNS = COLUMNS.map((column) =>
  column.key === 'members'
    ? {
        ...column,
        value: (row: TreeRow) => row.members.length || null,
        cell: (row: TreeRow) => (
          <a href={hrefOf.project(row.name, 'members')}>{row.members.length > 0 ? `≥ ${row.members.length}` : '–'}</a>
        ),
      }
    : column,
);

interface ProjectsData extends Rows<ProjectRow> {
  membersPartial?: boolean;
}

function BarLegend() {
  return (
    <p class="legend">
      <span>
        <span class="swatch" style={{ background: 'var(--p0)' }} />
        within quota
      </span>
      <span>
        <span class="swatch hatch" style={{ color: 'var(--p0)' }} />
        over quota
      </span>
      <span>
        <span style={{ width: '2px', height: '12px', background: 'var(--text)' }} />
        quota
      </span>
      <span>
        <span style={{ border: '4px solid transparent', borderBottom: '5px solid var(--muted)', borderTop: 0 }} />
        fair share
      </span>
    </p>
  );
}

export function Projects() {
  const view = useView<ProjectsData>('projects');
  const create = may('create', 'swell.dev', 'projects');
  const make = () => open((done) => <ProjectForm done={done} />);
  return (
    <>
      <Head title="Projects">
        {create && (
          <Button primary icon="plus" onClick={make}>
            New project
          </Button>
        )}
      </Head>
      <Grid
        name="projects"
        label="Projects"
        error={view.error}
        columns={view.data?.membersPartial ? PARTIAL_COLUMNS : COLUMNS}
        rows={view.data && treeOrder(view.data.rows)}
        rowKey={(row) => row.name}
        href={(row) => hrefOf.project(row.name)}
        address
        what={['project', 'projects']}
        partial={view.data?.partial}
        empty={
          <Empty title="There are no projects">
            <p>
              A project gives a team a quota of GPUs that it can always get back. Make one for each team that shares the
              cluster.
            </p>
            {create && (
              <Button primary icon="plus" onClick={make}>
                New project
              </Button>
            )}
          </Empty>
        }
      />
      {view.data && view.data.rows.length > 0 && <BarLegend />}
    </>
  );
}

function remove(row: ProjectRow): void {
  const jobs = (row.running ?? 0) + (row.pending ?? 0);
  confirm({
    title: `Delete the project ${row.name}?`,
    danger: true,
    action: 'Delete',
    text:
      jobs > 0
        ? `It has ${plural(jobs, 'workload')} that ${jobs === 1 ? 'runs or waits' : 'run or wait'}. ` +
          'The project stays until nothing of that is left.'
        : 'Its quota is free for other projects. Its namespace is kept.',
    run: async () => {
      await kube.remove(objectPath('swell.dev/v1', 'projects', null, row.name));
      toast(`Project ${row.name} is being deleted.`);
      go('/projects');
    },
  });
}

const QUOTA_HEADS = [
  'Node pool',
  { text: 'Use', width: '22%' },
  num('Held / quota'),
  num('Fair share'),
  num('Requested'),
  num('Limit'),
  num('Weight'),
];

function QuotaTab({ row }: { row: ProjectRow }) {
  const byPool = row.pools.length > 0;
  const lines = byPool ? row.pools : [{ name: 'all node pools', gpu: row.resources.gpu }];
  return (
    <Card title="GPUs by node pool">
      <ListTable label="GPUs by node pool" heads={QUOTA_HEADS}>
        {lines.map(({ name, gpu }) => (
          <tr key={name}>
            <td>{byPool ? <a href={hrefOf.pool(name)}>{name}</a> : name}</td>
            <td style={{ verticalAlign: 'middle' }}>
              <span class="meter" style={{ width: '100%' }}>
                <QuotaBar share={gpu} name={row.name} />
              </span>
            </td>
            <td>{ratio(gpu.held, gpu.quota)}</td>
            <td>{number(gpu.fairShare)}</td>
            <td>{number(gpu.requested)}</td>
            <td>{bound(gpu.limit)}</td>
            <td>{number(gpu.weight)}</td>
          </tr>
        ))}
      </ListTable>
      <div style={{ marginTop: '12px' }}>
        <BarLegend />
      </div>
    </Card>
  );
}

function Members({ members }: { members: ProjectRow['members'] }) {
  return (
    <ListTable heads={['Name', 'Kind', 'Role', 'From']}>
      {members.map((one) => (
        <tr key={`${one.source}${one.kind}${one.name}`}>
          <td>{one.name}</td>
          <td>{one.kind}</td>
          <td>{one.role}</td>
          <td class="muted">{one.source === 'User' ? 'the user' : 'the project'}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function MembersTab({ row, edit, partial }: { row: ProjectRow; edit: boolean; partial?: boolean }) {
  const change = () => open((done) => <ProjectForm name={row.name} done={done} />);
  const none = partial
    ? 'The project itself names no members.'
    : 'The project has no members. Administrators can still use it.';
  return (
    <Card title="Members" right={edit && <Button onClick={change}>Change members</Button>}>
      {row.members.length === 0 ? <p class="muted">{none}</p> : <Members members={row.members} />}
      {partial && (
        <p class="muted small" style={{ marginTop: '8px' }}>
          Users may have been given the project when they were made. You have no right to see those.
        </p>
      )}
      {row.members.some((one) => one.source === 'User') && (
        <p class="small" style={{ marginTop: '8px' }}>
          <a href="/users">See the users</a>
        </p>
      )}
    </Card>
  );
}

const quotaLeft = (row: ProjectRow) => Math.max(0, (row.resources.gpu.quota ?? 0) - row.resources.gpu.held);
const heldText = (row: ProjectRow) => `holds ${ratio(row.resources.gpu.held, row.resources.gpu.quota)}`;

function ProjectList({ rows, textOf }: { rows: ProjectRow[]; textOf: (row: ProjectRow) => string }) {
  return (
    <ListTable>
      {rows.map((one) => (
        <tr key={one.name}>
          <td>
            <ProjectName name={one.name} />
          </td>
          <td class="num">{textOf(one)}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function Borrowed({ row, others }: { row: ProjectRow; others: ProjectRow[] }) {
  const gpu = row.resources.gpu;
  const over = row.borrows ?? (isOver(gpu) ? gpu.held - (gpu.quota ?? 0) : 0);
  if (over <= 0) {
    return (
      <Card title="Borrowed">
        <p class="sentence">{row.name} holds nothing over its quota.</p>
      </Card>
    );
  }
  const owners = others.filter((one) => quotaLeft(one) > 0);
  return (
    <Card title="Borrowed">
      <p class="sentence">{`${row.name} holds ${plural(over, 'GPU')} over its quota.`}</p>
      <p class="muted" style={{ margin: '8px 0' }}>
        {owners.length > 0
          ? 'These projects leave a part of their quota idle, and can take it back at any time:'
          : 'No project leaves a part of its quota idle: what is over the quota belongs to nobody.'}
      </p>
      <ProjectList rows={owners} textOf={(one) => `${heldText(one)}, ${plural(quotaLeft(one), 'GPU')} unused`} />
    </Card>
  );
}

function Lent({ row, others }: { row: ProjectRow; others: ProjectRow[] }) {
  const lends = row.lends ?? 0;
  const borrowers = others.filter((one) => isOver(one.resources.gpu));
  return (
    <Card title="Lent">
      <p class="sentence">
        {lends > 0 ? `Others hold ${plural(lends, 'GPU')} of its quota.` : `Nobody holds GPUs of ${row.name}’s quota.`}
      </p>
      {lends > 0 && <ProjectList rows={borrowers} textOf={heldText} />}
    </Card>
  );
}

function BorrowingTab({ row, rows }: { row: ProjectRow; rows: ProjectRow[] }) {
  const parents = new Set(rows.map((one) => one.parent));
  const others = rows.filter((one) => one.name !== row.name && !parents.has(one.name));
  return (
    <div class="columns">
      <Borrowed row={row} others={others} />
      <Lent row={row} others={others} />
    </div>
  );
}

function HistoryTab({ row, rows }: { row: ProjectRow; rows: ProjectRow[] }) {
  const history = useHistory(
    ['project_gpu_held', 'project_gpu_quota', 'project_gpu_fair_share', 'project_gpu_requested'],
    chosenSeconds(),
  );
  return (
    <Card title="Quota and use over time" right={<TimeRange least={900} />}>
      <QuotaChart history={history} projects={rows} project={row.name} height={260} />
    </Card>
  );
}

const OWN_COLUMNS = WORKLOAD_COLUMNS.filter((one) => one.key !== 'project');

function WorkloadsTab({ row }: { row: ProjectRow }) {
  const view = useView<Rows<WorkloadRow>>('workloads');
  const own = view.data?.rows.filter((one) => one.project === row.name);
  return (
    <Grid
      name={`workloads-${row.name}`}
      label={`Workloads of ${row.name}`}
      error={view.error}
      columns={OWN_COLUMNS}
      rows={own}
      rowKey={(one) => one.uid}
      href={hrefOf.job}
      order={byState}
      height="480px"
      what={['workload', 'workloads']}
      partial={view.data?.partial}
      empty={
        <Empty title="The project has no workloads">
          <p>
            <a href={hrefOf.workloads()}>Submit one on the page Workloads</a>
          </p>
        </Empty>
      }
    />
  );
}

function ProjectFacts({ row }: { row: ProjectRow }) {
  const gpu = row.resources.gpu;
  const workloads = (
    <>
      <Count project={row.name} status={RUNNING} count={row.running} what="running" />,{' '}
      <Count project={row.name} status={PENDING} count={row.pending} what="pending" />
    </>
  );
  return (
    <Facts
      facts={[
        ['GPUs held / quota', <strong>{ratio(gpu.held, gpu.quota)}</strong>],
        ['Fair share', number(gpu.fairShare)],
        ['Requested', number(gpu.requested)],
        ['Limit', bound(gpu.limit)],
        ['CPU held / quota', shareText(row.resources.cpu)],
        ['Memory held / quota', shareText(row.resources.memory, bytes)],
        ['Workloads', workloads],
        ['Longest wait', <LongestWait row={row} />],
        ['Namespace', row.namespace || '–'],
        ['Priority', number(row.priority)],
        ['Created', <Age time={row.created} />],
      ]}
    />
  );
}

function ProjectActions({ row, edit, drop }: { row: ProjectRow; edit: boolean; drop: boolean }) {
  return (
    <>
      {edit && (
        <Button icon="edit" onClick={() => open((done) => <ProjectForm name={row.name} done={done} />)}>
          Edit
        </Button>
      )}
      {drop && (
        <Button icon="trash" danger onClick={() => remove(row)}>
          Delete
        </Button>
      )}
    </>
  );
}

const TABS: [string, string][] = [
  ['quotas', 'Quotas'],
  ['workloads', 'Workloads'],
  ['members', 'Members'],
  ['borrowing', 'Borrowing'],
  ['history', 'History'],
];

export function ProjectPage() {
  const name = param('name');
  const view = useView<ProjectsData>('projects');
  const edit = may('update', 'swell.dev', 'projects') === true;
  const drop = may('delete', 'swell.dev', 'projects') === true;
  const row = view.data?.rows.find((one) => one.name === name);
  const crumbs = [
    { text: 'Projects', href: '/projects' },
    ...(row?.parent ? [{ text: row.parent, href: hrefOf.project(row.parent) }] : []),
  ];
  if (!view.data || !row) {
    return (
      <Missing name={name} text={`There is no project ${name}`} crumbs={crumbs} state={view}>
        It may have been deleted, or you have no right to see it. <a href="/projects">See all projects</a>
      </Missing>
    );
  }
  const badge = (
    <>
      <Status word={row.status} reason={row.message} />
      {isOver(row.resources.gpu) && <span class="badge wait plain">over quota</span>}
    </>
  );
  const tab = chosenTab(TABS);
  return (
    <>
      <Head title={name} crumbs={crumbs} badge={badge}>
        <ProjectActions row={row} edit={edit} drop={drop} />
      </Head>
      {row.description && <p class="muted">{row.description}</p>}
      {row.message && row.status !== 'Ready' && <Notice tone="wait">{row.message}</Notice>}
      <Card>
        <ProjectFacts row={row} />
      </Card>
      <Tabs tabs={TABS} />
      <TabPanel tabs={TABS}>
        {tab === 'quotas' && <QuotaTab row={row} />}
        {tab === 'workloads' && <WorkloadsTab row={row} />}
        {tab === 'members' && <MembersTab row={row} edit={edit} partial={view.data.membersPartial} />}
        {tab === 'borrowing' && <BorrowingTab row={row} rows={view.data.rows} />}
        {tab === 'history' && <HistoryTab row={row} rows={view.data.rows} />}
      </TabPanel>
    </>
  );
}
