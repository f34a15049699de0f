// Nodes: a table with a square for each GPU, and the page of one node.
import { errorText, kube } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { now } from '../lib/clock.ts';
import { bytes, number, percent, plural, secondsSince, span } from '../lib/format.ts';
import { align, pick, useHistory, type History } from '../lib/history.ts';
import { useView } from '../lib/live.ts';
import { hrefOf, param } from '../lib/router.ts';
import type { Condition, GpuDevice, NodeHealth, NodePod, NodeRow, Rows } from '../lib/types.ts';
import {
  Age,
  Button,
  Card,
  Empty,
  Facts,
  Head,
  HeldBar,
  Missing,
  NO_POOL,
  Notice,
  ProjectName,
  Status,
  toast,
} from '../parts/basic.tsx';
import { Chart, HEADROOM } from '../parts/chart.tsx';
import { confirm } from '../parts/dialog.tsx';
import { GpuSquares } from '../parts/gpus.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { ListTable, num } from '../parts/list_table.tsx';
import { TimeRange, chosenSeconds } from '../parts/time_range.tsx';
import { AmountChart, rangeOf } from '../parts/usage_charts.tsx';

const IDLE_S = 300;
const GPUS_SHOWN = 8;

function isIdle(gpu: GpuDevice, at: number): boolean {
  return Boolean(gpu.pod || gpu.job) && (secondsSince(gpu.idleSince, at) ?? 0) > IDLE_S;
}
export function squaresOf(node: NodeRow) {
  return node.gpuDevices.map((gpu) => {
    const pod = node.pods.find((one) => one.name === gpu.pod && one.namespace === (gpu.namespace ?? one.namespace));
    return {
      index: gpu.index,
      project: gpu.project ?? pod?.project,
      job: gpu.job ?? gpu.pod,
      share: gpu.share ?? undefined,
      bad: gpu.health === 'Unhealthy',
    };
  });
}
function Squares({ node, max }: { node: NodeRow; max?: number }) {
  const idle = new Set(node.gpuDevices.filter((gpu) => isIdle(gpu, now.value)).map((gpu) => gpu.index));
  return <GpuSquares gpus={squaresOf(node).slice(0, max)} away={node.status !== 'Ready'} idle={idle} />;
}

// "Ready,SchedulingDisabled" in the word of the button; what is unhealthy stands under Health.
const statusOf = ({ status, unschedulable }: NodeRow) =>
  `${status.split(',')[0] ?? status}${unschedulable ? ', cordoned' : ''}`;

function NodeStatus({ node }: { node: NodeRow }) {
  return <Status word={statusOf(node)} reason={node.reason} />;
}

const sentenceOf = (health: NodeHealth) => `The node ${health.text.startsWith('has ') ? '' : 'is '}${health.text}.`;

// Why it is not used, or not as others: what is wrong with it, in the words of its checks.
function reasonOf({ status, reason, health }: NodeRow): string {
  if (!status.startsWith('Ready')) return reason ?? '';
  if (!health || health.state === 'Healthy') return '';
  const said = health.faults.map((fault) => fault.message ?? fault.reason).filter(Boolean);
  return said.length > 0 ? said.join('; ') : health.text;
}

function Health({ node }: { node: NodeRow }) {
  const { health } = node;
  if (!health) return <span class="muted">–</span>;
  if (health.state === 'Healthy') return <Status word={health.state} />;
  const faults = health.faults.map((fault) => `${fault.type}: ${fault.message ?? fault.reason}`);
  return <Status word={health.state} reason={[health.text, ...faults].join('\n')} />;
}

// A node without GPUs has no such number.
const ofGpus = (value: (row: NodeRow) => number) => (row: NodeRow) => (row.gpus.total > 0 ? value(row) : null);

function HeldGpus({ node }: { node: NodeRow }) {
  if (node.gpuDevices.length > 0) return <Squares node={node} max={GPUS_SHOWN} />;
  return node.gpus.total > 0 ? <HeldBar held={node.gpus.held} total={node.gpus.total} /> : <>–</>;
}

