// The dialog that makes or changes a project.
import { useEffect, useState } from 'preact/hooks';
import { errorText, kube, objectPath } from '../lib/api.ts';
import { useView } from '../lib/live.ts';
import {
  DEFAULT_POOL,
  checkProject,
  fieldsOf,
  formOf,
  newProject,
  poolPath,
  projectObject,
  quotaPath,
  type PoolQuota,
  type ProjectForm as Form,
} from '../lib/project_form.ts';
import type { KubeObject, Member, PoolRow, ProjectRow, Rows } from '../lib/types.ts';
import { Button, NO_POOL, Notice, Skeleton, toast } from './basic.tsx';
import {
  Dialog,
  FormFoot,
  OtherWrongs,
  SelectField,
  TextField,
  Wrongs,
  checkName,
  useWrongs,
  wrongsOf,
} from './dialog.tsx';

const API = 'swell.dev/v1';

type Set = (change: Partial<Form>) => void;

interface QuotaProps {
  form: Form;
  index: number;
  change: (next: Partial<PoolQuota>) => void;
  wrongs: Wrongs;
}

const QUOTA_FIELDS: { label: string; key: 'quota' | 'limit' | 'lends' | 'weight'; path: string; empty: string }[] = [
  { label: 'GPU quota', key: 'quota', path: 'quota', empty: '0' },
  { label: 'GPU limit', key: 'limit', path: 'limit', empty: 'no limit' },
  { label: 'Lending limit', key: 'lends', path: 'lendingLimit', empty: 'all' },
  { label: 'Weight', key: 'weight', path: 'overQuotaWeight', empty: 'as quota' },
];

function QuotaFields({ form, index, change, wrongs }: QuotaProps) {
  const quota = form.quotas[index];
  return (
    <>
      {QUOTA_FIELDS.map(({ label, key, path, empty }) => (
        <TextField
          key={key}
          number
          label={label}
          name={quotaPath(form, index, path)}
          value={quota?.[key] ?? ''}
          placeholder={empty}
          onInput={(value) => change({ [key]: value })}
          wrongs={wrongs}
        />
      ))}
    </>
  );
}

