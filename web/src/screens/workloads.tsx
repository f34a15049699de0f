// All workloads: filters, order, columns, CSV, and what can be done to many at once.
import { may, ownProjects } from '../lib/access.ts';
import { now } from '../lib/clock.ts';
import { dateTime, number, preemptionsText, reasonText, runOf, span, waitOf } from '../lib/format.ts';
import { byState, isOver } from '../lib/job_order.ts';
import { useView } from '../lib/live.ts';
import { hrefOf } from '../lib/router.ts';
import type { ProjectRow, Rows, WorkloadRow } from '../lib/types.ts';
import { Age, Button, Empty, Head, JobStatus, NO_POOL, ProjectName } from '../parts/basic.tsx';
import { open } from '../parts/dialog.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { deleteJobs, isDeployment, isSuspended, mayAll, resumeJobs, suspendJobs } from '../parts/job_actions.tsx';
import { ProgressCell, shareOf } from '../parts/progress.tsx';
import { SubmitForm } from '../parts/submit_form.tsx';

function sizeText(row: WorkloadRow): string {
  const { running, requested, min, max } = row.members;
  const elastic = min !== null && min !== undefined && max !== null && max !== undefined && min !== max;
  return `${running}/${requested}${elastic ? ` (${min}–${max})` : ''}`;
}

function Grows({ row, of }: { row: WorkloadRow; of: (row: WorkloadRow, now: number) => number | null | undefined }) {
  return <>{span(of(row, now.value))}</>;
}

const whyTitle = ({ place, reason }: WorkloadRow) =>
  [place && `It has place ${place} in the queue of its project.`, reason].filter(Boolean).join('\n') || undefined;

// Whole minutes, and from ten hours on whole hours: the word of the state needs the room.
function roundWait(seconds: number): number {
  if (seconds < 60) return seconds;
  const unit = seconds < 36_000 ? 60 : 3600;
  return Math.floor(seconds / unit) * unit;
}

// How long a pending workload has waited. Not for one that cannot start: its cause needs the room.
function WaitsFor({ row }: { row: WorkloadRow }) {
  const fails = row.statusText !== undefined && row.statusText !== row.status;
  const wait = row.waitsSince && !fails ? waitOf(row, now.value) : null;
  if (wait === null) return null;
  return (
    <span class="cut muted small" title={`It has waited for ${span(wait)}.`}>
      {span(roundWait(wait))}
    </span>
  );
}

export const WORKLOAD_COLUMNS: Column<WorkloadRow>[] = [
  { key: 'name', title: 'Workload', value: (row) => row.name, width: 160, roomy: 180, grow: 1.6 },
  {
    key: 'status',
    title: 'Status',
    value: (row) => row.statusText ?? row.status,
    state: (row) => row.status,
    cell: (row) => (
      <>
        <JobStatus row={row} />
        <WaitsFor row={row} />
      </>
    ),
    width: 176,
    grow: 0.8,
    filter: true,
  },
  {
    key: 'reason',
    title: 'Reason',
    value: (row) => row.reason,
    cell: (row) => (
      <span class="cut two muted" title={whyTitle(row)}>
        {row.place && <strong>Place {row.place}. </strong>}
        {reasonText(row) || (row.place ? '' : '–')}
      </span>
    ),
    width: 170,
    roomy: 250,
    grow: 2.4,
  },
  {
    key: 'project',
    title: 'Project',
    value: (row) => row.project,
    cell: (row) => <ProjectName name={row.project} />,
    width: 110,
    grow: 0.8,
    filter: true,
  },
  { key: 'namespace', title: 'Namespace', value: (row) => row.namespace, width: 130, hidden: true, filter: true },
  { key: 'pool', title: 'Node pool', value: (row) => row.pool ?? NO_POOL, width: 130, hidden: true, filter: true },
  { key: 'priority', title: 'Priority', value: (row) => row.priority, width: 130, grow: 0.4, filter: true, spare: 4 },
  {
    key: 'preemptible',
    title: 'Preemptible',
    value: (row) => row.preemptible,
    width: 104,
    grow: 0.3,
    filter: true,
    hidden: true,
  },
  {
    key: 'workers',
    title: 'Workers',
    value: (row) => row.members.running,
    cell: (row) => (
      <span class="nowrap" title="running/requested (minimum–maximum)">
        {sizeText(row)}
      </span>
    ),
    width: 100,
    grow: 0.4,
    num: true,
    spare: 1,
  },
  {
    key: 'gpus',
    title: 'GPUs',
    value: (row) => row.gpus.held,
    cell: (row) => (
      <span title="held/requested">
        {number(row.gpus.held)}/{number(row.gpus.requested)}
      </span>
    ),
    width: 76,
    grow: 0.3,
    num: true,
  },
  {
    key: 'progress',
    title: 'Progress',
    value: (row) => shareOf(row.progress),
    cell: (row) => <ProgressCell row={row} />,
    width: 120,
    grow: 0.6,
    sparse: true,
    spare: 2,
  },
  {
    key: 'eta',
    title: 'ETA',
    value: (row) => row.progress?.etaSeconds,
    cell: (row) => span(row.progress?.etaSeconds),
    width: 96,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 10,
  },
  {
    key: 'place',
    title: 'Queue',
    value: (row) => row.place,
    cell: (row) => row.place ?? '–',
    width: 84,
    grow: 0.3,
    num: true,
    hidden: true,
  },
  {
    key: 'wait',
    title: 'Wait',
    value: (row) => waitOf(row),
    cell: (row) => <Grows row={row} of={waitOf} />,
    width: 96,
    grow: 0.3,
    num: true,
    hidden: true,
  },
  {
    key: 'run',
    title: 'Duration',
    value: (row) => runOf(row),
    cell: (row) => <Grows row={row} of={runOf} />,
    width: 104,
    grow: 0.3,
    num: true,
    spare: 3,
  },
  { key: 'kind', title: 'Kind', value: (row) => row.kind, width: 120, grow: 0.5, filter: true, spare: 7 },
  { key: 'class', title: 'Class', value: (row) => row.workload, width: 112, grow: 0.5, filter: true, hidden: true },
  {
    key: 'preemptions',
    title: 'Preemptions',
    value: (row) => (row.preemptions ?? 0) + (row.shrinks ?? 0),
    cell: (row) => preemptionsText(row.preemptions, row.shrinks),
    width: 108,
    grow: 0.3,
    num: true,
    spare: 9,
  },
  { key: 'by', title: 'Created by', value: (row) => row.createdBy, width: 120, grow: 0.5, filter: true, spare: 8 },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 110,
    grow: 0.3,
    spare: 6,
  },
  {
    key: 'completed',
    title: 'Completed',
    value: (row) => row.completed,
    cell: (row) => (
      <span class="cut" title={dateTime(row.completed)}>
        {row.completed ? <Age time={row.completed} /> : '–'}
      </span>
    ),
    width: 110,
    grow: 0.3,
    hidden: true,
  },
];

