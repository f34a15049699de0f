// The dialog that makes or changes a project.
import { useEffect, useState } from 'preact/hooks';
import { errorText, kube, objectPath } from '../lib/api.ts';
import { useView } from '../lib/live.ts';
import { DEFAULT_POOL, checkProject, fieldsOf, formOf, newProject, poolPath, projectObject, quotaPath, type PoolQuota, type ProjectForm as Form } from '../lib/project_form.ts';
import type { KubeObject, Member, PoolRow, ProjectRow, Rows } from '../lib/types.ts';
import { Button, NO_POOL, Notice, Skeleton, toast } from './basic.tsx';
import { Dialog, SelectField, TextField, Wrongs, checkName, focusWrong, wrongsOf } from './dialog.tsx';

const API = 'swell.dev/v1';

type Set = (change: Partial<Form>) => void;

function Quotas({ form, set, wrongs, pools }: { form: Form; set: Set; wrongs: Wrongs; pools: string[] }) {
  const change = (index: number, next: Partial<PoolQuota>) => set({ quotas: form.quotas.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  const free = [...pools, DEFAULT_POOL].filter((pool) => !form.quotas.some((one) => one.pool === pool));
  const options = (own: string): [string, string][] => [...new Set([own, ...free])].map((pool) => [pool, pool || NO_POOL]);
  return (
    <fieldset>
      <legend>Quota per node pool</legend>
      {form.quotas.map((quota, index) => (
        <div class="repeat" key={index}>
          <SelectField label="Node pool" name={poolPath(form, index)} value={quota.pool} options={options(quota.pool)} onChange={(pool) => change(index, { pool })} wrongs={wrongs} />
          <TextField number label="GPU quota" name={quotaPath(form, index, 'quota')} value={quota.quota} placeholder="0" onInput={(value) => change(index, { quota: value })} wrongs={wrongs} />
          <TextField number label="GPU limit" name={quotaPath(form, index, 'limit')} value={quota.limit} placeholder="no limit" onInput={(value) => change(index, { limit: value })} wrongs={wrongs} />
          <TextField number label="Lending limit" name={quotaPath(form, index, 'lendingLimit')} value={quota.lends} placeholder="all" onInput={(value) => change(index, { lends: value })} wrongs={wrongs} />
          <TextField number label="Weight" name={quotaPath(form, index, 'overQuotaWeight')} value={quota.weight} placeholder="as quota" onInput={(value) => change(index, { weight: value })} wrongs={wrongs} />
          <Button plain icon="close" label={`Remove the quota in ${quota.pool || 'nodes without a pool'}`} disabled={form.quotas.length === 1} onClick={() => set({ quotas: form.quotas.filter((_, at) => at !== index) })} />
        </div>
      ))}
      <p class="muted small">The project can always get its quota back. Beyond it, idle GPUs are shared by weight, up to the limit. Others use at most the lending limit of what it leaves idle.</p>
      {free.length > 0 && <div><Button icon="plus" onClick={() => set({ quotas: [...form.quotas, { pool: free[0] ?? '', quota: '', limit: '', lends: '', weight: '' }] })}>Add a node pool</Button></div>}
    </fieldset>
  );
}

// A mode that a later version has stays what it is.
const MODES: [string, string][] = [['', 'as the department or the cluster'], ['Goodput', 'Goodput: GPUs go to the jobs that make most of them'], ['None', 'None: as many members as a job asks for']];
const modesFor = (own: string): [string, string][] => (MODES.some(([mode]) => mode === own) ? MODES : [...MODES, [own, own]]);

const ROLES: [string, string][] = [['viewer', 'Viewer'], ['researcher', 'Researcher'], ['project-admin', 'Project admin']];
const KINDS: [string, string][] = [['User', 'User'], ['Group', 'Group'], ['ServiceAccount', 'Service account']];

function Members({ form, set, wrongs }: { form: Form; set: Set; wrongs: Wrongs }) {
  const change = (index: number, next: Partial<Member>) => set({ members: form.members.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  return (
    <fieldset>
      <legend>Members</legend>
      {form.members.map((member, index) => (
        <div class="repeat three" key={index}>
          <SelectField label="Kind" name={`spec.members.${index}.kind`} value={member.kind} options={KINDS} onChange={(kind) => change(index, { kind })} />
          <TextField label="Name" name={`spec.members.${index}.name`} value={member.name} onInput={(name) => change(index, { name })} wrongs={wrongs} />
          <SelectField label="Role" name={`spec.members.${index}.role`} value={member.role === 'admin' ? 'project-admin' : member.role} options={ROLES} onChange={(role) => change(index, { role })} />
          <Button plain icon="close" label={`Remove the member ${member.name}`} onClick={() => set({ members: form.members.filter((_, at) => at !== index) })} />
        </div>
      ))}
      <div><Button icon="plus" onClick={() => set({ members: [...form.members, { kind: 'User', name: '', role: 'researcher' }] })}>Add a member</Button></div>
    </fieldset>
  );
}

export function ProjectForm({ name, done }: { name?: string; done: () => void }) {
  const pools = useView<Rows<PoolRow>>('nodepools').data?.rows.map((row) => row.name);
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const [before, setBefore] = useState<KubeObject>();
  const [form, setForm] = useState<Form>();
  const [wrongs, setWrongs] = useState(new Wrongs());
  const [busy, setBusy] = useState(false);
  const [unread, setUnread] = useState('');
  const ready = pools !== undefined;
  useEffect(() => {
    if (!name) {
      if (ready && !form) setForm(newProject(pools ?? []));
      return;
    }
    kube.get<KubeObject>(objectPath(API, 'projects', null, name)).then((object) => {
      setBefore(object);
      setForm(formOf(object));
    }, (error: unknown) => setUnread(errorText(error)));
  }, [name, ready]);
  const set: Set = (change) => setForm((old) => old && { ...old, ...change });
  const submit = async () => {
    if (!form) return;
    const found = new Wrongs();
    const badName = name ? undefined : checkName(form.name.trim());
    if (badName) found.add('metadata.name', badName);
    checkProject(form, (field, message) => found.add(field, message));
    const namespace = form.namespace.trim() || form.name.trim();
    const owner = projects.find((row) => row.name !== form.name.trim() && row.namespace === namespace);
    if (owner) found.add(form.namespace.trim() ? 'spec.namespace' : 'metadata.name', `The namespace ${namespace} belongs to the project ${owner.name}. Choose another.`);
    if (form.namespace.trim() && checkName(form.namespace.trim())) found.add('spec.namespace', checkName(form.namespace.trim()) ?? '');
    const reserved = form.namespace.trim() ? 'spec.namespace' : 'metadata.name';
    if (namespace.startsWith('kube-')) found.add(reserved, `Namespaces that begin with "kube-" are Kubernetes’ own, so ${namespace} cannot hold the project’s work. Choose another.`);
    setWrongs(found);
    if (found.any) return focusWrong();
    setBusy(true);
    try {
      if (name) await kube.replace(objectPath(API, 'projects', null, name), projectObject(form, before));
      else await kube.create(objectPath(API, 'projects'), projectObject(form));
      toast(`Project ${form.name} was ${name ? 'changed' : 'created'}.`);
      done();
    } catch (error) {
      setWrongs(wrongsOf(error, fieldsOf(form)));
      setBusy(false);
      focusWrong();
    }
  };
  const others = projects.filter((row) => row.name !== name).map((row): [string, string] => [row.name, row.name]);
  return (
    <Dialog title={name ? `Edit project ${name}` : 'New project'} onClose={done} onSubmit={() => void submit()} busy={busy} foot={
      <><Button onClick={done}>Cancel</Button><Button type="submit" primary disabled={busy || !form}>{name ? 'Save' : 'Create project'}</Button></>}>
      {unread && <Notice tone="bad">{unread}</Notice>}
      {!form && !unread && <Skeleton lines={6} height={24} />}
      {form && (
        <>
          {wrongs.rest(fieldsOf(form)).map(([, text]) => <Notice key={text} tone="bad">{text}</Notice>)}
          <div class="fields">
            <TextField label="Project name" name="metadata.name" value={form.name} disabled={Boolean(name)} onInput={(value) => set({ name: value })} wrongs={wrongs} placeholder="project-a" />
            <SelectField label="Department" name="spec.parent" value={form.parent} onChange={(parent) => set({ parent })} options={[['', 'none'], ...others]} wrongs={wrongs} />
          </div>
          <TextField label="Description" name="spec.description" value={form.description} onInput={(description) => set({ description })} wrongs={wrongs} />
          <Quotas form={form} set={set} wrongs={wrongs} pools={pools ?? []} />
          <div class="fields">
            <TextField label="Namespace" name="spec.namespace" value={form.namespace} onInput={(namespace) => set({ namespace })} wrongs={wrongs} placeholder={form.name || 'the project’s name'} help="Its workloads run here. If empty, it has the project’s name." />
            <TextField number label="Priority" name="spec.priority" value={form.priority} onInput={(priority) => set({ priority })} wrongs={wrongs} placeholder="100" help="Projects with a higher priority are served first." />
          </div>
          <SelectField label="Autoscaling of elastic jobs" name="spec.autoscaling.default" value={form.autoscaling} onChange={(autoscaling) => set({ autoscaling })} options={modesFor(form.autoscaling)} wrongs={wrongs} help="Holds for elastic TrainingJobs of this project, and of those below it, that name no mode. A change applies to running jobs." />
          <Members form={form} set={set} wrongs={wrongs} />
        </>
      )}
    </Dialog>
  );
}
