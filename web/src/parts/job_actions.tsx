// What can be done to jobs: suspend, resume, resize, delete; one or many.
import { useState } from 'preact/hooks';
import { errorText, kube, objectPath } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { plural } from '../lib/format.ts';
import type { KubeObject, WorkloadRow } from '../lib/types.ts';
import { toast } from './basic.tsx';
import { Dialog, FormFoot, OtherWrongs, TextField, Wrongs, confirm, open, useWrongs, wrongsOf } from './dialog.tsx';

export type JobRef = Pick<WorkloadRow, 'namespace' | 'name' | 'kind' | 'apiVersion' | 'plural'>;

export const groupOf = (apiVersion: string) => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '');
export const pathOf = (job: JobRef) => objectPath(job.apiVersion, job.plural, job.namespace, job.name);

// Where a kind has the switch that suspends it: Kubeflow's operator keeps it in the run policy.
export function suspendPatch(apiVersion: string, suspend: boolean): unknown {
  return groupOf(apiVersion) === 'kubeflow.org' ? { spec: { runPolicy: { suspend } } } : { spec: { suspend } };
}

export const isSuspended = (row: { status: string }) => row.status === 'Suspended';

// Servers that Kubernetes' own controller runs: their size is their only switch.
export const isDeployment = (row: { kind: string }) => row.kind === 'Deployment';

// undefined while the server has not answered for all of them.
export function mayAll(verb: string, jobs: JobRef[]): boolean {
  const kinds = new Map(jobs.map((job) => [`${job.namespace} ${job.apiVersion} ${job.plural}`, job]));
  let all = true;
  for (const job of kinds.values())
    if (may(verb, groupOf(job.apiVersion), job.plural, job.namespace) !== true) all = false;
  return all && jobs.length > 0;
}

// One after the other, so that a refusal names its job and the others are still done.
async function each(jobs: JobRef[], what: string, run: (job: JobRef) => Promise<unknown>): Promise<void> {
  const wrong: string[] = [];
  for (const job of jobs) {
    try {
      await run(job);
    } catch (error) {
      wrong.push(`${job.namespace}/${job.name}: ${errorText(error)}`);
    }
  }
  const done = jobs.length - wrong.length;
  const only = jobs.length === 1 ? jobs[0] : undefined;
  if (done > 0) toast(`${only ? `Workload ${only.name} is` : `${plural(done, 'workload')} are`} ${what}.`);
  if (wrong.length > 0)
    throw new Error(wrong.slice(0, 5).join('\n') + (wrong.length > 5 ? `\nand ${wrong.length - 5} more` : ''));
}

const named = (jobs: JobRef[]) => (jobs.length === 1 ? (jobs[0]?.name ?? '') : plural(jobs.length, 'workload'));

export function suspendJobs(jobs: JobRef[], after?: () => void): void {
  confirm({
    title: `Suspend ${named(jobs)}?`,
    action: 'Suspend',
    text:
      'The pods are stopped with their grace period, and the GPUs are free for others. ' +
      'Resuming continues from the last checkpoint.',
    run: async () => {
      await each(jobs, 'being suspended', (job) => kube.patch(pathOf(job), suspendPatch(job.apiVersion, true)));
      after?.();
    },
  });
}
export function resumeJobs(jobs: JobRef[], after?: () => void): void {
  each(jobs, 'being resumed', (job) => kube.patch(pathOf(job), suspendPatch(job.apiVersion, false))).then(
    after,
    (error: unknown) => toast(errorText(error), true),
  );
}
export function deleteJobs(jobs: JobRef[], after?: () => void): void {
  confirm({
    title: `Delete ${named(jobs)}?`,
    action: 'Delete',
    danger: true,
    text:
      jobs.length === 1
        ? 'The workload and its pods are deleted. This cannot be undone.'
        : 'The workloads and their pods are deleted. This cannot be undone.',
    run: async () => {
      await each(jobs, 'deleted', (job) => kube.remove(`${pathOf(job)}?propagationPolicy=Background`));
      after?.();
    },
  });
}

const ROLES: Record<string, string> = {
  TrainingJob: 'roles',
  PyTorchJob: 'pytorchReplicaSpecs',
  TFJob: 'tfReplicaSpecs',
  XGBoostJob: 'xgbReplicaSpecs',
  PaddleJob: 'paddleReplicaSpecs',
  JAXJob: 'jaxReplicaSpecs',
  MPIJob: 'mpiReplicaSpecs',
  XDLJob: 'xdlReplicaSpecs',
  MarsJob: 'marsReplicaSpecs',
  ElasticDLJob: 'elasticdlReplicaSpecs',
};