function Bulk({ chosen, clear }: { chosen: WorkloadRow[]; clear: () => void }) {
  const jobs = chosen.filter((row) => !isDeployment(row));
  const running = jobs.filter((row) => !isOver(row.status) && !isSuspended(row));
  const suspended = jobs.filter(isSuspended);
  const change = mayAll('patch', chosen);
  const drop = mayAll('delete', chosen);
  if (!change && !drop) return <span class="muted">You may read these workloads, not change them.</span>;
  return (
    <>
      {change && running.length > 0 && (
        <Button icon="pause" onClick={() => suspendJobs(running, clear)}>
          Suspend {running.length}
        </Button>
      )}
      {change && suspended.length > 0 && (
        <Button icon="play" onClick={() => resumeJobs(suspended, clear)}>
          Resume {suspended.length}
        </Button>
      )}
      {drop && (
        <Button icon="trash" danger onClick={() => deleteJobs(chosen, clear)}>
          Delete {chosen.length}
        </Button>
      )}
    </>
  );
}

export function Workloads() {
  const view = useView<Rows<WorkloadRow>>('workloads');
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const some = view.data?.rows[0];
  // A researcher may create in the namespaces of their projects only; a namespace may be in no project.
  const createSome =
    may('create', 'swell.dev', 'trainingjobs') ||
    ownProjects(projects).length > 0 ||
    (some ? may('create', 'swell.dev', 'trainingjobs', some.namespace) : false);
  const make = () => open((done) => <SubmitForm done={done} />);
  return (
    <>
      <Head title="Workloads">
        {createSome && (
          <Button primary icon="plus" onClick={make}>
            New workload
          </Button>
        )}
      </Head>
      <Grid
        name="workloads"
        label="Workloads"
        error={view.error}
        columns={WORKLOAD_COLUMNS}
        rows={view.data?.rows}
        rowKey={(row) => row.uid}
        href={(row) => hrefOf.job(row)}
        address
        order={byState}
        what={['workload', 'workloads']}
        partial={view.data?.partial}
        bulk={(chosen, clear) => <Bulk chosen={chosen} clear={clear} />}
        empty={
          <Empty title="There are no workloads">
            <p>
              Submit one here, or with <code>swell submit</code>, <code>runai submit</code> or <code>arena submit</code>
              .
            </p>
            {createSome && (
              <Button primary icon="plus" onClick={make}>
                New workload
              </Button>
            )}
          </Empty>
        }
      />
    </>
  );
}
