// The page of one job: what it does and why, its workers, logs, events and manifest.
import { useEffect, useState } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { errorText, kube } from '../lib/api.ts';
import { now } from '../lib/clock.ts';
import { dateTime, gpuHours, number, runOf, span, waitOf } from '../lib/format.ts';
import { useView } from '../lib/live.ts';
import { hrefOf, param } from '../lib/router.ts';
import { asNew } from '../lib/job_form.ts';
import type { Hang, JobData, JobMember, KubeObject, Rows, WhyData, WorkloadRow } from '../lib/types.ts';
import { toYaml } from '../lib/yaml.ts';
import { Age, Button, Card, Empty, Facts, Head, JobStatus, Notice, ProjectName, Status, TabPanel, Tabs, Waiting, toast } from '../parts/basic.tsx';
import { open } from '../parts/dialog.tsx';
import { Grid } from '../parts/grid.tsx';
import { HangCard } from '../parts/hang.tsx';
import { deleteJobs, isOver, isSuspended, mayAll, pathOf, resizeJob, resumeJobs, suspendJobs } from '../parts/job_actions.tsx';
import { LogView } from '../parts/log_view.tsx';
import { ProgressLine } from '../parts/progress.tsx';
import { SubmitForm } from '../parts/submit_form.tsx';
import { TensorboardButton } from '../parts/tensorboard.tsx';
import { Throughput } from '../parts/throughput.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { EVENT_COLUMNS, withKeys } from './events.tsx';

function Actions({ row, data }: { row: WorkloadRow; data?: JobData }) {
  const change = mayAll('patch', [row]);
  const drop = mayAll('delete', [row]);
  const create = mayAll('create', [row]);
  const says = data?.actions;
  const over = isOver(row.status);
  const elastic = row.members.min !== null && row.members.min !== undefined && row.members.min !== row.members.max;
  const copy = () => {
    kube.get<KubeObject>(pathOf(row)).then((object) => open((done) => <SubmitForm done={done} manifest={toYaml(asNew(object, `${row.name}-copy`))} />), (error: unknown) => toast(errorText(error), true));
  };
  return (
    <>
      {change && (says?.suspend ?? (!over && !isSuspended(row))) && <Button icon="pause" onClick={() => suspendJobs([row])}>Suspend</Button>}
      {change && (says?.resume ?? isSuspended(row)) && <Button icon="play" onClick={() => resumeJobs([row])}>Resume</Button>}
      {change && (says?.scale ?? (!over && elastic)) && <Button onClick={() => resizeJob(row)}>Resize</Button>}
      <TensorboardButton row={row} />
      {create && <Button onClick={copy}>Copy &amp; edit</Button>}
      {drop && (says?.delete ?? true) && <Button icon="trash" danger onClick={() => deleteJobs([row])}>Delete</Button>}
    </>
  );
}

const DONE: Record<string, string> = { Succeeded: 'Nothing: the workload has done its work.', Running: 'Nothing: the workload runs.' };
const NEEDS: Record<string, string> = { gpus: 'GPUs', members: 'Members', least: 'Members at least', pool: 'Node pool', cpu: 'CPUs', memory: 'Memory' };

