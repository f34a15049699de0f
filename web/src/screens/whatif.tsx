// What would happen: another quota, more nodes or one more job, in a copy of the cluster's state.
import { useState } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { errorText, json } from '../lib/api.ts';
import { gpuHours, number } from '../lib/format.ts';
import { checkJob, jobObject, newJob } from '../lib/job_form.ts';
import { useView } from '../lib/live.ts';
import type { NodeRow, OverviewData, PoolRow, ProjectRow, Rows, WhatIfData } from '../lib/types.ts';
import { Button, Card, Empty, Head, NO_POOL, Notice, Skeleton } from '../parts/basic.tsx';
import { SelectField, TextField, Wrongs, readNumber } from '../parts/dialog.tsx';
import { ReasonBadge } from '../parts/decisions.tsx';
import { ListTable, num } from '../parts/list_table.tsx';

interface Quota {
  project: string;
  pool: string;
  gpu: string;
}
interface Nodes {
  like: string;
  count: string;
}
interface Job {
  project: string;
  workers: string;
  gpus: string;
  type: string;
}
export interface Question {
  quota: Quota[];
  nodes: Nodes[];
  job?: Job;
}

function check(question: Question): Wrongs {
  const wrongs = new Wrongs();
  question.quota.forEach((one, at) => {
    if (!one.project) wrongs.add(`quota.${at}.project`, 'Choose a project.');
    const value = readNumber(one.gpu);
    if (value === undefined || value < 0) wrongs.add(`quota.${at}.gpu`, 'Enter a number of 0 or more.');
  });
  question.nodes.forEach((one, at) => {
    if (!one.like) wrongs.add(`nodes.${at}.like`, 'Choose a node.');
    if (!/^\d+$/.test(one.count) || Number(one.count) < 1)
      wrongs.add(`nodes.${at}.count`, 'Enter a whole number of 1 or more.');
  });
  if (question.job) {
    const form = { ...newJob(question.job.project), ...question.job, image: 'any', name: 'x' };
    checkJob(form, (field, message) => wrongs.add(`job.${field}`, message));
  }
  if (!question.quota.length && !question.nodes.length && !question.job)
    wrongs.add('', 'Add a change first: a quota, nodes or a workload.');
  return wrongs;
}

// The question as the server reads it.
export function requestOf(question: Question, projects: ProjectRow[]): Record<string, unknown> {
  const request: Record<string, unknown> = {
    quota: question.quota.map((one) => ({ project: one.project, pool: one.pool, gpu: readNumber(one.gpu) })),
    addNodes: question.nodes.map((one) => ({ like: one.like, count: Number(one.count) })),
  };
  const { job } = question;
  if (job) {
    const namespace = projects.find((row) => row.name === job.project)?.namespace ?? job.project;
    request.addJob = jobObject({ ...newJob(job.project, namespace), ...job, name: 'what-if', image: 'any' });
  }
  return request;
}

const PARTS: [string, (data: Partial<OverviewData>) => number | null | undefined][] = [
  ['GPUs in total', (data) => data.gpus?.total],
  ['GPUs held', (data) => data.gpus?.held],
  ['Free GPUs', (data) => data.gpus?.free],
  ['Running workloads', (data) => data.jobs?.running],
  ['Pending workloads', (data) => data.jobs?.pending],
];

const changeText = (change: number) => (change === 0 ? '–' : `${change > 0 ? '+' : ''}${number(change)}`);

function Compared({ before, after }: { before: Partial<OverviewData>; after: Partial<OverviewData> }) {
  return (
    <Card title="Before and after">
      <ListTable heads={['', num('Now'), num('Then'), num('Change')]}>
        {PARTS.map(([title, read]) => (
          <tr key={title}>
            <td>{title}</td>
            <td>{number(read(before))}</td>
            <td>{number(read(after))}</td>
            <td>{changeText((read(after) ?? 0) - (read(before) ?? 0))}</td>
          </tr>
        ))}
        {after.lostGpuSecondsToday !== undefined && (
          <tr>
            <td>Lost GPU-hours</td>
            <td>{gpuHours(before.lostGpuSecondsToday)}</td>
            <td>{gpuHours(after.lostGpuSecondsToday)}</td>
            <td />
          </tr>
        )}
      </ListTable>
    </Card>
  );
}

