// Node pools: table, form, and the page of one pool.
import { useEffect, useState } from 'preact/hooks';
import { kube, objectPath } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { bytes, number } from '../lib/format.ts';
import { useHistory } from '../lib/history.ts';
import { useView } from '../lib/live.ts';
import { go, hrefOf, param } from '../lib/router.ts';
import type { KubeObject, NodeRow, PoolRow, ProjectRow, Rows } from '../lib/types.ts';
import {
  Age,
  Button,
  Card,
  Empty,
  Facts,
  Head,
  HeldBar,
  Missing,
  ProjectName,
  QuotaCell,
  Segments,
  Skeleton,
  Status,
  toast,
} from '../parts/basic.tsx';
import {
  Dialog,
  FormFoot,
  OtherWrongs,
  SelectField,
  TextField,
  Wrongs,
  checkName,
  confirm,
  open,
  useWrongs,
  wrongsOf,
} from '../parts/dialog.tsx';
import { GpuSquares } from '../parts/gpus.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { ListTable } from '../parts/list_table.tsx';
import { TimeRange, chosenSeconds } from '../parts/time_range.tsx';
import { AmountChart, UtilizationChart } from '../parts/usage_charts.tsx';
import { squaresOf } from './nodes.tsx';

const API = 'swell.dev/v1';
const FIELDS = [
  'metadata.name',
  'spec.nodeSelector',
  'spec.nodeSelector.value',
  'spec.placement.gpu',
  'spec.placement.cpu',
  'spec.gpuType',
];

interface Form {
  name: string;
  which: 'all' | 'label';
  key: string;
  value: string;
  gpu: string;
  cpu: string;
  gpuType: string;
}
const NEW: Form = { name: '', which: 'all', key: '', value: '', gpu: 'Pack', cpu: 'Pack', gpuType: '' };

const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

function wrongKey(key: string): string | undefined {
  if (!key) return 'Enter the key of the label that the pool’s nodes have.';
  if (LABEL_KEY.test(key)) return undefined;
  return 'A label key is a name such as gpu-type, or PREFIX/NAME: letters, digits, - _ and dots.';
}

function check(form: Form): Wrongs {
  const wrongs = new Wrongs();
  const name = checkName(form.name);
  if (name) wrongs.add('metadata.name', name);
  if (form.which !== 'label') return wrongs;
  const key = wrongKey(form.key.trim());
  if (key) wrongs.add('spec.nodeSelector', key);
  if (!LABEL_VALUE.test(form.value.trim()))
    wrongs.add('spec.nodeSelector.value', 'A label value has at most 63 letters, digits, - _ and dots.');
  return wrongs;
}
export function poolObject(form: Form): KubeObject {
  return {
    apiVersion: API,
    kind: 'NodePool',
    metadata: { name: form.name },
    spec: {
      ...(form.which === 'label' ? { nodeSelector: { [form.key.trim()]: form.value.trim() } } : {}),
      placement: { gpu: form.gpu, cpu: form.cpu },
      ...(form.gpuType ? { gpuType: form.gpuType } : {}),
    },
  };
}

interface PoolSpec {
  nodeSelector?: Record<string, string>;
  placement?: { gpu?: string; cpu?: string };
  gpuType?: string;
}

function formOf(object: KubeObject): Form {
  const spec = (object.spec ?? {}) as PoolSpec;
  const [label] = Object.entries(spec.nodeSelector ?? {});
  return {
    name: object.metadata?.name ?? '',
    which: label ? 'label' : 'all',
    key: label?.[0] ?? '',
    value: label?.[1] ?? '',
    gpu: spec.placement?.gpu ?? 'Pack',
    cpu: spec.placement?.cpu ?? 'Pack',
    gpuType: spec.gpuType ?? '',
  };
}

// The patch that turns the stored pool into that of the form. Labels that the form does not show stay.
export function poolPatch(form: Form, before: KubeObject): unknown {
  const spec = poolObject(form).spec as PoolSpec;
  const old = Object.keys((before.spec as PoolSpec | undefined)?.nodeSelector ?? {});
  const gone = form.which === 'all' ? old : old.slice(0, 1).filter((key) => key !== form.key.trim());
  return {
    spec: {
      ...spec,
      gpuType: form.gpuType || null,
      nodeSelector: { ...Object.fromEntries(gone.map((key) => [key, null])), ...spec.nodeSelector },
    },
  };
}

const PLACEMENTS: [string, string][] = [
  ['Pack', 'Bin-pack: fill nodes one by one'],
  ['Spread', 'Spread over the nodes'],
];

