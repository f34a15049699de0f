// Nodes: a table with a square for each GPU, and the page of one node.
import { kube } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { now } from '../lib/clock.ts';
import { bytes, number, percent, secondsSince, span } from '../lib/format.ts';
import { align, pick, useHistory } from '../lib/history.ts';
import { useView } from '../lib/live.ts';
import { hrefOf, param } from '../lib/router.ts';
import type { GpuDevice, NodeRow, Rows } from '../lib/types.ts';
import { Age, Button, Card, Empty, Facts, Head, HeldBar, Notice, ProjectName, Status, Waiting, toast } from '../parts/basic.tsx';
import { Chart } from '../parts/chart.tsx';
import { confirm } from '../parts/dialog.tsx';
import { GpuSquares } from '../parts/gpus.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { rangeOf } from '../parts/usage_charts.tsx';

const IDLE_S = 300;
const GPUS_SHOWN = 8;

function isIdle(gpu: GpuDevice, at: number): boolean {
  return Boolean(gpu.pod || gpu.job) && (secondsSince(gpu.idleSince, at) ?? 0) > IDLE_S;
}
export function squaresOf(node: NodeRow) {
  return node.gpuDevices.map((gpu) => {
    const pod = node.pods.find((one) => one.name === gpu.pod);
    return { index: gpu.index, project: gpu.project ?? pod?.project, job: gpu.job ?? gpu.pod, share: gpu.share ?? undefined };
  });
}
function Squares({ node, max }: { node: NodeRow; max?: number }) {
  const idle = new Set(node.gpuDevices.filter((gpu) => isIdle(gpu, now.value)).map((gpu) => gpu.index));
  return <GpuSquares gpus={squaresOf(node).slice(0, max)} away={node.status !== 'Ready'} idle={idle} />;
}

const COLUMNS: Column<NodeRow>[] = [
  { key: 'name', title: 'Node', value: (row) => row.name, width: 160, grow: 1.4 },
  { key: 'status', title: 'Status', value: (row) => row.status, cell: (row) => <Status word={row.unschedulable ? `${row.status}, cordoned` : row.status} reason={row.reason} />, width: 130, filter: true },
  { key: 'pool', title: 'Node pool', value: (row) => row.pool, cell: (row) => (row.pool ? <a class="cut" href={hrefOf.pool(row.pool)}>{row.pool}</a> : <span class="muted">default</span>), width: 150, filter: true },
  { key: 'gpus', title: 'GPUs', value: (row) => row.gpus.held, cell: (row) => (row.gpuDevices.length > 0 ? <Squares node={row} max={GPUS_SHOWN} /> : <HeldBar held={row.gpus.held} total={row.gpus.total} />), width: 190, grow: 0.6 },
  { key: 'held', title: 'Held', value: (row) => row.gpus.held, cell: (row) => <>{number(row.gpus.held)}/{number(row.gpus.total)}</>, width: 80, grow: 0.3, num: true },
  { key: 'free', title: 'Free', value: (row) => row.gpus.free, width: 70, grow: 0.3, num: true },
  { key: 'idle', title: 'Idle', value: (row) => row.gpuDevices.filter((gpu) => isIdle(gpu, Date.now())).length, width: 70, grow: 0.3, num: true },
  { key: 'type', title: 'GPU type', value: (row) => row.gpuType, width: 140, filter: true },
  { key: 'cpu', title: 'CPU held', value: (row) => row.cpu?.held, cell: (row) => <>{number(row.cpu?.held)}/{number(row.cpu?.total)}</>, width: 100, grow: 0.4, num: true },
  { key: 'memory', title: 'Memory held', value: (row) => row.memory?.held, cell: (row) => <span class="cut">{bytes(row.memory?.held)} / {bytes(row.memory?.total)}</span>, width: 170, grow: 0.6, num: true },
  { key: 'pods', title: 'Pods', value: (row) => row.pods.length, width: 70, grow: 0.3, num: true },
  { key: 'created', title: 'Created', value: (row) => row.created, cell: (row) => <Age time={row.created} />, width: 120, hidden: true },
];

export function Nodes() {
  const view = useView<Rows<NodeRow>>('nodes');
  return (
    <>
      <Head title="Nodes" />
      {view.error && <Notice tone="bad">Nodes could not be read: {view.error}</Notice>}
      <Grid name="nodes" label="Nodes" columns={COLUMNS} rows={view.data?.rows} rowKey={(row) => row.name} href={(row) => hrefOf.node(row.name)} address what={['node', 'nodes']} partial={view.data?.partial}
        empty={<Empty title="There are no nodes">Start one with <code>swell agent</code>, or a cluster with <code>swell up --nodes 1</code>.</Empty>} />
    </>
  );
}

function cordon(node: NodeRow): void {
  const on = !node.unschedulable;
  confirm({
    title: on ? `Cordon ${node.name}?` : `Uncordon ${node.name}?`,
    text: on ? 'No new pods are placed on the node. Pods that run there continue.' : 'New pods may be placed on the node again.',
    action: on ? 'Cordon' : 'Uncordon',
    run: async () => {
      await kube.patch(`/api/v1/nodes/${encodeURIComponent(node.name)}`, { spec: { unschedulable: on || null } });
      toast(`Node ${node.name} is ${on ? 'cordoned' : 'uncordoned'}.`);
    },
  });
}