function Quotas({ form, set, wrongs, pools }: { form: Form; set: Set; wrongs: Wrongs; pools: string[] }) {
  const { quotas } = form;
  const change = (index: number, next: Partial<PoolQuota>) =>
    set({ quotas: quotas.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  const remove = (index: number) => set({ quotas: quotas.filter((_, at) => at !== index) });
  const free = [...pools, DEFAULT_POOL].filter((pool) => !quotas.some((one) => one.pool === pool));
  const add = () => set({ quotas: [...quotas, { pool: free[0] ?? '', quota: '', limit: '', lends: '', weight: '' }] });
  const options = (own: string): [string, string][] =>
    [...new Set([own, ...free])].map((pool) => [pool, pool || NO_POOL]);
  return (
    <fieldset>
      <legend>Quota per node pool</legend>
      {quotas.map((quota, index) => (
        <div class="repeat" key={index}>
          <SelectField
            label="Node pool"
            name={poolPath(form, index)}
            value={quota.pool}
            options={options(quota.pool)}
            onChange={(pool) => change(index, { pool })}
            wrongs={wrongs}
          />
          <QuotaFields form={form} index={index} change={(next) => change(index, next)} wrongs={wrongs} />
          <Button
            plain
            icon="close"
            label={`Remove the quota in ${quota.pool || 'nodes without a pool'}`}
            disabled={quotas.length === 1}
            onClick={() => remove(index)}
          />
        </div>
      ))}
      <p class="muted small">
        The project can always get its quota back. Beyond it, idle GPUs are shared by weight, up to the limit. Others
        use at most the lending limit of what it leaves idle.
      </p>
      {free.length > 0 && (
        <div>
          <Button icon="plus" onClick={add}>
            Add a node pool
          </Button>
        </div>
      )}
    </fieldset>
  );
}

const AUTOSCALING_HELP =
  'Holds for elastic TrainingJobs of this project, and of those below it, that name no mode. ' +
  'A change applies to running jobs.';

// A mode that only a later version knows is kept.
const MODES: [string, string][] = [
  ['', 'as the department or the cluster'],
  ['Goodput', 'Goodput: GPUs go to the jobs that make most of them'],
  ['None', 'None: as many members as a job requests'],
];
const modesFor = (own: string): [string, string][] =>
  MODES.some(([mode]) => mode === own) ? MODES : [...MODES, [own, own]];

const ROLES: [string, string][] = [
  ['viewer', 'Viewer'],
  ['researcher', 'Researcher'],
  ['project-admin', 'Project admin'],
];
const KINDS: [string, string][] = [
  ['User', 'User'],
  ['Group', 'Group'],
  ['ServiceAccount', 'Service account'],
];

function Members({ form, set, wrongs }: { form: Form; set: Set; wrongs: Wrongs }) {
  const change = (index: number, next: Partial<Member>) =>
    set({ members: form.members.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  return (
    <fieldset>
      <legend>Members</legend>
      {form.members.map((member, index) => (
        <div class="repeat three" key={index}>
          <SelectField
            label="Kind"
            name={`spec.members.${index}.kind`}
            value={member.kind}
            options={KINDS}
            onChange={(kind) => change(index, { kind })}
          />
          <TextField
            label="Name"
            name={`spec.members.${index}.name`}
            value={member.name}
            onInput={(name) => change(index, { name })}
            wrongs={wrongs}
          />
          <SelectField
            label="Role"
            name={`spec.members.${index}.role`}
            value={member.role === 'admin' ? 'project-admin' : member.role}
            options={ROLES}
            onChange={(role) => change(index, { role })}
          />
          <Button
            plain
            icon="close"
            label={`Remove the member ${member.name}`}
            onClick={() => set({ members: form.members.filter((_, at) => at !== index) })}
          />
        </div>
      ))}
      <div>
        <Button
          icon="plus"
          onClick={() => set({ members: [...form.members, { kind: 'User', name: '', role: 'researcher' }] })}
        >
          Add a member
        </Button>
      </div>
    </fieldset>
  );
}

// What is wrong with the form. Its namespace is the one that it names, else the project's name.
function check(form: Form, isNew: boolean, projects: ProjectRow[]): Wrongs {
  const found = new Wrongs();
  const name = form.name.trim();
  const ownNamespace = form.namespace.trim();
  const namespace = ownNamespace || name;
  const field = ownNamespace ? 'spec.namespace' : 'metadata.name';
  const badName = isNew ? checkName(name) : undefined;
  if (badName) found.add('metadata.name', badName);
  checkProject(form, (at, message) => found.add(at, message));
  const owner = projects.find((row) => row.name !== name && row.namespace === namespace);
  if (owner) found.add(field, `The namespace ${namespace} belongs to the project ${owner.name}. Choose another.`);
  const badNamespace = ownNamespace ? checkName(ownNamespace) : undefined;
  if (badNamespace) found.add('spec.namespace', badNamespace);
  if (namespace.startsWith('kube-')) {
    found.add(
      field,
      'Namespaces that begin with "kube-" are Kubernetes’ own, ' +
        `so ${namespace} cannot hold the project’s work. Choose another.`,
    );
  }
  return found;
}

interface FieldsProps {
  form: Form;
  set: Set;
  wrongs: Wrongs;
}

function NameFields({ form, set, wrongs, fixed, parents }: FieldsProps & { fixed: boolean; parents: string[] }) {
  return (
    <>
      <div class="fields">
        <TextField
          label="Project name"
          name="metadata.name"
          value={form.name}
          disabled={fixed}
          onInput={(value) => set({ name: value })}
          wrongs={wrongs}
          placeholder="project-a"
        />
        <SelectField
          label="Department"
          name="spec.parent"
          value={form.parent}
          onChange={(parent) => set({ parent })}
          options={[['', 'none'], ...parents.map((name): [string, string] => [name, name])]}
          wrongs={wrongs}
        />
      </div>
      <TextField
        label="Description"
        name="spec.description"
        value={form.description}
        onInput={(description) => set({ description })}
        wrongs={wrongs}
      />
    </>
  );
}

function WorkFields({ form, set, wrongs }: FieldsProps) {
  return (
    <>
      <div class="fields">
        <TextField
          label="Namespace"
          name="spec.namespace"
          value={form.namespace}
          onInput={(namespace) => set({ namespace })}
          wrongs={wrongs}
          placeholder={form.name || 'the project’s name'}
          help="Its workloads run here. If empty, it has the project’s name."
        />
        <TextField
          number
          label="Priority"
          name="spec.priority"
          value={form.priority}
          onInput={(priority) => set({ priority })}
          wrongs={wrongs}
          placeholder="100"
          help="Projects with a higher priority are served first."
        />
      </div>
      <SelectField
        label="Autoscaling of elastic jobs"
        name="spec.autoscaling.default"
        value={form.autoscaling}
        onChange={(autoscaling) => set({ autoscaling })}
        options={modesFor(form.autoscaling)}
        wrongs={wrongs}
        help={AUTOSCALING_HELP}
      />
    </>
  );
}

// The form of a new project, or of the one that is stored.
function useProjectForm(name: string | undefined, pools: string[] | undefined) {
  const [before, setBefore] = useState<KubeObject>();
  const [form, setForm] = useState<Form>();
  const [unread, setUnread] = useState('');
  const ready = pools !== undefined;
  useEffect(() => {
    if (!name) {
      if (ready && !form) setForm(newProject(pools ?? []));
      return;
    }
    kube.get<KubeObject>(objectPath(API, 'projects', null, name)).then(
      (object) => {
        setBefore(object);
        setForm(formOf(object));
      },
      (error: unknown) => setUnread(errorText(error)),
    );
  }, [name, ready]);
  const set: Set = (change) => setForm((old) => old && { ...old, ...change });
  return { before, form, set, unread };
}

export function ProjectForm({ name, done }: { name?: string; done: () => void }) {
  const pools = useView<Rows<PoolRow>>('nodepools').data?.rows.map((row) => row.name);
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const { before, form, set, unread } = useProjectForm(name, pools);
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    if (!form) return;
    const found = check(form, !name, projects);
    setWrongs(found);
    if (found.any) return;
    setBusy(true);
    try {
      if (name) await kube.replace(objectPath(API, 'projects', null, name), projectObject(form, before));
      else await kube.create(objectPath(API, 'projects'), projectObject(form));
      toast(`Project ${form.name} was ${name ? 'changed' : 'created'}.`);
      done();
    } catch (error) {
      setWrongs(wrongsOf(error, fieldsOf(form)));
      setBusy(false);
    }
  };
  const parents = projects.map((row) => row.name).filter((one) => one !== name);
  const foot = (
    <FormFoot done={done} disabled={busy || !form}>
      {name ? 'Save' : 'Create project'}
    </FormFoot>
  );
  return (
    <Dialog
      title={name ? `Edit project ${name}` : 'New project'}
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={foot}
    >
      {unread && <Notice tone="bad">{unread}</Notice>}
      {!form && !unread && <Skeleton lines={6} height={24} />}
      {form && (
        <>
          <OtherWrongs wrongs={wrongs} fields={fieldsOf(form)} />
          <NameFields form={form} set={set} wrongs={wrongs} fixed={Boolean(name)} parents={parents} />
          <Quotas form={form} set={set} wrongs={wrongs} pools={pools ?? []} />
          <WorkFields form={form} set={set} wrongs={wrongs} />
          <Members form={form} set={set} wrongs={wrongs} />
        </>
      )}
    </Dialog>
  );
}