interface FieldsProps {
  form: Form;
  set: (change: Partial<Form>) => void;
  wrongs: Wrongs;
}

function LabelFields({ form, set, wrongs }: FieldsProps) {
  return (
    <div class="fields">
      <TextField
        label="Label key"
        name="spec.nodeSelector"
        value={form.key}
        onInput={(key) => set({ key })}
        wrongs={wrongs}
        placeholder="gpu-type"
      />
      <TextField
        label="Label value"
        name="spec.nodeSelector.value"
        value={form.value}
        onInput={(value) => set({ value })}
        wrongs={wrongs}
        placeholder="a100"
      />
    </div>
  );
}

function PlacementFields({ form, set, wrongs }: FieldsProps) {
  return (
    <div class="fields">
      <SelectField
        label="GPU placement strategy"
        name="spec.placement.gpu"
        value={form.gpu}
        onChange={(gpu) => set({ gpu })}
        options={PLACEMENTS}
        wrongs={wrongs}
      />
      <SelectField
        label="CPU placement strategy"
        name="spec.placement.cpu"
        value={form.cpu}
        onChange={(cpu) => set({ cpu })}
        options={PLACEMENTS}
        wrongs={wrongs}
      />
    </div>
  );
}

function Fields({ exists, ...props }: FieldsProps & { exists: boolean }) {
  const { form, set, wrongs } = props;
  return (
    <>
      <TextField
        label="Node pool name"
        name="metadata.name"
        value={form.name}
        disabled={exists}
        onInput={(name) => set({ name })}
        wrongs={wrongs}
        placeholder="single-node-pool"
      />
      <div class="field">
        <span class="label">Nodes of the pool</span>
        <Segments
          label="Nodes of the pool"
          value={form.which}
          onChange={(which) => set({ which })}
          options={[
            ['all', 'All nodes'],
            ['label', 'Nodes with a label'],
          ]}
        />
      </div>
      {form.which === 'label' && <LabelFields {...props} />}
      <PlacementFields {...props} />
      <TextField
        label="GPU type"
        name="spec.gpuType"
        value={form.gpuType}
        onInput={(gpuType) => set({ gpuType })}
        wrongs={wrongs}
        help="For display. It may stay empty."
      />
    </>
  );
}

export function PoolForm({ row, done }: { row?: PoolRow; done: () => void }) {
  const [before, setBefore] = useState<KubeObject>();
  const [form, setForm] = useState<Form>(NEW);
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(Boolean(row));
  useEffect(() => {
    if (!row) return;
    kube.get<KubeObject>(objectPath(API, 'nodepools', null, row.name)).then(
      (object) => {
        setBefore(object);
        setForm(formOf(object));
        setBusy(false);
      },
      (error: unknown) => setWrongs(wrongsOf(error, [])),
    );
  }, [row?.name]);
  const set = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const unread = Boolean(row) && !before;
  const submit = async () => {
    const found = check(form);
    setWrongs(found);
    if (found.any) return;
    setBusy(true);
    try {
      if (row) {
        if (before) await kube.patch(objectPath(API, 'nodepools', null, row.name), poolPatch(form, before));
      } else {
        await kube.create(objectPath(API, 'nodepools'), poolObject(form));
      }
      toast(`Node pool ${form.name} was ${row ? 'changed' : 'created'}.`);
      done();
    } catch (error) {
      setWrongs(wrongsOf(error, FIELDS));
      setBusy(false);
    }
  };
  const foot = (
    <FormFoot done={done} disabled={busy}>
      {row ? 'Save' : 'Create node pool'}
    </FormFoot>
  );
  return (
    <Dialog
      title={row ? `Edit node pool ${row.name}` : 'New node pool'}
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={foot}
    >
      <OtherWrongs wrongs={wrongs} fields={FIELDS} />
      {/* What is typed before the pool is read would be overwritten by it. */}
      {unread && !wrongs.any && <Skeleton lines={6} height={24} />}
      {!unread && <Fields form={form} set={set} wrongs={wrongs} exists={Boolean(row)} />}
    </Dialog>
  );
}

const labelText = ({ label }: PoolRow) => (label ? `${label.key}=${label.value}` : 'all nodes');

