// The audit log: who changed what, and what was refused; for administrators.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, errorText, kube, query } from '../lib/api.ts';
import { dateTime, number } from '../lib/format.ts';
import { paused } from '../lib/live.ts';
import { param } from '../lib/router.ts';
import type { AuditEvent } from '../lib/types.ts';
import { Empty, Notice } from './basic.tsx';
import { Grid, type Column } from './grid.tsx';

const NO_LOG =
  'This cluster has no audit log that can be read. ' +
  'An embedded cluster has one unless it was started with swell up --audit none.';
const LIMIT = 2000;
const AGAIN_MS = 10_000;

const userOf = (row: AuditEvent) =>
  row.impersonatedUser?.username ? `${row.user?.username} as ${row.impersonatedUser.username}` : row.user?.username;
const objectOf = (row: AuditEvent) => (row.objectRef ? (row.objectRef.name ?? '') : row.requestURI);
const resourceOf = (row: AuditEvent) =>
  row.objectRef && [row.objectRef.resource, row.objectRef.subresource].filter(Boolean).join('/');

function badgeOf(code: number): string {
  if (code >= 500) return 'bad';
  return code >= 400 ? 'wait' : '';
}

function Answer({ row }: { row: AuditEvent }) {
  const code = row.responseStatus?.code;
  if (!code) return <span class="muted">none</span>;
  const text = [code, row.responseStatus?.reason].filter(Boolean).join(' ');
  return (
    <span class={`badge ${badgeOf(code)}`} title={text}>
      <span class="cut">{text}</span>
    </span>
  );
}

export const AUDIT_COLUMNS: Column<AuditEvent>[] = [
  {
    key: 'time',
    title: 'Time',
    value: (row) => row.stageTimestamp,
    cell: (row) => (
      <time class="nowrap" dateTime={row.stageTimestamp}>
        {dateTime(row.stageTimestamp)}
      </time>
    ),
    width: 160,
    grow: 0.3,
  },
  { key: 'user', title: 'User', value: userOf, width: 160, filter: true },
  { key: 'verb', title: 'Verb', value: (row) => row.verb, width: 90, grow: 0.3, filter: true, spare: 2 },
  { key: 'resource', title: 'Resource', value: resourceOf, width: 150, filter: true, spare: 1 },
  {
    key: 'namespace',
    title: 'Namespace',
    value: (row) => row.objectRef?.namespace,
    width: 120,
    grow: 0.6,
    filter: true,
    spare: 8,
  },
  { key: 'object', title: 'Object', value: objectOf, width: 200, grow: 1.6 },
  {
    key: 'answer',
    title: 'Answer',
    value: (row) => row.responseStatus?.code,
    cell: (row) => <Answer row={row} />,
    width: 142,
    grow: 0.4,
    filter: true,
  },
  { key: 'from', title: 'From', value: (row) => row.sourceIPs?.join(', '), width: 120, grow: 0.4, spare: 9 },
  { key: 'agent', title: 'Program', value: (row) => row.userAgent, width: 220, hidden: true },
];

interface Found {
  items: AuditEvent[];
  more: boolean;
}

export function AuditLog() {
  // A user is searched for in the whole log. Other filters apply to what was read.
  const user = param('user').includes(',') ? '' : param('user');
  const [found, setFound] = useState<Found>();
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => {
      try {
        setFound(await kube.get<Found>(`/swell/v1/audit${query({ limit: LIMIT, user })}`, stop.signal));
        setWrong('');
      } catch (error) {
        if (stop.signal.aborted) return;
        setWrong(error instanceof ApiError && error.status === 404 ? NO_LOG : errorText(error));
      }
    };
    void read();
    const timer = setInterval(() => {
      if (!paused.value && !document.hidden) void read();
    }, AGAIN_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [user]);
  if (wrong && !found) return <Notice tone="bad">{wrong}</Notice>;
  return (
    <>
      {wrong && <Notice tone="bad">The audit log could not be read again: {wrong}</Notice>}
      {found?.more && (
        <p class="muted">
          The newest {number(found.items.length)} requests are shown. <code>swell audit</code> searches further back.
        </p>
      )}
      <Grid
        name="audit"
        label="Audit log"
        columns={AUDIT_COLUMNS}
        rows={found?.items}
        rowKey={(row) => row.auditID + row.stage}
        address
        sort="-time"
        what={['request', 'requests']}
        empty={
          <Empty title="No requests were logged">
            Requests that change something, read a Secret or are refused appear here.
          </Empty>
        }
      />
    </>
  );
}