const COLUMNS: Column<NodeRow>[] = [
  { key: 'name', title: 'Node', value: (row) => row.name, width: 130, grow: 1.4 },
  {
    key: 'status',
    title: 'Status',
    value: statusOf,
    cell: (row) => <NodeStatus node={row} />,
    width: 140,
    filter: true,
  },
  {
    key: 'health',
    title: 'Health',
    value: (row) => row.health?.state,
    cell: (row) => <Health node={row} />,
    width: 128,
    grow: 0.3,
    filter: true,
    spare: 1,
  },
  {
    key: 'reason',
    title: 'Reason',
    value: reasonOf,
    cell: (row) => (
      <span class="cut two muted" title={reasonOf(row)}>
        {reasonOf(row) || '–'}
      </span>
    ),
    width: 140,
    grow: 2,
    sparse: true,
    spare: 3,
  },
  {
    key: 'pool',
    title: 'Node pool',
    value: (row) => row.pool ?? NO_POOL,
    cell: (row) =>
      row.pool ? (
        <a class="cut" href={hrefOf.pool(row.pool)}>
          {row.pool}
        </a>
      ) : (
        <span class="muted">{NO_POOL}</span>
      ),
    width: 150,
    filter: true,
    spare: 6,
  },
  {
    key: 'gpus',
    title: 'GPUs',
    value: ofGpus((row) => row.gpus.held),
    cell: (row) => <HeldGpus node={row} />,
    width: 190,
    grow: 0.6,
    sparse: true,
    spare: 2,
  },
  {
    key: 'held',
    title: 'Held',
    value: ofGpus((row) => row.gpus.held),
    cell: (row) => (row.gpus.total > 0 ? `${number(row.gpus.held)}/${number(row.gpus.total)}` : '–'),
    width: 72,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 4,
  },
  {
    key: 'free',
    title: 'Free',
    value: ofGpus((row) => row.gpus.free),
    width: 70,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 7,
  },
  {
    key: 'idle',
    title: 'Idle',
    value: ofGpus((row) => row.gpuDevices.filter((gpu) => isIdle(gpu, Date.now())).length),
    width: 70,
    grow: 0.3,
    num: true,
    sparse: true,
    spare: 5,
  },
  { key: 'type', title: 'GPU type', value: (row) => row.gpuType, width: 140, filter: true, sparse: true, spare: 8 },
  {
    key: 'cpu',
    title: 'CPU held',
    value: (row) => row.cpu?.held,
    cell: (row) => (
      <>
        {number(row.cpu?.held)}/{number(row.cpu?.total)}
      </>
    ),
    width: 100,
    grow: 0.4,
    num: true,
    spare: 10,
  },
  {
    key: 'memory',
    title: 'Memory held',
    value: (row) => row.memory?.held,
    cell: (row) => (
      <span class="cut">
        {bytes(row.memory?.held)} / {bytes(row.memory?.total)}
      </span>
    ),
    width: 170,
    grow: 0.6,
    num: true,
    spare: 11,
  },
  { key: 'pods', title: 'Pods', value: (row) => row.pods.length, width: 70, grow: 0.3, num: true, spare: 9 },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 120,
    hidden: true,
  },
];

export function Nodes() {
  const view = useView<Rows<NodeRow>>('nodes');
  return (
    <>
      <Head title="Nodes" />
      <Grid
        name="nodes"
        label="Nodes"
        error={view.error}
        columns={COLUMNS}
        rows={view.data?.rows}
        rowKey={(row) => row.name}
        href={(row) => hrefOf.node(row.name)}
        address
        what={['node', 'nodes']}
        partial={view.data?.partial}
        empty={
          <Empty title="There are no nodes">
            Start one with <code>swell agent</code>, or a cluster with <code>swell up --nodes 1</code>.
          </Empty>
        }
      />
    </>
  );
}

function cordon(node: NodeRow): void {
  const on = !node.unschedulable;
  confirm({
    title: on ? `Cordon ${node.name}?` : `Uncordon ${node.name}?`,
    text: on
      ? 'No new pods are placed on the node. Pods that run there continue.'
      : 'New pods may be placed on the node again.',
    action: on ? 'Cordon' : 'Uncordon',
    run: async () => {
      await kube.patch(`/api/v1/nodes/${encodeURIComponent(node.name)}`, { spec: { unschedulable: on || null } });
      toast(`Node ${node.name} is ${on ? 'cordoned' : 'uncordoned'}.`);
    },
  });
}

