// What happened in the cluster, newest first.
import { may } from '../lib/access.ts';
import { clock, dateTime } from '../lib/format.ts';
import { useView } from '../lib/live.ts';
import type { EventRow, Rows } from '../lib/types.ts';
import { AuditLog } from '../parts/audit_log.tsx';
import { Empty, Head, TabPanel, Tabs, chosenTab } from '../parts/basic.tsx';
import { ObjectLink, ReasonBadge } from '../parts/decisions.tsx';
import { Grid, type Column } from '../parts/grid.tsx';

const LIMIT = 2000;

function objectOf(row: EventRow) {
  return typeof row.object === 'string' ? { kind: '', namespace: '', name: row.object } : row.object;
}
export const EVENT_COLUMNS: Column<EventRow>[] = [
  {
    key: 'time',
    title: 'Time',
    value: (row) => row.time,
    cell: (row) => (
      <time dateTime={row.time} title={dateTime(row.time)}>
        {clock(row.time)}
      </time>
    ),
    width: 90,
    grow: 0.3,
  },
  {
    key: 'reason',
    title: 'Reason',
    value: (row) => row.reason,
    cell: (row) => <ReasonBadge reason={row.reason} type={row.type} />,
    width: 190,
    grow: 0.6,
    filter: true,
  },
  { key: 'kind', title: 'Kind', value: (row) => objectOf(row).kind, width: 110, grow: 0.4, filter: true, spare: 1 },
  {
    key: 'namespace',
    title: 'Namespace',
    value: (row) => objectOf(row).namespace,
    width: 110,
    grow: 0.5,
    filter: true,
    hidden: true,
  },
  {
    key: 'object',
    title: 'Object',
    value: (row) => `${objectOf(row).namespace ? `${objectOf(row).namespace}/` : ''}${objectOf(row).name}`,
    cell: (row) => <ObjectLink object={row.object} />,
    width: 210,
    grow: 1,
  },
  {
    key: 'message',
    title: 'Message',
    value: (row) => row.message,
    cell: (row) => (
      <span class="cut two" title={row.message}>
        {row.message}
      </span>
    ),
    width: 250,
    grow: 3,
  },
  { key: 'count', title: 'Count', value: (row) => row.count ?? 1, width: 70, grow: 0.2, num: true, spare: 2 },
  { key: 'type', title: 'Type', value: (row) => row.type, width: 90, grow: 0.3, filter: true, hidden: true },
];
export function eventKey(row: EventRow): string {
  const object = objectOf(row);
  return [row.time, row.reason, object.kind, object.namespace, object.name, row.message].join('|');
}
// Two events may say the same thing at the same time.
export function withKeys(rows: EventRow[] | undefined): (EventRow & { key: string })[] | undefined {
  const seen = new Map<string, number>();
  return rows?.map((row) => {
    const key = eventKey(row);
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    return { ...row, key: `${key}|${count}` };
  });
}

function Happened() {
  const view = useView<Rows<EventRow>>('events', { limit: LIMIT });
  return (
    <>
      <Grid
        name="events"
        label="Events"
        error={view.error}
        columns={EVENT_COLUMNS}
        rows={withKeys(view.data?.rows)}
        rowKey={(row) => row.key}
        address
        sort="-time"
        what={['event', 'events']}
        partial={view.data?.partial}
        total={view.data?.total}
        empty={
          <Empty title="Nothing has happened yet">
            Events appear here when workloads are scheduled, preempted or ended.
          </Empty>
        }
      />
    </>
  );
}

const TABS: [string, string][] = [
  ['events', 'Events'],
  ['audit', 'Audit log'],
];

export function Events() {
  if (!may('*', '*', '*')) {
    return (
      <>
        <Head title="Events" />
        <Happened />
      </>
    );
  }
  return (
    <>
      <Head title="Events" />
      <Tabs tabs={TABS} />
      <TabPanel tabs={TABS}>{chosenTab(TABS) === 'audit' ? <AuditLog /> : <Happened />}</TabPanel>
    </>
  );
}