const COLUMNS: Column<PoolRow>[] = [
  { key: 'name', title: 'Node pool', value: (row) => row.name, width: 180, grow: 1.4 },
  {
    key: 'status',
    title: 'Status',
    value: (row) => row.status,
    cell: (row) => <Status word={row.status} />,
    width: 100,
    filter: true,
  },
  {
    key: 'label',
    title: 'Label',
    value: labelText,
    width: 170,
    spare: 1,
  },
  {
    key: 'nodes',
    title: 'Nodes',
    value: (row) => row.nodes.length,
    cell: (row) => <a href={`/nodes?pool=${encodeURIComponent(row.name)}`}>{row.nodes.length}</a>,
    width: 70,
    grow: 0.3,
    num: true,
  },
  {
    key: 'bar',
    title: 'GPUs',
    value: (row) => row.gpus.held,
    cell: (row) => <HeldBar held={row.gpus.held} total={row.gpus.total} />,
    width: 140,
  },
  {
    key: 'held',
    title: 'Held',
    value: (row) => row.gpus.held,
    cell: (row) => (
      <>
        {number(row.gpus.held)}/{number(row.gpus.total)}
      </>
    ),
    width: 80,
    grow: 0.3,
    num: true,
  },
  { key: 'free', title: 'Free', value: (row) => row.gpus.free, width: 70, grow: 0.3, num: true },
  {
    key: 'cpu',
    title: 'CPUs held',
    value: (row) => row.cpus?.held,
    cell: (row) => (
      <>
        {number(row.cpus?.held)}/{number(row.cpus?.total)}
      </>
    ),
    width: 110,
    grow: 0.4,
    num: true,
    spare: 6,
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
    width: 180,
    grow: 0.6,
    num: true,
    spare: 5,
  },
  { key: 'gpuPlacement', title: 'GPU placement', value: (row) => row.strategy?.gpu, width: 120, grow: 0.5, spare: 9 },
  {
    key: 'cpuPlacement',
    title: 'CPU placement',
    value: (row) => row.strategy?.cpu,
    width: 120,
    grow: 0.5,
    hidden: true,
  },
  { key: 'projects', title: 'Projects', value: (row) => row.projects, width: 80, grow: 0.3, num: true, spare: 8 },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 120,
    hidden: true,
  },
];

export function Pools() {
  const view = useView<Rows<PoolRow>>('nodepools');
  const create = may('create', 'swell.dev', 'nodepools');
  const make = () => open((done) => <PoolForm done={done} />);
  return (
    <>
      <Head title="Node Pools">
        {create && (
          <Button primary icon="plus" onClick={make}>
            New node pool
          </Button>
        )}
      </Head>
      <Grid
        name="node-pools"
        label="Node pools"
        error={view.error}
        columns={COLUMNS}
        rows={view.data?.rows}
        rowKey={(row) => row.name}
        href={(row) => hrefOf.pool(row.name)}
        address
        what={['node pool', 'node pools']}
        partial={view.data?.partial}
        empty={
          <Empty title="There are no node pools">
            <p>No node is in a node pool. Make one to give projects quotas on some of the nodes.</p>
            {create && (
              <Button primary icon="plus" onClick={make}>
                New node pool
              </Button>
            )}
          </Empty>
        }
      />
    </>
  );
}

function remove(row: PoolRow): void {
  confirm({
    title: `Delete the node pool ${row.name}?`,
    danger: true,
    action: 'Delete',
    text: (
      <>
        {row.projects ? `${row.projects} projects have quotas in it; they lose them. ` : ''}Its nodes stay, without a
        node pool.
      </>
    ),
    run: async () => {
      await kube.remove(objectPath(API, 'nodepools', null, row.name));
      toast(`Node pool ${row.name} is deleted.`);
      go('/nodepools');
    },
  });
}

const SERIES = [
  'gpu_total',
  'gpu_held',
  'gpu_utilized',
  'cpu_total',
  'cpu_held',
  'cpu_used',
  'memory_total',
  'memory_held',
  'memory_used',
];

function PoolFacts({ row }: { row: PoolRow }) {
  return (
    <Facts
      facts={[
        ['GPUs held', `${number(row.gpus.held)} of ${number(row.gpus.total)}`],
        ['Free GPUs', number(row.gpus.free)],
        ['Nodes', <a href={`/nodes?pool=${encodeURIComponent(row.name)}`}>{row.nodes.length}</a>],
        ['Label', labelText(row)],
        ['CPUs held', `${number(row.cpus?.held)} of ${number(row.cpus?.total)}`],
        ['Memory held', `${bytes(row.memory?.held)} of ${bytes(row.memory?.total)}`],
        ['Placement', `GPUs ${row.strategy?.gpu ?? '–'}, CPUs ${row.strategy?.cpu ?? '–'}`],
        ['Created', <Age time={row.created} />],
      ]}
    />
  );
}