function GpuJob({ gpu }: { gpu: GpuDevice }) {
  if (!gpu.job && gpu.share) return <span class="muted">held by work that you may not see</span>;
  if (!gpu.job) return <span class="muted">{gpu.health === 'Unhealthy' ? '–' : 'free'}</span>;
  return <a href={`/workloads?q=${encodeURIComponent(gpu.job.split('/').at(-1) ?? '')}`}>{gpu.job}</a>;
}

function podText(gpu: GpuDevice, pods: NodePod[]): string {
  if (!gpu.pod) return '–';
  const namespace = gpu.namespace ?? pods.find((pod) => pod.name === gpu.pod)?.namespace;
  const part = gpu.share && gpu.share < 1 ? `, ${number(gpu.share)} of it` : '';
  return `${namespace ? `${namespace}/` : ''}${gpu.pod}${part}`;
}

const GPU_HEADS = ['GPU', 'Model', 'Health', num('Utilization'), num('Memory used'), 'Job', 'Pod', num('Idle for')];

function Gpus({ node }: { node: NodeRow }) {
  return (
    <ListTable label="GPUs" heads={GPU_HEADS}>
      {node.gpuDevices.map((gpu) => (
        <tr key={gpu.index}>
          <td title={gpu.uuid ?? undefined}>{gpu.index}</td>
          <td>{gpu.model ?? node.gpuType ?? '–'}</td>
          <td>
            {gpu.health ? <Status word={gpu.health} /> : '–'}
            {gpu.healthReason && (
              <div class="small muted" style={{ maxWidth: '220px' }}>
                {gpu.healthReason}
              </div>
            )}
          </td>
          <td>{percent(gpu.utilization, 1)}</td>
          <td>{bytes(gpu.memoryUsed)}</td>
          <td>
            <div class="broken">
              <GpuJob gpu={gpu} />
            </div>
          </td>
          <td>
            <div class="broken">{podText(gpu, node.pods)}</div>
          </td>
          <td class="nowrap">{isIdle(gpu, now.value) ? span(secondsSince(gpu.idleSince, now.value)) : '–'}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function Faults({ faults }: { faults: NodeHealth['faults'] }) {
  return (
    <ul class="stack" style={{ gap: '6px' }}>
      {faults.map((fault) => (
        <li key={fault.type}>
          <strong>{fault.type}</strong> {fault.message || fault.reason}
          {!fault.taints && <span class="muted"> (the rest of the node gets new pods)</span>}
        </li>
      ))}
    </ul>
  );
}

function Failures({ health }: { health: NodeHealth }) {
  const score = `score ${number(health.score)}, suspect from ${number(health.suspectFrom)} on`;
  return (
    <>
      <p class="muted small">Failures without a user’s error: {score}. A failure counts half after six hours.</p>
      <ListTable label="Failures" heads={['When', 'Pod', 'Class', num('Counted'), 'What it said']}>
        {[...health.failures].reverse().map((one, at) => (
          <tr key={at}>
            <td class="nowrap">
              <Age time={one.time} />
            </td>
            <td>{one.pod ?? <span class="muted">not yours to see</span>}</td>
            <td>{one.class}</td>
            <td>{number(one.weight)}</td>
            <td>{one.message ?? '–'}</td>
          </tr>
        ))}
      </ListTable>
    </>
  );
}

// What the checks of the node found, and what failed there without a user's error.
function HealthCard({ node }: { node: NodeRow }) {
  const { health } = node;
  if (!health) return null;
  const well = health.state === 'Healthy' && health.failures.length === 0;
  return (
    <Card title="Health" right={<Health node={node} />}>
      {well ? (
        <p class="muted">No check finds anything wrong, and no pod has failed here without an error of its own.</p>
      ) : (
        <div class="stack" style={{ gap: '12px' }}>
          {health.faults.length === 0 && <p>{`No check finds anything wrong now. ${sentenceOf(health)}`}</p>}
          {health.faults.length > 0 && <Faults faults={health.faults} />}
          {health.failures.length > 0 && <Failures health={health} />}
        </div>
      )}
    </Card>
  );
}

interface DrainPod {
  metadata: {
    name: string;
    namespace: string;
    ownerReferences?: { kind: string }[];
    annotations?: Record<string, string>;
  };
  status?: { phase?: string };
}

// Pods of DaemonSets would be created again at once, and the server cannot move static pods.
const isMoved = (pod: DrainPod) =>
  !pod.metadata.ownerReferences?.some((owner) => owner.kind === 'DaemonSet') &&
  !pod.metadata.annotations?.['kubernetes.io/config.mirror'] &&
  !/^(?:Succeeded|Failed)$/.test(pod.status?.phase ?? '');

async function evictAll(node: string): Promise<void> {
  await kube.patch(`/api/v1/nodes/${encodeURIComponent(node)}`, { spec: { unschedulable: true } });
  const list = await kube.get<{ items: DrainPod[] }>(
    `/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${node}`)}`,
  );
  const wrong: string[] = [];
  const pods = list.items.filter(isMoved);
  for (const pod of pods) {
    const { name, namespace } = pod.metadata;
    try {
      await kube.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
      });
    } catch (error) {
      wrong.push(`${namespace}/${name}: ${errorText(error)}`);
    }
  }
  if (wrong.length > 0) {
    const more = wrong.length > 5 ? `\nand ${wrong.length - 5} more` : '';
    throw new Error(wrong.slice(0, 5).join('\n') + more);
  }
  toast(`Node ${node} is cordoned, and ${plural(pods.length, 'pod')} ${pods.length === 1 ? 'leaves' : 'leave'} it.`);
}

const NAMED_MAX = 5;

// The workloads whose pods a drain stops. Empty: no workload of which anything is known.
function stoppedText(pods: NodePod[]): string {
  const names = [...new Set(pods.filter((pod) => pod.job).map((pod) => `${pod.namespace}/${pod.job}`))].sort();
  if (names.length === 0) return '';
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : '';
  return `On it run pods of ${plural(names.length, 'workload')}: ${names.slice(0, NAMED_MAX).join(', ')}${more}.`;
}

function drain(node: NodeRow): void {
  confirm({
    title: `Drain ${node.name}?`,
    action: 'Drain',
    danger: true,
    text: (
      <>
        <p>
          The node gets no new pods, and its pods are evicted with their grace period. Workloads that use the SDK save,
          and continue elsewhere when there is room.
        </p>
        <p>{stoppedText(node.pods)}</p>
      </>
    ),
    run: () => evictAll(node.name),
  });
}

function Curves({ node }: { node: NodeRow }) {
  const history = useHistory(
    ['node_gpu_held', 'node_gpu_utilized', 'node_cpu_held', 'node_cpu_used', 'node_memory_held', 'node_memory_used'],
    chosenSeconds(),
  );
  const range = <TimeRange />;
  return (
    <>
      {node.gpus.total > 0 && (
        <Card title="GPUs held and used" right={range}>
          <NodeHistory name={node.name} total={node.gpus.total} history={history} />
        </Card>
      )}
      <div class="columns">
        <Card title="CPUs held and used" right={node.gpus.total > 0 ? undefined : range}>
          <AmountChart history={history} what="cpu" labels={{ node: node.name }} total={node.cpu?.total} />
        </Card>
        <Card title="Memory held and used, in GiB">
          <AmountChart history={history} what="memory" labels={{ node: node.name }} total={node.memory?.total} />
        </Card>
      </div>
    </>
  );
}

function NodeHistory({ name, total, history }: { name: string; total: number; history: History }) {
  const { times, values } = align([
    ...pick(history.series, 'node_gpu_held', { node: name }).slice(0, 1),
    ...pick(history.series, 'node_gpu_utilized', { node: name }).slice(0, 1),
  ]);
  return (
    <Chart
      label={`GPUs held and used on ${name}`}
      times={times}
      range={rangeOf(history)}
      top={total / HEADROOM}
      height={150}
      curves={[
        { label: 'Held', values: values[0] ?? [], colour: 'accent', area: true, step: true },
        { label: 'Used', values: values[1] ?? [], colour: 'p2' },
      ]}
    />
  );
}

function isFault(node: NodeRow, one: Condition): boolean {
  const pressure = one.type.endsWith('Pressure') && one.status === 'True';
  return (
    pressure ||
    (one.type === 'Ready' && one.status !== 'True') ||
    Boolean(node.health?.faults.some((fault) => fault.type === one.type))
  );
}

function NodeFacts({ node }: { node: NodeRow }) {
  return (
    <Facts
      facts={[
        ['GPUs held', `${number(node.gpus.held)} of ${number(node.gpus.total)}`],
        ['GPU type', node.gpuType || '–'],
        ['Node pool', node.pool ? <a href={hrefOf.pool(node.pool)}>{node.pool}</a> : NO_POOL],
        ['CPU held', `${number(node.cpu?.held)} of ${number(node.cpu?.total)}`],
        ['CPU used', `${number(node.cpu?.used)} (${percent(node.cpu?.used, node.cpu?.total)})`],
        ['Memory held', `${bytes(node.memory?.held)} of ${bytes(node.memory?.total)}`],
        ['Memory used', bytes(node.memory?.used)],
        ['Created', <Age time={node.created} />],
      ]}
    />
  );
}

function Pods({ pods }: { pods: NodePod[] }) {
  if (pods.length === 0) return <p class="muted">No pod runs here.</p>;
  return (
    <ListTable label="Pods" heads={['Pod', 'Status', 'Project', num('GPUs')]}>
      {pods.map((pod) => (
        <tr key={`${pod.namespace}/${pod.name}`}>
          <td>
            <div class="broken">
              {pod.namespace}/{pod.name}
            </div>
          </td>
          <td>
            <Status word={pod.status} />
          </td>
          <td>
            <ProjectName name={pod.project} />
          </td>
          <td>{number(pod.gpus ?? 0)}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function Conditions({ node }: { node: NodeRow }) {
  return (
    <ListTable label="Conditions" fills heads={['Condition', 'Status', 'Since', 'Message']}>
      {node.conditions.map((one) => (
        <tr key={one.type}>
          <td class="nowrap">{one.type}</td>
          <td>{isFault(node, one) ? <Status word={`${one.status}, bad`} /> : one.status}</td>
          <td class="nowrap">{one.lastTransitionTime ? <Age time={one.lastTransitionTime} /> : '–'}</td>
          <td class="muted">{one.message || one.reason}</td>
        </tr>
      ))}
    </ListTable>
  );
}

export function NodePage() {
  const name = param('name');
  const view = useView<Rows<NodeRow>>('nodes');
  const node = view.data?.rows.find((row) => row.name === name);
  const mayCordon = may('patch', '', 'nodes');
  const mayEvict = may('create', '', 'pods', '', 'eviction');
  const crumbs = [{ text: 'Nodes', href: '/nodes' }];
  if (!node) {
    return (
      <Missing name={name} text={`There is no node ${name}`} crumbs={crumbs} state={view}>
        It may have been deleted. <a href="/nodes">See all nodes</a>
      </Missing>
    );
  }
  return (
    <>
      <Head title={name} crumbs={crumbs} badge={<NodeStatus node={node} />}>
        {mayCordon && <Button onClick={() => cordon(node)}>{node.unschedulable ? 'Uncordon' : 'Cordon'}</Button>}
        {mayCordon && mayEvict && node.pods.length > 0 && (
          <Button danger onClick={() => drain(node)}>
            Drain
          </Button>
        )}
      </Head>
      {node.reason && !node.unschedulable && <Notice tone="wait">{node.reason}</Notice>}
      {node.health && node.health.state !== 'Healthy' && (
        <Notice tone={node.health.state === 'Unhealthy' ? 'bad' : 'wait'}>{sentenceOf(node.health)}</Notice>
      )}
      <Card>
        <NodeFacts node={node} />
      </Card>
      <Card title="GPUs" right={<Squares node={node} />}>
        {node.gpuDevices.length > 0 ? <Gpus node={node} /> : <p class="muted">The node has no GPUs.</p>}
      </Card>
      <HealthCard node={node} />
      <Curves node={node} />
      <div class="columns">
        <Card title={`Pods (${node.pods.length})`}>
          <Pods pods={node.pods} />
        </Card>
        <Card title="Conditions">
          <Conditions node={node} />
        </Card>
      </div>
    </>
  );
}