function Why({ row, hang }: { row: WorkloadRow; hang?: Hang | null }) {
  const view = useView<WhyData>('why', { namespace: row.namespace, name: row.name, kind: row.kind });
  const why = view.data;
  if (!why) return <Card title="Why"><Waiting state={view} /></Card>;
  const needs = Object.entries(why.needs ?? {}).filter(([, value]) => value !== null && value !== undefined && typeof value !== 'object');
  return (
    <div class="stack">
      <Card title="Why"><p class="sentence">{why.sentence}</p>{why.lines.length > 1 && <pre class="text" tabIndex={0} aria-label="The same, as swell why prints it" style={{ marginTop: '12px' }}>{why.lines.join('\n')}</pre>}</Card>
      {hang && !hang.now && <HangCard hang={hang} />}
      {needs.length > 0 && <Card title="It needs"><Facts facts={needs.map(([key, value]) => [NEEDS[key] ?? key, typeof value === 'number' ? number(value) : String(value)])} /></Card>}
      <div class="columns">
        {why.next && <Card title="What to do next"><p>{why.next}.</p></Card>}
        {why.waits && <Card title="What would start it">
          {(why.starts?.length ?? 0) === 0 ? <p class="muted">No small change is known that would start it.</p>
            : <ul class="stack" style={{ gap: '8px' }}>{why.starts?.map((one, index) => <li key={index}><strong>{one.change}</strong>{one.text !== one.change && <div class="muted">{one.text}</div>}</li>)}</ul>}
        </Card>}
        {!why.waits && !why.next && DONE[row.status] && <Card title="What to do next"><p class="muted">{DONE[row.status]}</p></Card>}
        {(why.ahead?.length ?? 0) > 0 && <Card title="Ahead in the queue">
          <ol class="stack" style={{ gap: '4px' }}>{why.ahead?.map((one) => <li key={`${one.namespace}/${one.name}`}><a href={hrefOf.workloads({ q: one.name })}>{one.namespace}/{one.name}</a></li>)}</ol>
        </Card>}
        {(why.displaces?.length ?? 0) > 0 && <Card title="It would displace"><ul>{why.displaces?.map((one, index) => <li key={index}>{typeof one === 'string' ? one : `${one.namespace}/${one.name}${one.members ? `, ${one.members} members` : ''}`}</li>)}</ul></Card>}
      </div>
    </div>
  );
}

const WARNINGS: Record<string, string> = { Straggler: 'A rank is slow', CheckpointFailed: 'The last save failed', WorldMismatch: 'Ranks train apart', SuspensionWaits: 'The suspension waits' };

// A terminal is not part of the pages; the command that opens one is.
function shellOf(row: WorkloadRow, pod: string): string {
  return `swell exec -it -n ${row.namespace} ${pod} -- sh`;
}
function copyShell(row: WorkloadRow, pod: string): void {
  const command = shellOf(row, pod);
  // Outside of a secure context there is no clipboard.
  const copied = navigator.clipboard?.writeText(command) ?? Promise.reject(new Error());
  copied.then(() => toast(`Copied: ${command}`), () => toast(command));
}