function Gpus({ node }: { node: NodeRow }) {
  const namespaceOf = (gpu: GpuDevice) => gpu.namespace ?? node.pods.find((pod) => pod.name === gpu.pod)?.namespace;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="GPUs">
      <table class="list-table">
        <thead><tr><th>GPU</th><th>Model</th><th>Health</th><th class="num">Utilization</th><th class="num">Memory used</th><th>Job</th><th>Pod</th><th>Idle for</th></tr></thead>
        <tbody>{node.gpuDevices.map((gpu) => (
          <tr key={gpu.index}><td title={gpu.uuid ?? undefined}>{gpu.index}</td><td>{gpu.model ?? node.gpuType ?? '–'}</td><td>{gpu.health ? <Status word={gpu.health} /> : '–'}</td>
            <td class="num">{percent(gpu.utilization, 1)}</td><td class="num nowrap">{bytes(gpu.memoryUsed)}</td>
            <td>{gpu.job ? <a href={`/workloads?q=${encodeURIComponent(gpu.job.split('/').at(-1) ?? '')}`}>{gpu.job}</a> : <span class="muted">free</span>}</td>
            <td>{gpu.pod ? <>{namespaceOf(gpu) ? `${namespaceOf(gpu)}/` : ''}{gpu.pod}{gpu.share && gpu.share < 1 ? `, ${number(gpu.share)} of it` : ''}</> : '–'}</td>
            <td class="nowrap">{isIdle(gpu, now.value) ? span(secondsSince(gpu.idleSince, now.value)) : '–'}</td></tr>
        ))}</tbody>
      </table>
    </div>
  );
}

function NodeHistory({ name, total }: { name: string; total: number }) {
  const history = useHistory(['node_gpu_held', 'node_gpu_utilized'], 3600);
  const { times, values } = align([...pick(history.series, 'node_gpu_held', { node: name }).slice(0, 1), ...pick(history.series, 'node_gpu_utilized', { node: name }).slice(0, 1)]);
  return <Chart label={`GPUs held and used on ${name}`} times={times} range={rangeOf(history)} top={total / 1.08} height={150} curves={[
    { label: 'Held', values: values[0] ?? [], colour: 'accent', area: true, step: true }, { label: 'Used', values: values[1] ?? [], colour: 'p2' }]} />;
}

export function NodePage() {
  const name = param('name');
  const view = useView<Rows<NodeRow>>('nodes');
  const node = view.data?.rows.find((row) => row.name === name);
  const mayCordon = may('patch', '', 'nodes');
  const crumbs = [{ text: 'Nodes', href: '/nodes' }];
  if (!view.data) return <><Head title={name} crumbs={crumbs} /><Waiting state={view} /></>;
  if (!node) return <><Head title={name} crumbs={crumbs} /><Empty title={`There is no node ${name}`}><p>It may have been deleted. <a href="/nodes">See all nodes</a></p></Empty></>;
  return (
    <>
      <Head title={name} crumbs={crumbs} badge={<Status word={node.unschedulable ? `${node.status}, cordoned` : node.status} reason={node.reason} />}>
        {mayCordon && <Button onClick={() => cordon(node)}>{node.unschedulable ? 'Uncordon' : 'Cordon'}</Button>}
      </Head>
      {node.reason && <Notice tone="wait">{node.reason}</Notice>}
      <Card>
        <Facts facts={[
          ['GPUs held', `${number(node.gpus.held)} of ${number(node.gpus.total)}`], ['GPU type', node.gpuType || '–'], ['Node pool', node.pool ? <a href={hrefOf.pool(node.pool)}>{node.pool}</a> : 'default'],
          ['CPU held', `${number(node.cpu?.held)} of ${number(node.cpu?.total)}`], ['CPU used', `${number(node.cpu?.used)} (${percent(node.cpu?.used, node.cpu?.total)})`],
          ['Memory held', `${bytes(node.memory?.held)} of ${bytes(node.memory?.total)}`], ['Memory used', bytes(node.memory?.used)], ['Created', <Age time={node.created} />],
        ]} />
      </Card>
      <Card title="GPUs" right={<Squares node={node} />}>{node.gpuDevices.length > 0 ? <Gpus node={node} /> : <p class="muted">The node has no GPUs.</p>}</Card>
      <Card title="GPUs held and used, last hour"><NodeHistory name={name} total={node.gpus.total} /></Card>
      <div class="columns">
        <Card title={`Pods (${node.pods.length})`}>
          {node.pods.length === 0 && <p class="muted">No pod runs here.</p>}
          {node.pods.length > 0 && <div class="scroll-x" tabIndex={0} role="region" aria-label="Pods"><table class="list-table">
            <thead><tr><th>Pod</th><th>Status</th><th>Project</th><th class="num">GPUs</th></tr></thead>
            <tbody>{node.pods.map((pod) => <tr key={`${pod.namespace}/${pod.name}`}><td>{pod.namespace}/{pod.name}</td><td><Status word={pod.status} /></td><td><ProjectName name={pod.project} /></td><td class="num">{number(pod.gpus ?? 0)}</td></tr>)}</tbody>
          </table></div>}
        </Card>
        <Card title="Conditions">
          <table class="list-table"><tbody>{node.conditions.map((one) => <tr key={one.type}><td>{one.type}</td><td>{one.status}</td><td class="muted">{one.message || one.reason}</td></tr>)}</tbody></table>
        </Card>
      </div>
    </>
  );
}
