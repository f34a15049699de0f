// The cluster now: GPUs, jobs, pools, every GPU of every node, and the last decisions in words.
import { clock, gpuHours, number, percent, plural, reasonText, secondsSince, span } from '../lib/format.ts';
import { now } from '../lib/clock.ts';
import { useHistory } from '../lib/history.ts';
import { useView } from '../lib/live.ts';
import { PENDING, RUNNING, hrefOf } from '../lib/router.ts';
import type { OverviewData, ProjectRow, Rows } from '../lib/types.ts';
import { Card, Empty, Head, HeldBar, JobStatus, NO_POOL, Name, Tile, Waiting, tint } from '../parts/basic.tsx';
import { DecisionLine } from '../parts/decisions.tsx';
import { GpuSquares, heldByOthers } from '../parts/gpus.tsx';
import { ListTable } from '../parts/list_table.tsx';
import { ProjectUsageChart, UtilizationChart } from '../parts/usage_charts.tsx';

const NODES_MAX = 200;

function readyText({ total, ready }: OverviewData['gpus']): string {
  if (ready < total) return `${number(total - ready)} out of use`;
  return total > 0 ? 'all are ready' : '';
}

function Tiles({ data }: { data: OverviewData }) {
  const { gpus, jobs } = data;
  const waited = secondsSince(jobs.oldestPendingSince, now.value);
  return (
    <div class="tiles">
      <Tile
        label="GPUs held"
        value={
          <>
            {number(gpus.held)}
            <small> / {number(gpus.total)}</small>
          </>
        }
        note={gpus.total > 0 ? percent(gpus.held, gpus.total) : 'no node has any'}
        href="/nodes"
      />
      <Tile label="Free GPUs" value={number(gpus.free)} note={readyText(gpus)} href="/nodes" />
      <Tile label="Held but idle" value={number(gpus.idleHeld)} note="for more than 5 min" href="/nodes?sort=-idle" />
      <Tile label="Running workloads" value={number(jobs.running)} href={hrefOf.workloads({ status: RUNNING })} />
      <Tile
        label="Pending workloads"
        value={number(jobs.pending)}
        note={jobs.pending > 0 && waited !== null ? `oldest: ${span(waited)}` : 'nothing waits'}
        href={hrefOf.workloads({ status: PENDING, sort: '-wait' })}
      />
      <Tile
        label="Pods preempted today"
        value={number(data.preemptionsToday)}
        note={`${gpuHours(data.lostGpuSecondsToday)} GPU-hours lost`}
        href={hrefOf.preemptions}
      />
    </div>
  );
}

function NodeMap({ nodes }: { nodes: OverviewData['nodes'] }) {
  const projects = [
    ...new Set(
      nodes.flatMap((node) => node.gpus.map((gpu) => gpu.project)).filter((name): name is string => Boolean(name)),
    ),
  ].sort();
  return (
    <>
      <div class="node-map">
        {nodes.slice(0, NODES_MAX).map((node) => (
          <div key={node.name}>
            <a class="cut" href={hrefOf.node(node.name)} title={node.ready ? node.name : `${node.name} is not ready`}>
              {node.name}
              {node.ready ? '' : ' (not ready)'}
            </a>
            <GpuSquares gpus={node.gpus} away={!node.ready} />
          </div>
        ))}
      </div>
      {nodes.length > NODES_MAX && (
        <p class="muted small">
          The first {NODES_MAX} of {number(nodes.length)} nodes. <a href="/nodes">See all nodes</a>
        </p>
      )}
      <div class="legend" style={{ marginTop: '12px' }}>
        {projects.map((name) => (
          <a key={name} href={hrefOf.project(name)} class="with-swatch muted">
            <span class="swatch" style={{ background: 'var(--tint)', ...tint(name) }} />
            {name}
          </a>
        ))}
        {nodes.some((node) => node.gpus.some(heldByOthers)) && (
          <span class="with-swatch">
            <span class="gpu held others" style={{ width: '13px', height: '13px' }} />
            held by work that you may not see
          </span>
        )}
        {nodes.some((node) => node.gpus.some((gpu) => gpu.job && !gpu.project)) && (
          <span>other colours: a workload of no project each</span>
        )}
        {nodes.some((node) => node.gpus.length > 0) && (
          <span>
            <span class="swatch" style={{ background: 'var(--sunk)', border: '1px solid var(--line)' }} />
            free
          </span>
        )}
        {nodes.some((node) => node.gpus.some((gpu) => gpu.bad)) && (
          <span class="with-swatch">
            <span class="gpu bad" style={{ width: '13px', height: '13px' }} />
            unhealthy
          </span>
        )}
      </div>
    </>
  );
}