function Workers({ data }: { data: JobData }) {
  const exec = may('create', '', 'pods', data.summary.namespace, 'exec');
  return (
    <Grid name={`workers-${data.summary.name}`} label="Workers" rows={data.members} rowKey={(row) => `${row.pod} ${row.attempt ?? ''}`} height="560px" what={['worker', 'workers']}
      empty={<Empty title="The workload has no pods now">While it waits, is suspended or is over, it holds no GPUs.</Empty>}
      columns={[
        { key: 'pod', title: 'Pod', value: (row) => row.pod, width: 190, grow: 1.4 },
        { key: 'role', title: 'Role', value: (row) => row.role, width: 90, grow: 0.4, filter: true, spare: 3 },
        { key: 'index', title: 'Index', value: (row) => row.index, width: 70, grow: 0.2, num: true, spare: 6 },
        { key: 'status', title: 'Status', value: (row) => row.status, cell: (row) => <><Status word={row.status} reason={row.reason ?? row.message} />{row.straggler && <> <Status word="slow" reason="Much slower than the other ranks" /></>}</>, width: 150, grow: 0.5, filter: true },
        { key: 'node', title: 'Node', value: (row) => row.node, cell: (row) => (row.node ? <a class="cut" href={hrefOf.node(row.node)}>{row.node}</a> : <span class="muted">–</span>), width: 150, filter: true },
        { key: 'gpus', title: 'GPUs', value: (row) => row.gpus?.join(', '), width: 100, grow: 0.5 },
        ...(exec ? [{ key: 'shell', title: 'Shell', value: () => '', cell: (row: JobMember) => (row.status === 'Running' ? <Button plain label={`Copy the command that opens a shell in ${row.pod}: ${shellOf(data.summary, row.pod)}`} onClick={() => copyShell(data.summary, row.pod)}>Shell …</Button> : <span class="muted">–</span>), width: 96, grow: 0.2 }] : []),
        { key: 'restarts', title: 'Restarts', value: (row) => row.restarts ?? 0, width: 98, grow: 0.2, num: true, spare: 2 },
        { key: 'attempt', title: 'Attempt', value: (row) => row.attempt, width: 92, grow: 0.2, num: true, spare: 7 },
        { key: 'cpu', title: 'CPU used', value: (row) => row.cpu, cell: (row) => number(row.cpu), width: 104, grow: 0.3, num: true, spare: 9 },
        { key: 'memory', title: 'Memory used', value: (row) => row.memory, cell: (row) => (row.memory ? `${number(row.memory / 2 ** 30)} GiB` : '–'), width: 134, grow: 0.3, num: true, spare: 8 },
        { key: 'started', title: 'Started', value: (row) => row.started, cell: (row) => <Age time={row.started} />, width: 110, grow: 0.4, spare: 4 },
        { key: 'exit', title: 'Exit code', value: (row) => row.exitCode, width: 84, grow: 0.2, num: true, spare: 5 },
        { key: 'message', title: 'Message', value: (row) => row.message ?? row.reason, cell: (row) => <span class="cut two" title={row.message ?? row.reason ?? undefined}>{row.message ?? row.reason ?? '–'}</span>, width: 180, grow: 1.2 },
      ]} />
  );
}

function Yaml({ row }: { row: WorkloadRow }) {
  const [text, setText] = useState('');
  const [edited, setEdited] = useState<string>();
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const change = mayAll('update', [row]);
  const read = () => {
    kube.get<KubeObject>(pathOf(row)).then((object) => {
      setText(toYaml({ ...object, metadata: { ...object.metadata, managedFields: undefined } }));
      setWrong('');
    }, (error: unknown) => setWrong(errorText(error)));
  };
  useEffect(read, [row.uid]);
  const save = async () => {
    setBusy(true);
    try {
      await kube.replace(`${pathOf(row)}?fieldValidation=Strict`, edited, 'application/yaml');
      setEdited(undefined);
      toast(`Workload ${row.name} is changed.`);
      read();
    } catch (error) {
      setWrong(errorText(error));
    }
    setBusy(false);
  };
  return (
    <Card title="Manifest" right={edited === undefined
      ? <><Button onClick={read}>Read again</Button>{change && <Button icon="edit" onClick={() => setEdited(text)}>Edit</Button>}</>
      : <><Button onClick={() => { setEdited(undefined); setWrong(''); }}>Cancel</Button><Button primary disabled={busy} onClick={() => void save()}>Save</Button></>}>
      {wrong && <Notice tone="bad">{wrong}</Notice>}
      {edited === undefined ? <pre class="text" tabIndex={0} style={{ maxHeight: '70dvh' }}>{text}</pre> : <textarea aria-label="Manifest" rows={30} spellcheck={false} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />}
    </Card>
  );
}