function Answer({ data }: { data: WhatIfData }) {
  return (
    <div class="stack">
      {data.before && data.after && <Compared before={data.before} after={data.after} />}
      <Card title="Decisions that would follow">
        {data.decisions.length === 0 ? (
          <p class="muted">The scheduler would change nothing.</p>
        ) : (
          <ol class="stack" style={{ gap: '8px' }}>
            {data.decisions.map((one, index) => (
              <li key={index}>
                <ReasonBadge reason={one.kind} /> {one.text}
              </li>
            ))}
          </ol>
        )}
      </Card>
    </div>
  );
}

interface PartProps {
  question: Question;
  set: (change: Partial<Question>) => void;
  wrongs: Wrongs;
}

// `list` with a change of the element at `at`.
function changed<T>(list: T[], at: number, change: Partial<T>): T[] {
  return list.map((old, index) => (index === at ? { ...old, ...change } : old));
}
function without<T>(list: T[], at: number): T[] {
  return list.filter((_, index) => index !== at);
}

// Work is charged to projects with a namespace alone.
const leavesOf = (projects: ProjectRow[]) =>
  projects.filter((row) => row.namespace).map((row): [string, string] => [row.name, row.name]);

function QuotaPart({
  question,
  set,
  wrongs,
  projects,
  pools,
}: PartProps & { projects: ProjectRow[]; pools: PoolRow[] }) {
  const { quota } = question;
  const projectOf = (name: string) => projects.find((row) => row.name === name);
  const quotaNow = (name: string) => {
    const project = projectOf(name);
    return project ? number(project.resources.gpu.quota) : '';
  };
  const change = (at: number, next: Partial<Quota>) => set({ quota: changed(quota, at, next) });
  const add = (
    <Button icon="plus" onClick={() => set({ quota: [...quota, { project: '', pool: '', gpu: '' }] })}>
      Change a quota
    </Button>
  );
  return (
    <Card title="Quotas" right={add}>
      {quota.length === 0 && <p class="muted">All quotas stay as they are.</p>}
      <div class="stack">
        {quota.map((one, at) => (
          <div class="repeat three" key={at}>
            <SelectField
              label="Project"
              name={`quota.${at}.project`}
              value={one.project}
              wrongs={wrongs}
              options={[['', 'choose'], ...leavesOf(projects)]}
              onChange={(project) => change(at, { project, pool: projectOf(project)?.pools[0]?.name ?? '' })}
            />
            <SelectField
              label="Node pool"
              name={`quota.${at}.pool`}
              value={one.pool}
              options={[['', NO_POOL], ...pools.map((pool): [string, string] => [pool.name, pool.name])]}
              onChange={(pool) => change(at, { pool })}
            />
            <TextField
              number
              label="GPU quota"
              name={`quota.${at}.gpu`}
              value={one.gpu}
              wrongs={wrongs}
              placeholder={quotaNow(one.project)}
              onInput={(gpu) => change(at, { gpu })}
            />
            <Button plain icon="close" label="Remove this quota" onClick={() => set({ quota: without(quota, at) })} />
          </div>
        ))}
      </div>
    </Card>
  );
}

function NodesPart({ question, set, wrongs, nodes }: PartProps & { nodes: NodeRow[] }) {
  const added = question.nodes;
  const change = (at: number, next: Partial<Nodes>) => set({ nodes: changed(added, at, next) });
  const add = (
    <Button icon="plus" onClick={() => set({ nodes: [...added, { like: nodes[0]?.name ?? '', count: '1' }] })}>
      Add nodes
    </Button>
  );
  return (
    <Card title="Nodes" right={add}>
      {added.length === 0 && <p class="muted">No nodes are added.</p>}
      <div class="stack">
        {added.map((one, at) => (
          <div class="repeat two" key={at}>
            <SelectField
              label="Same as node"
              name={`nodes.${at}.like`}
              value={one.like}
              wrongs={wrongs}
              options={nodes.map((node): [string, string] => [node.name, `${node.name} (${node.gpus.total} GPUs)`])}
              onChange={(like) => change(at, { like })}
            />
            <TextField
              number
              label="Number of nodes"
              name={`nodes.${at}.count`}
              value={one.count}
              wrongs={wrongs}
              onInput={(count) => change(at, { count })}
            />
            <Button plain icon="close" label="Remove these nodes" onClick={() => set({ nodes: without(added, at) })} />
          </div>
        ))}
      </div>
    </Card>
  );
}

const CLASSES: [string, string][] = [
  ['train', 'Training'],
  ['interactive', 'Interactive'],
  ['build', 'Build'],
  ['inference', 'Inference'],
];