function More({ href, text }: { href: string; text: string }) {
  return (
    <a class="small" href={href}>
      {text}
    </a>
  );
}

function PoolList({ pools }: { pools: OverviewData['pools'] }) {
  return (
    <Card title="Node pools" right={<More href="/nodepools" text="All pools" />}>
      {pools.length === 0 && (
        <p class="muted">
          There are no GPUs in node pools yet. <a href="/nodepools">Make a node pool</a>
        </p>
      )}
      <ListTable>
        {pools.map(({ name, held, total }) => (
          <tr key={name}>
            <td>{name === NO_POOL ? <span class="muted">{name}</span> : <a href={hrefOf.pool(name)}>{name}</a>}</td>
            <td style={{ width: '45%', verticalAlign: 'middle' }}>
              <HeldBar held={held} total={total} />
            </td>
            <td class="num nowrap">
              <a href={hrefOf.nodes({ pool: name })}>
                {number(held)}/{number(total)}
              </a>
            </td>
          </tr>
        ))}
      </ListTable>
    </Card>
  );
}

// Workloads that do not run until somebody corrects something.
function Failing({ failing }: { failing: NonNullable<OverviewData['failing']> }) {
  const { rows, total } = failing;
  if (total === 0) return null;
  return (
    <Card title={`${plural(total, 'workload')} ${total === 1 ? 'fails or hangs' : 'fail or hang'}`}>
      <ul class="feed plain">
        {rows.map((row) => (
          <li key={`${row.kind} ${row.namespace}/${row.name}`}>
            <JobStatus row={row} />{' '}
            <a class="cut" href={hrefOf.job(row)} aria-label={`${row.namespace}/${row.name}`}>
              <Name text={`${row.namespace}/${row.name}`} />
            </a>
            <div class="two-lines muted small" title={row.reason ?? undefined}>
              {reasonText(row)}
            </div>
          </li>
        ))}
      </ul>
      {total > rows.length && <p class="muted small">These are the latest.</p>}
    </Card>
  );
}

function Decisions({ decisions, partial }: { decisions: OverviewData['decisions']; partial?: boolean }) {
  const nothing = partial
    ? 'There are no decisions about workloads that you may see.'
    : 'In the last hour the scheduler changed nothing that runs: it preempted, shrank and grew no workload.';
  return (
    <Card title="Decisions" right={<More href="/events" text="All events" />}>
      {decisions.length === 0 && <p class="muted">{nothing}</p>}
      <div class="scroll-y" tabIndex={0} role="region" aria-label="The last decisions">
        <ul class="feed">
          {decisions.map((one, index) => (
            <li key={`${one.time}${index}`}>
              <time dateTime={one.time}>{clock(one.time)}</time>
              <DecisionLine decision={one} />
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}

function NodesCard({ nodes }: { nodes: OverviewData['nodes'] }) {
  return (
    <Card title="Nodes" right={<More href="/nodes" text="All nodes" />}>
      {nodes.length > 0 ? (
        <NodeMap nodes={nodes} />
      ) : (
        <Empty title="There are no nodes">
          Start one with <code>swell agent</code>, or a cluster with <code>swell up --nodes 1</code>.
        </Empty>
      )}
    </Card>
  );
}

export function Overview() {
  const view = useView<OverviewData>('overview');
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows;
  const history = useHistory(['gpu_total', 'gpu_held', 'gpu_utilized', 'project_gpu_held', 'project_gpu_quota'], 3600);
  const data = view.data;
  if (!data) {
    return (
      <>
        <Head title="Overview" />
        <Waiting state={view} lines={10} />
      </>
    );
  }
  const shared = { history, overview: data, sync: 'overview' };
  return (
    <>
      <Head title="Overview">
        {data.partial && (
          <span class="muted small">You see only the part of the cluster that you have the right to read.</span>
        )}
      </Head>
      <Tiles data={data} />
      <div class="columns wide-first">
        <div class="stack">
          <Card title="GPUs held by project, last hour" right={<More href="/analytics" text="Analytics" />}>
            <ProjectUsageChart {...shared} projects={projects} height={190} />
          </Card>
          <Card title="GPU utilization, last hour">
            <UtilizationChart {...shared} height={150} />
          </Card>
          <NodesCard nodes={data.nodes} />
        </div>
        <div class="stack">
          {data.failing && <Failing failing={data.failing} />}
          <PoolList pools={data.pools} />
          <Decisions decisions={data.decisions} partial={data.partial} />
        </div>
      </div>
    </>
  );
}