// The role whose number of pods a size means: the elastic one, else the workers.
// `others`: the members of all other roles.
export function elasticRole(
  object: KubeObject,
): { field: string; role: string; replicas: number; others: number } | undefined {
  const field = ROLES[object.kind ?? ''];
  const roles = field
    ? (object.spec?.[field] as
        Record<string, { replicas?: number; elastic?: unknown; minReplicas?: number }> | undefined)
    : undefined;
  if (!field || !roles) return undefined;
  const names = Object.keys(roles);
  const role =
    names.find((name) => roles[name]?.elastic || roles[name]?.minReplicas !== undefined) ??
    names.find((name) => /^workers?$/i.test(name)) ??
    names[0];
  if (!role) return undefined;
  const others = names.filter((name) => name !== role).reduce((sum, name) => sum + (roles[name]?.replicas ?? 1), 0);
  return { field, role, replicas: roles[role]?.replicas ?? 1, others };
}

// Those that do not change with the size, and the change that gives the others this number.
export interface Resizing {
  others: number;
  patch: (replicas: number) => Record<string, unknown>;
}
export function resizing(object: KubeObject): Resizing | undefined {
  if (isDeployment({ kind: object.kind ?? '' })) return { others: 0, patch: (replicas) => ({ spec: { replicas } }) };
  // Kubernetes' own Job has no roles: so many of its pods run at once.
  if (object.kind === 'Job' && groupOf(object.apiVersion ?? '') === 'batch')
    return { others: 0, patch: (replicas) => ({ spec: { parallelism: replicas } }) };
  const found = elasticRole(object);
  if (!found) return undefined;
  const { field, role, others } = found;
  return { others, patch: (replicas) => ({ spec: { [field]: { [role]: { replicas } } } }) };
}

// undefined: a size can be asked for.
export function wrongSize(text: string, { min, max }: WorkloadRow['members']): string | undefined {
  if (!/^\d+$/.test(text.trim())) return 'Enter a whole number.';
  if (min === null || min === undefined || max === null || max === undefined || min === max) return undefined;
  if (Number(text) < min) return `The job needs at least ${min} members.`;
  return Number(text) > max ? `The job can have at most ${max} members.` : undefined;
}

function ResizeDialog({ job, done }: { job: WorkloadRow; done: () => void }) {
  const [size, setSize] = useState(String(job.members.requested));
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(false);
  const { min, max } = job.members;
  const submit = async () => {
    const found = new Wrongs();
    const wanted = Number(size);
    const wrong = wrongSize(size, job.members);
    if (wrong) found.add('size', wrong);
    setWrongs(found);
    if (found.any) return;
    setBusy(true);
    try {
      const object = await kube.get<KubeObject>(pathOf(job));
      const sizes = resizing(object);
      if (!sizes) throw new Error(`A ${job.kind} has no role that could be resized.`);
      if (wanted < sizes.others) {
        found.add('size', `The job's other roles have ${plural(sizes.others, 'member')}.`);
        setWrongs(found);
        setBusy(false);
        return;
      }
      await kube.patch(pathOf(job), {
        metadata: { resourceVersion: object.metadata?.resourceVersion },
        ...sizes.patch(wanted - sizes.others),
      });
      toast(`Workload ${job.name} is being resized to ${plural(wanted, 'member')}.`);
      done();
    } catch (error) {
      setWrongs(wrongsOf(error, []));
      setBusy(false);
    }
  };
  return (
    <Dialog
      small
      title={`Resize ${job.name}`}
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={
        <FormFoot done={done} disabled={busy}>
          Resize
        </FormFoot>
      }
    >
      <OtherWrongs wrongs={wrongs} fields={['size']} />
      <TextField
        number
        label="Members"
        name="size"
        value={size}
        onInput={setSize}
        wrongs={wrongs}
        help={
          min !== null && min !== undefined && min !== max
            ? `From ${min} to ${max ?? job.members.requested}. The job continues while its size changes.`
            : undefined
        }
      />
    </Dialog>
  );
}
export function resizeJob(job: WorkloadRow): void {
  open((done) => <ResizeDialog job={job} done={done} />);
}