function PoolActions({ row }: { row: PoolRow }) {
  const edit = may('patch', 'swell.dev', 'nodepools');
  const drop = may('delete', 'swell.dev', 'nodepools');
  return (
    <>
      {edit && (
        <Button icon="edit" onClick={() => open((done) => <PoolForm row={row} done={done} />)}>
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

function Sharing({ pool, projects }: { pool: string; projects: ProjectRow[] }) {
  const sharing = projects.flatMap((project) =>
    project.pools.filter((one) => one.name === pool).map((one) => ({ project: project.name, gpu: one.gpu })),
  );
  return (
    <Card title="Projects with a quota here">
      {sharing.length === 0 && <p class="muted">No project has a quota in this pool.</p>}
      <ListTable>
        {sharing.map((one) => (
          <tr key={one.project}>
            <td>
              <ProjectName name={one.project} />
            </td>
            <td style={{ width: '60%' }}>
              <QuotaCell share={one.gpu} name={one.project} />
            </td>
          </tr>
        ))}
      </ListTable>
    </Card>
  );
}

// The number of GPUs by utilization: up to 25 %, 50 %, 75 % and 100 %.
function quartersOf(nodes: NodeRow[]): number[] {
  const quarters = [0, 0, 0, 0];
  for (const gpu of nodes.flatMap((node) => node.gpuDevices)) {
    if (gpu.utilization === null || gpu.utilization === undefined) continue;
    const at = Math.min(3, Math.floor(gpu.utilization * 4));
    quarters[at] = (quarters[at] ?? 0) + 1;
  }
  return quarters;
}

function Utilization({ nodes, total }: { nodes: NodeRow[]; total: number }) {
  const quarters = quartersOf(nodes);
  if (quarters.every((count) => count === 0)) return <p class="muted">No GPU reports its utilization.</p>;
  return (
    <ListTable>
      {quarters.map((count, at) => (
        <tr key={at}>
          <td class="nowrap">
            {at * 25} to {at * 25 + 25} %
          </td>
          <td style={{ width: '60%', verticalAlign: 'middle' }}>
            <HeldBar held={count} total={total} what="GPUs" />
          </td>
          <td class="num">{count}</td>
        </tr>
      ))}
    </ListTable>
  );
}

function NodeMap({ nodes }: { nodes: NodeRow[] }) {
  return (
    <div class="node-map">
      {nodes.map((node) => (
        <div key={node.name}>
          <a class="cut" href={hrefOf.node(node.name)}>
            {node.name}
          </a>
          <GpuSquares away={node.status !== 'Ready'} gpus={squaresOf(node)} />
        </div>
      ))}
    </div>
  );
}

export function PoolPage() {
  const name = param('name');
  const view = useView<Rows<PoolRow>>('nodepools');
  const nodes = useView<Rows<NodeRow>>('nodes').data?.rows ?? [];
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const history = useHistory(SERIES, chosenSeconds());
  const row = view.data?.rows.find((one) => one.name === name);
  const crumbs = [{ text: 'Node Pools', href: '/nodepools' }];
  if (!row) {
    return (
      <Missing name={name} text={`There is no node pool ${name}`} crumbs={crumbs} state={view}>
        <a href="/nodepools">See all node pools</a>
      </Missing>
    );
  }
  const own = nodes.filter((node) => row.nodes.includes(node.name));
  return (
    <>
      <Head title={name} crumbs={crumbs} badge={<Status word={row.status} />}>
        <PoolActions row={row} />
      </Head>
      <Card>
        <PoolFacts row={row} />
      </Card>
      <Card title="GPUs in total, held and used" right={<TimeRange />}>
        <UtilizationChart history={history} pool={name} height={200} />
      </Card>
      <div class="columns">
        <Card title="CPUs in total, held and used">
          <AmountChart history={history} what="cpu" labels={{ pool: name }} />
        </Card>
        <Card title="Memory in total, held and used, in GiB">
          <AmountChart history={history} what="memory" labels={{ pool: name }} />
        </Card>
      </div>
      <div class="columns">
        <Sharing pool={name} projects={projects} />
        <Card title="Utilization of its GPUs now">
          <Utilization nodes={own} total={row.gpus.total} />
        </Card>
      </div>
      <Card title="Nodes">
        <NodeMap nodes={own} />
      </Card>
    </>
  );
}
