// What would happen: another quota, more nodes or one more job, in a copy of the cluster's state.
import { useState } from 'preact/hooks';
import { errorText, json } from '../lib/api.ts';
import { gpuHours, number } from '../lib/format.ts';
import { checkJob, jobObject, newJob } from '../lib/job_form.ts';
import { useView } from '../lib/live.ts';
import type { NodeRow, PoolRow, ProjectRow, Rows, WhatIfData } from '../lib/types.ts';
import { Button, Card, Empty, Head, NO_POOL, Notice, Skeleton } from '../parts/basic.tsx';
import { SelectField, TextField, Wrongs, readNumber } from '../parts/dialog.tsx';
import { ReasonBadge } from '../parts/decisions.tsx';

interface Quota { project: string; pool: string; gpu: string }
interface Nodes { like: string; count: string }
interface Job { project: string; workers: string; gpus: string; type: string }
interface Question { quota: Quota[]; nodes: Nodes[]; job?: Job }

function check(question: Question): Wrongs {
  const wrongs = new Wrongs();
  question.quota.forEach((one, at) => {
    if (!one.project) wrongs.add(`quota.${at}.project`, 'Choose a project.');
    const value = readNumber(one.gpu);
    if (value === undefined || value < 0) wrongs.add(`quota.${at}.gpu`, 'Enter a number of 0 or more.');
  });
  question.nodes.forEach((one, at) => {
    if (!one.like) wrongs.add(`nodes.${at}.like`, 'Choose a node.');
    if (!/^\d+$/.test(one.count) || Number(one.count) < 1) wrongs.add(`nodes.${at}.count`, 'Enter a whole number of 1 or more.');
  });
  if (question.job) checkJob({ ...newJob(question.job.project), ...question.job, image: 'any', name: 'x' }, (field, message) => wrongs.add(`job.${field}`, message));
  if (!question.quota.length && !question.nodes.length && !question.job) wrongs.add('', 'Add a change first: a quota, nodes or a workload.');
  return wrongs;
}

const PARTS: [string, (data: NonNullable<WhatIfData['before']>) => number | null | undefined][] = [
  ['GPUs in total', (data) => data.gpus?.total], ['GPUs held', (data) => data.gpus?.held], ['Free GPUs', (data) => data.gpus?.free], ['Running workloads', (data) => data.jobs?.running], ['Pending workloads', (data) => data.jobs?.pending],
];