function Summary({ row, data }: { row: WorkloadRow; data?: JobData }) {
  const { members } = row;
  const elastic = members.min !== null && members.min !== undefined && members.min !== members.max;
  return (
    <Card>
      {data?.sentence && <p class="sentence" style={{ marginBottom: '12px' }}>{data.sentence}</p>}
      <ProgressLine row={row} />
      <Facts facts={[
        ['Project', <ProjectName name={row.project} />], ['Workers', `${members.running} of ${members.requested}${elastic ? `, from ${members.min} to ${members.max}` : ''}`],
        ['GPUs held', `${number(row.gpus.held)} of ${number(row.gpus.requested)}`], ['Priority', `${row.priority ?? '–'}${row.preemptible === false ? ', not preemptible' : row.preemptible ? ', preemptible' : ''}`],
        ['Waited', span(waitOf(row, now.value))], ['Running for', span(runOf(row, now.value))], ['Throughput', row.throughput ? `${number(row.throughput)} ${row.throughputUnit ?? ''}/s` : '–'],
        ['Preemptions', number(row.preemptions ?? 0)], ['Lost GPU-hours', gpuHours(data?.lostGpuSeconds)], ['Created', <><Age time={row.created} />{row.createdBy ? ` by ${row.createdBy}` : ''}</>],
        ...(row.completed ? [['Completed', dateTime(row.completed)] as [string, string]] : []),
      ]} />
    </Card>
  );
}

export function JobPage() {
  const ref = { namespace: param('namespace'), name: param('name'), kind: param('kind') };
  const view = useView<JobData>('job', ref);
  const list = useView<Rows<WorkloadRow>>('workloads');
  const data = view.data;
  const row = data?.summary ?? list.data?.rows.find((one) => one.namespace === ref.namespace && one.name === ref.name && (!ref.kind || one.kind === ref.kind));
  const tab = param('tab') || 'timeline';
  const crumbs = [{ text: 'Workloads', href: '/workloads' }, { text: ref.namespace, href: hrefOf.workloads({ namespace: ref.namespace }) }];
  if (!row) {
    if (!list.data && !list.error) return <><Head title={ref.name} crumbs={crumbs} /><Waiting state={list} lines={8} /></>;
    return <><Head title={ref.name} crumbs={crumbs} /><Empty title={`There is no workload ${ref.namespace}/${ref.name}`}><p>It may have been deleted, or you have no right to see it. <a href="/workloads">See all workloads</a></p></Empty></>;
  }
  const missing = <Card><Waiting state={view} /></Card>;
  return (
    <>
      <Head title={row.name} crumbs={crumbs} badge={<><JobStatus row={row} /><span class="muted">{row.kind}</span></>}><Actions row={row} data={data} /></Head>
      {row.reason && !isOver(row.status) && row.status !== 'Running' && row.status !== 'Hung' && !data?.sentence?.includes(row.reason) && <Notice tone="wait">{row.reason} <a href={hrefOf.job(row, 'why')}>Why</a></Notice>}
      <Summary row={row} data={data} />
      {data?.warnings?.map((one) => <Notice key={one.type} tone="wait"><strong>{WARNINGS[one.type] ?? one.type}.</strong> {one.message} {one.since && <span class="muted">Since {dateTime(one.since)}.</span>}</Notice>)}
      {data?.hang?.now && <HangCard hang={data.hang} />}
      <Tabs first="timeline" tabs={[['timeline', 'Timeline'], ['throughput', 'Throughput'], ['why', 'Why'], ['workers', 'Workers'], ['logs', 'Logs'], ['events', 'Events'], ['yaml', 'YAML']]} />
      <TabPanel first="timeline">
        {tab === 'timeline' && (data ? <Card title="States over time"><Timeline job={data} /></Card> : missing)}
        {tab === 'throughput' && (data ? <Throughput job={data} /> : missing)}
        {tab === 'why' && <Why row={row} hang={data?.hang} />}
        {tab === 'workers' && (data ? <Workers data={data} /> : missing)}
        {tab === 'logs' && (data ? <LogView namespace={row.namespace} name={row.name} members={data.members} logs={data.logs ?? []} /> : missing)}
        {tab === 'events' && (data ? <Grid name={`events-${row.name}`} label="Events" columns={EVENT_COLUMNS} rows={withKeys(data.events)} rowKey={(one) => one.key} sort="-time" height="560px" what={['event', 'events']}
          empty={<Empty title="The workload has no events">They are kept for an hour.</Empty>} /> : missing)}
        {tab === 'yaml' && <Yaml row={row} />}
      </TabPanel>
    </>
  );
}