function JobFields({
  job,
  change,
  wrongs,
  leaves,
}: {
  job: Job;
  change: (change: Partial<Job>) => void;
  wrongs: Wrongs;
  leaves: [string, string][];
}) {
  return (
    <div class="fields">
      <SelectField
        label="Project"
        name="job.spec.project"
        value={job.project}
        wrongs={wrongs}
        options={leaves}
        onChange={(project) => change({ project })}
      />
      <SelectField
        label="Class"
        name="job.type"
        value={job.type}
        options={CLASSES}
        onChange={(type) => change({ type })}
      />
      <TextField
        number
        label="Workers"
        name="job.workers"
        value={job.workers}
        wrongs={wrongs}
        onInput={(workers) => change({ workers })}
      />
      <TextField
        number
        label="GPUs per worker"
        name="job.gpus"
        value={job.gpus}
        wrongs={wrongs}
        onInput={(gpus) => change({ gpus })}
      />
    </div>
  );
}

function JobPart({ question, set, wrongs, projects }: PartProps & { projects: ProjectRow[] }) {
  const { job } = question;
  const leaves = leavesOf(projects);
  if (!job) {
    const first: Job = { project: leaves[0]?.[0] ?? '', workers: '1', gpus: '1', type: 'train' };
    const add = (
      <Button icon="plus" onClick={() => set({ job: first })}>
        Add a workload
      </Button>
    );
    return (
      <Card title="Workload" right={add}>
        <p class="muted">No workload is added.</p>
      </Card>
    );
  }
  const remove = <Button plain icon="close" label="Remove the workload" onClick={() => set({ job: undefined })} />;
  return (
    <Card title="Workload" right={remove}>
      <JobFields job={job} change={(change) => set({ job: { ...job, ...change } })} wrongs={wrongs} leaves={leaves} />
    </Card>
  );
}

function Outcome({ state, answer }: { state: string; answer?: WhatIfData }) {
  if (state === 'busy') {
    return (
      <Card>
        <Skeleton lines={5} />
      </Card>
    );
  }
  if (state === 'idle' && !answer) {
    return (
      <Card>
        <Empty title="No question yet">Add a change, then see the decisions that the scheduler would make.</Empty>
      </Card>
    );
  }
  return (
    <>
      {state !== 'idle' && <Notice tone="bad">{state}</Notice>}
      {answer && <Answer data={answer} />}
    </>
  );
}

export function WhatIf() {
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const pools = useView<Rows<PoolRow>>('nodepools').data?.rows ?? [];
  const nodes = useView<Rows<NodeRow>>('nodes').data?.rows ?? [];
  const [question, setQuestion] = useState<Question>({ quota: [], nodes: [] });
  const [wrongs, setWrongs] = useState(new Wrongs());
  const [answer, setAnswer] = useState<WhatIfData>();
  const [state, setState] = useState<'idle' | 'busy' | string>('idle');
  const set = (change: Partial<Question>) => setQuestion((old) => ({ ...old, ...change }));
  const ask = async () => {
    const found = check(question);
    setWrongs(found);
    if (found.any) return;
    setState('busy');
    try {
      setAnswer(await json<WhatIfData>('POST', '/ui/api/whatif', { body: requestOf(question, projects) }));
      setState('idle');
    } catch (error) {
      setAnswer(undefined);
      setState(errorText(error));
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void ask();
  };
  const part = { question, set, wrongs };
  // The scheduler decides on everybody's pods.
  if (may('list', 'swell.dev', 'podgroups') === false) {
    return (
      <>
        <Head title="What-if" />
        <Empty title="Only users who can read the whole cluster can ask this">
          The answer depends on everybody’s workloads. The page of a workload says under <em>Why</em> what it waits for.
        </Empty>
      </>
    );
  }
  return (
    <>
      <Head title="What-if" />
      <p class="muted">
        The changes are tried on a copy of the cluster’s state with the scheduler’s own code. The cluster itself stays
        as it is.
      </p>
      <div class="columns">
        <form class="stack" noValidate onSubmit={submit}>
          <QuotaPart {...part} projects={projects} pools={pools} />
          <NodesPart {...part} nodes={nodes} />
          <JobPart {...part} projects={projects} />
          {wrongs.at('') && <Notice tone="wait">{wrongs.at('')}</Notice>}
          <div>
            <Button type="submit" primary disabled={state === 'busy'}>
              {state === 'busy' ? 'Trying it …' : 'Show what would happen'}
            </Button>
          </div>
        </form>
        <div class="stack" aria-live="polite">
          <Outcome state={state} answer={answer} />
        </div>
      </div>
    </>
  );
}