function Answer({ data }: { data: WhatIfData }) {
  const { before, after } = data;
  return (
    <div class="stack">
      {before && after && <Card title="Before and after">
        <table class="list-table"><thead><tr><th /><th class="num">Now</th><th class="num">Then</th><th class="num">Change</th></tr></thead>
          <tbody>{PARTS.map(([title, read]) => {
            const [old, next] = [read(before), read(after)];
            const change = (next ?? 0) - (old ?? 0);
            return <tr key={title}><td>{title}</td><td class="num">{number(old)}</td><td class="num">{number(next)}</td><td class="num">{change === 0 ? '–' : `${change > 0 ? '+' : ''}${number(change)}`}</td></tr>;
          })}
          {after.lostGpuSecondsToday !== undefined && <tr><td>Lost GPU-hours</td><td class="num">{gpuHours(before.lostGpuSecondsToday)}</td><td class="num">{gpuHours(after.lostGpuSecondsToday)}</td><td /></tr>}</tbody></table>
      </Card>}
      <Card title="Decisions that would follow">
        {data.decisions.length === 0 ? <p class="muted">The scheduler would change nothing.</p> : <ol class="stack" style={{ gap: '8px' }}>{data.decisions.map((one, index) => <li key={index}><ReasonBadge reason={one.kind} /> {one.text}</li>)}</ol>}
      </Card>
    </div>
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
  const leaves: [string, string][] = projects.filter((row) => row.namespace).map((row) => [row.name, row.name]);
  const ask = async () => {
    const found = check(question);
    setWrongs(found);
    if (found.any) return;
    setState('busy');
    const job = question.job;
    const namespace = projects.find((row) => row.name === job?.project)?.namespace ?? job?.project ?? '';
    try {
      setAnswer(await json<WhatIfData>('POST', '/ui/api/whatif', { body: {
        quota: question.quota.map((one) => ({ project: one.project, pool: one.pool, gpu: Number(one.gpu) })),
        addNodes: question.nodes.map((one) => ({ like: one.like, count: Number(one.count) })),
        ...(job ? { addJob: jobObject({ ...newJob(job.project, namespace), ...job, namespace, name: 'what-if', image: 'any' }) } : {}),
      } }));
      setState('idle');
    } catch (error) {
      setAnswer(undefined);
      setState(errorText(error));
    }
  };
  const quotaOf = (project: string) => projects.find((row) => row.name === project);
  return (
    <>
      <Head title="What-if" />
      <p class="muted">The changes are tried on a copy of the cluster’s state with the scheduler’s own code. The cluster itself stays as it is.</p>
      <div class="columns">
        <form class="stack" noValidate onSubmit={(event) => { event.preventDefault(); void ask(); }}>
          <Card title="Quotas" right={<Button icon="plus" onClick={() => set({ quota: [...question.quota, { project: '', pool: '', gpu: '' }] })}>Change a quota</Button>}>
            {question.quota.length === 0 && <p class="muted">All quotas stay as they are.</p>}
            <div class="stack">{question.quota.map((one, at) => {
              const change = (next: Partial<Quota>) => set({ quota: question.quota.map((old, index) => (index === at ? { ...old, ...next } : old)) });
              const own = quotaOf(one.project);
              return (
                <div class="repeat three" key={at}>
                  <SelectField label="Project" name={`quota.${at}.project`} value={one.project} wrongs={wrongs} options={[['', 'choose'], ...leaves]} onChange={(project) => change({ project, pool: quotaOf(project)?.pools[0]?.name ?? '' })} />
                  <SelectField label="Node pool" name={`quota.${at}.pool`} value={one.pool} options={[['', NO_POOL], ...pools.map((pool): [string, string] => [pool.name, pool.name])]} onChange={(pool) => change({ pool })} />
                  <TextField number label="GPU quota" name={`quota.${at}.gpu`} value={one.gpu} wrongs={wrongs} placeholder={own ? number(own.resources.gpu.quota) : ''} onInput={(gpu) => change({ gpu })} />
                  <Button plain icon="close" label="Remove this quota" onClick={() => set({ quota: question.quota.filter((_, index) => index !== at) })} />
                </div>
              );
            })}</div>
          </Card>
          <Card title="Nodes" right={<Button icon="plus" onClick={() => set({ nodes: [...question.nodes, { like: nodes[0]?.name ?? '', count: '1' }] })}>Add nodes</Button>}>
            {question.nodes.length === 0 && <p class="muted">No nodes are added.</p>}
            <div class="stack">{question.nodes.map((one, at) => {
              const change = (next: Partial<Nodes>) => set({ nodes: question.nodes.map((old, index) => (index === at ? { ...old, ...next } : old)) });
              return (
                <div class="repeat two" key={at}>
                  <SelectField label="Same as node" name={`nodes.${at}.like`} value={one.like} wrongs={wrongs} options={nodes.map((node): [string, string] => [node.name, `${node.name} (${node.gpus.total} GPUs)`])} onChange={(like) => change({ like })} />
                  <TextField number label="Number of nodes" name={`nodes.${at}.count`} value={one.count} wrongs={wrongs} onInput={(count) => change({ count })} />
                  <Button plain icon="close" label="Remove these nodes" onClick={() => set({ nodes: question.nodes.filter((_, index) => index !== at) })} />
                </div>
              );
            })}</div>
          </Card>
          <Card title="Workload" right={question.job ? <Button plain icon="close" label="Remove the workload" onClick={() => set({ job: undefined })} /> : <Button icon="plus" onClick={() => set({ job: { project: leaves[0]?.[0] ?? '', workers: '1', gpus: '1', type: 'train' } })}>Add a workload</Button>}>
            {!question.job && <p class="muted">No workload is added.</p>}
            {question.job && <div class="fields">
              <SelectField label="Project" name="job.spec.project" value={question.job.project} wrongs={wrongs} options={leaves} onChange={(project) => set({ job: { ...question.job as Job, project } })} />
              <SelectField label="Class" name="job.type" value={question.job.type} options={[['train', 'Training'], ['interactive', 'Interactive'], ['build', 'Build'], ['inference', 'Inference']]} onChange={(type) => set({ job: { ...question.job as Job, type } })} />
              <TextField number label="Workers" name="job.workers" value={question.job.workers} wrongs={wrongs} onInput={(workers) => set({ job: { ...question.job as Job, workers } })} />
              <TextField number label="GPUs per worker" name="job.gpus" value={question.job.gpus} wrongs={wrongs} onInput={(gpus) => set({ job: { ...question.job as Job, gpus } })} />
            </div>}
          </Card>
          {wrongs.at('') && <Notice tone="wait">{wrongs.at('')}</Notice>}
          <div><Button type="submit" primary disabled={state === 'busy'}>{state === 'busy' ? 'Trying it …' : 'Show what would happen'}</Button></div>
        </form>
        <div class="stack" aria-live="polite">
          {state === 'busy' && <Card><Skeleton lines={5} /></Card>}
          {state !== 'busy' && state !== 'idle' && <Notice tone="bad">{state}</Notice>}
          {state !== 'busy' && answer && <Answer data={answer} />}
          {state === 'idle' && !answer && <Card><Empty title="No question yet">Add a change on the left, then see the decisions that the scheduler would make.</Empty></Card>}
        </div>
      </div>
    </>
  );
}
