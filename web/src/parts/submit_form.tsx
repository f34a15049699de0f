// Submitting a workload: the form, then the manifest and what the scheduler would do with it.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ownProjects } from '../lib/access.ts';
import { ApiError, errorText, json, kube, objectPath } from '../lib/api.ts';
import {
  TYPES,
  checkJob,
  claimOf,
  claimedBy,
  curvesClaim,
  jobObject,
  newJob,
  type EnvPair,
  type JobForm,
} from '../lib/job_form.ts';
import { useView } from '../lib/live.ts';
import { go, hrefOf } from '../lib/router.ts';
import type { KubeObject, PlanData, ProjectRow, Rows } from '../lib/types.ts';
import { toYaml } from '../lib/yaml.ts';
import { Button, CheckBox, Notice, Skeleton, toast } from './basic.tsx';
import {
  Dialog,
  Field,
  FormFoot,
  OtherWrongs,
  SelectField,
  TextField,
  Wrongs,
  checkName,
  useWrongs,
  wrongsOf,
} from './dialog.tsx';

const PLURALS: Record<string, string> = {
  TrainingJob: 'trainingjobs',
  PyTorchJob: 'pytorchjobs',
  TFJob: 'tfjobs',
  XGBoostJob: 'xgboostjobs',
  PaddleJob: 'paddlejobs',
  JAXJob: 'jaxjobs',
  MPIJob: 'mpijobs',
  XDLJob: 'xdljobs',
  MarsJob: 'marsjobs',
  ElasticDLJob: 'elasticdljobs',
  TrainingWorkload: 'trainingworkloads',
  InteractiveWorkload: 'interactiveworkloads',
  DistributedWorkload: 'distributedworkloads',
  InferenceWorkload: 'inferenceworkloads',
  TrainJob: 'trainjobs',
  Job: 'jobs',
};

// Where the API server shows errors of a TrainingJob, as fields of this form.
const API_FIELDS: [RegExp, string][] = [
  [/^metadata\.(?:name|generateName)/, 'metadata.name'],
  [/^spec\.project/, 'spec.project'],
  [/^spec\.priorityClassName/, 'spec.priorityClassName'],
  [/\.replicas$/, 'workers'],
  [/\.elastic/, 'least'],
  [/image$/, 'image'],
  [/nvidia\.com\/gpu|gpu-fraction/, 'gpus'],
  [/\bmemory\b/, 'memory'],
  [/\bcpu\b/, 'cpu'],
  [/command/, 'command'],
];
const MESSAGE_FIELDS: [RegExp, string][] = [
  [/PriorityClass/, 'spec.priorityClassName'],
  [/project "|^namespaces "/, 'spec.project'],
  [/GPUs? at once/, 'gpus'],
];
function toFormFields(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const causes = error.causes.map((cause) => ({
    ...cause,
    field: API_FIELDS.find(([pattern]) => pattern.test(cause.field))?.[1] ?? cause.field,
  }));
  // Admission says what is wrong in a sentence without a field.
  if (causes.length === 0) {
    const field = MESSAGE_FIELDS.find(([pattern]) => pattern.test(error.message))?.[1];
    if (field) causes.push({ field, message: error.message });
  }
  return new ApiError(error.status, error.message, error.reason, causes);
}
const FIELDS = [
  'metadata.name',
  'spec.project',
  'spec.priorityClassName',
  'workers',
  'least',
  'image',
  'gpus',
  'memory',
  'cpu',
  'command',
];

interface FieldsProps {
  form: JobForm;
  set: (change: Partial<JobForm>) => void;
  wrongs: Wrongs;
}

function NameFields({ form, set, wrongs, projects }: FieldsProps & { projects: ProjectRow[] }) {
  const noneText = form.namespace && !form.project ? `none: namespace ${form.namespace}` : 'choose a project';
  const namespaceOf = (project: string) => projects.find((row) => row.name === project)?.namespace ?? '';
  return (
    <div class="fields">
      <TextField
        label="Workload name"
        name="metadata.name"
        value={form.name}
        onInput={(name) => set({ name })}
        wrongs={wrongs}
        placeholder="large-training-job"
      />
      <SelectField
        label="Project"
        name="spec.project"
        value={form.project}
        wrongs={wrongs}
        options={[['', noneText], ...projects.map((row): [string, string] => [row.name, row.name])]}
        onChange={(project) => set({ project, namespace: namespaceOf(project) })}
      />
    </div>
  );
}

function ProgramFields({ form, set, wrongs }: FieldsProps) {
  return (
    <>
      <SelectField
        label="Class"
        name="type"
        value={form.type}
        onChange={(type) => set({ type })}
        options={TYPES.map((one): [string, string] => [one.name, one.title])}
      />
      <TextField
        label="Image"
        name="image"
        value={form.image}
        onInput={(image) => set({ image })}
        wrongs={wrongs}
        placeholder="pytorch/pytorch:latest"
      />
      <TextField
        label="Command"
        name="command"
        value={form.command}
        onInput={(command) => set({ command })}
        wrongs={wrongs}
        placeholder="python train.py"
        area={2}
        help="It is run by a shell, and may have several lines. If empty, the image’s own command runs."
      />
    </>
  );
}

function SizeFields({ form, set, wrongs }: FieldsProps) {
  return (
    <>
      <div class="fields four">
        <TextField
          number
          label="Workers"
          name="workers"
          value={form.workers}
          onInput={(workers) => set({ workers })}
          wrongs={wrongs}
        />
        <TextField
          number
          label="GPUs each"
          name="gpus"
          value={form.gpus}
          onInput={(gpus) => set({ gpus })}
          wrongs={wrongs}
          help="0.5 shares a GPU."
        />
        <TextField
          label="CPUs each"
          name="cpu"
          value={form.cpu}
          onInput={(cpu) => set({ cpu })}
          wrongs={wrongs}
          placeholder="any"
        />
        <TextField
          label="Memory each"
          name="memory"
          value={form.memory}
          onInput={(memory) => set({ memory })}
          wrongs={wrongs}
          placeholder="any"
        />
      </div>
      <CheckBox
        label="Elastic: may run with fewer workers when GPUs are scarce"
        checked={form.elastic}
        onChange={(elastic) => set({ elastic })}
      />
      {form.elastic && (
        <TextField
          number
          label="Minimum workers"
          name="least"
          value={form.least}
          onInput={(least) => set({ least })}
          wrongs={wrongs}
        />
      )}
    </>
  );
}

function PriorityFields({ form, set, wrongs, classes }: FieldsProps & { classes: string[] }) {
  return (
    <div class="fields">
      <SelectField
        label="Priority class"
        name="spec.priorityClassName"
        value={form.priority}
        wrongs={wrongs}
        onChange={(priority) => set({ priority })}
        options={[['', `default for ${form.type}`], ...classes.map((one): [string, string] => [one, one])]}
      />
      <SelectField
        label="When it is preempted"
        name="onPreemption"
        value={form.onPreemption}
        onChange={(onPreemption) => set({ onPreemption })}
        options={[
          ['Requeue', 'wait and resume'],
          ['Fail', 'end as failed'],
        ]}
      />
    </div>
  );
}

function EnvFields({ form, set, wrongs }: FieldsProps) {
  const change = (index: number, next: Partial<EnvPair>) =>
    set({ env: form.env.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  const remove = (index: number) => set({ env: form.env.filter((_, at) => at !== index) });
  return (
    <fieldset>
      <legend>Environment</legend>
      {form.env.map((pair, index) => (
        <div class="repeat two" key={index}>
          <TextField
            label="Name"
            name={`env.${index}`}
            value={pair.name}
            wrongs={wrongs}
            onInput={(name) => change(index, { name })}
          />
          <TextField
            label="Value"
            name={`env.${index}.value`}
            value={pair.value}
            onInput={(value) => change(index, { value })}
          />
          <Button plain icon="close" label={`Remove the variable ${pair.name}`} onClick={() => remove(index)} />
        </div>
      ))}
      <div>
        <Button icon="plus" onClick={() => set({ env: [...form.env, { name: '', value: '' }] })}>
          Add a variable
        </Button>
      </div>
    </fieldset>
  );
}

function Fields({ projects, server, ...props }: FieldsProps & { projects: ProjectRow[]; server: Offers }) {
  const { form, set } = props;
  return (
    <>
      <NameFields {...props} projects={projects} />
      <ProgramFields {...props} />
      <SizeFields {...props} />
      {server.curves && (
        <CheckBox
          label="TensorBoard: keep the curves that the SDK writes, and show them beside the workload"
          checked={form.curves}
          onChange={(on) => set({ curves: on })}
        />
      )}
      <PriorityFields {...props} classes={server.classes} />
      <EnvFields {...props} />
    </>
  );
}

// `hidden`: the user may not read all that the scheduler decides on.
export function Plan({ plan, error, hidden }: { plan?: PlanData; error?: string; hidden?: boolean }) {
  if (hidden) {
    return (
      <Notice>
        <strong>The manifest is valid.</strong> Where the workload would start depends on everybody’s workloads, and
        only users who can read the whole cluster see that. Once it is submitted, its page says why it waits.
      </Notice>
    );
  }
  if (error) return <Notice tone="bad">The plan could not be made: {error}</Notice>;
  if (!plan) return <Skeleton lines={3} />;
  const displaced = (plan.displaces ?? []).map(
    (one) => `${one.namespace}/${one.name}${one.members ? ` (${one.members})` : ''}`,
  );
  return (
    <Notice tone={plan.starts ? undefined : 'wait'}>
      <strong>{plan.starts ? 'It would start at once.' : 'It would wait.'}</strong>
      <pre tabIndex={0} aria-label="The plan, as swell submit prints it">
        {plan.text.join('\n')}
      </pre>
      {displaced.length > 0 && <div>It would displace: {displaced.join(', ')}</div>}
      {(plan.placement?.length ?? 0) > 0 && (
        <div class="muted">Placement: {plan.placement?.map((one) => `${one.members} on ${one.node}`).join(', ')}</div>
      )}
    </Notice>
  );
}

export function collectionOf(yaml: string, object?: KubeObject): string {
  const of = (key: string) => new RegExp(`^${key}: *["']?([^\\s"'#]+)`, 'm').exec(yaml)?.[1] ?? '';
  const kind = object?.kind ?? of('kind');
  const apiVersion = object?.apiVersion ?? of('apiVersion');
  const ns = object?.metadata?.namespace ?? /^ {2}namespace: *["']?([^\s"'#]+)/m.exec(yaml)?.[1];
  if (!kind || !apiVersion) throw new Error('The manifest has no apiVersion or no kind.');
  if (!PLURALS[kind])
    throw new Error(`The kind ${kind} is not a workload. These are: ${Object.keys(PLURALS).join(', ')}.`);
  if (!ns) throw new Error('The manifest has no metadata.namespace.');
  return objectPath(apiVersion, PLURALS[kind] ?? '', ns);
}

// The claim for curves is created first, since pods would wait for it. It is deleted with the workload.
async function submitWith(yaml: string, path: string): Promise<KubeObject> {
  const make = () => kube.create<KubeObject>(`${path}?fieldValidation=Strict`, yaml, 'application/yaml');
  const job = claimedBy(yaml);
  const namespace = /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? '';
  if (!job || new RegExp(`^ {2}name: *["']?${job}["']?$`, 'm').exec(yaml) === null) return make();
  const claims = objectPath('v1', 'persistentvolumeclaims', namespace);
  await kube.create(claims, curvesClaim(job, namespace));
  let made: KubeObject;
  try {
    made = await make();
  } catch (error) {
    await kube.remove(`${claims}/${claimOf(job)}`).catch(() => undefined);
    throw error;
  }
  const { apiVersion, kind, metadata } = made;
  // The workload runs even if these two requests fail. Its page shows the state of TensorBoard.
  await kube
    .patch(`${claims}/${claimOf(job)}`, {
      metadata: { ownerReferences: [{ apiVersion, kind, name: metadata?.name, uid: metadata?.uid }] },
    })
    .catch((error: unknown) => toast(errorText(error), true));
  json('POST', `/ui/api/tensorboard?namespace=${namespace}&name=${job}&kind=${kind}`).catch((error: unknown) =>
    toast(errorText(error), true),
  );
  return made;
}

// What the cluster offers to a workload.
interface Offers {
  classes: string[]; // of priority
  curves: boolean; // there are volumes for TensorBoard's curves
}

interface StorageClasses {
  items: { provisioner: string; metadata: { annotations?: Record<string, string> } }[];
}

function useOffers(): Offers {
  const [classes, setClasses] = useState<string[]>([]);
  const [curves, setCurves] = useState(false);
  useEffect(() => {
    kube.get<{ items: { metadata: { name: string } }[] }>('/apis/scheduling.k8s.io/v1/priorityclasses').then(
      (list) => setClasses(list.items.map((one) => one.metadata.name).filter((name) => !name.startsWith('system-'))),
      () => setClasses([]),
    );
    // Only volumes of the machine itself can be mounted by several pods at once without any setup.
    const isLocal = (one: StorageClasses['items'][number]) =>
      one.provisioner === 'local.swell.dev' &&
      one.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';
    kube.get<StorageClasses>('/apis/storage.k8s.io/v1/storageclasses').then(
      (list) => setCurves(list.items.some(isLocal)),
      () => setCurves(false),
    );
  }, []);
  return { classes, curves };
}

type Step = 'form' | 'review';

function submitText(step: Step, busy: boolean, isChecked: boolean): string {
  if (busy) return 'Checking …';
  if (step === 'form') return 'Show the plan';
  return isChecked ? 'Submit' : 'Check and show the plan';
}

function check(form: JobForm): Wrongs {
  const found = new Wrongs();
  const bad = checkName(form.name);
  if (bad) found.add('metadata.name', bad);
  checkJob(form, (field, message) => found.add(field, message));
  return found;
}

// The manifest, and what the scheduler would do with it.
function Review({ yaml, setYaml, plan }: { yaml: string; setYaml: (yaml: string) => void; plan?: ComponentChildren }) {
  return (
    <>
      {plan ?? <p class="muted">Check the manifest to see where the workload would run, and what it would displace.</p>}
      <Field label="Manifest" name="yaml" help="You can change it here. It is checked again before it is sent.">
        {(props) => (
          <textarea
            {...props}
            rows={18}
            spellcheck={false}
            value={yaml}
            onInput={(event) => setYaml(event.currentTarget.value)}
          />
        )}
      </Field>
    </>
  );
}

// The plan for a manifest that the server has checked.
function usePlan() {
  const [plan, setPlan] = useState<PlanData>();
  const [error, setError] = useState<unknown>();
  const [checked, setChecked] = useState(''); // the manifest that the plan is for
  // The server reads the YAML and checks it, as it would when the workload is made.
  const dryRun = async (text: string): Promise<void> => {
    const path = `${collectionOf(text)}?dryRun=All&fieldValidation=Strict`;
    const object = await kube.create<KubeObject>(path, text, 'application/yaml');
    setChecked(text);
    setPlan(undefined);
    setError(undefined);
    json<PlanData>('POST', '/ui/api/plan', { body: asManifest(object) }).then(setPlan, setError);
  };
  const hidden = error instanceof ApiError && error.status === 403;
  const shown = <Plan plan={plan} error={error === undefined ? undefined : errorText(error)} hidden={hidden} />;
  return { checked, dryRun, shown };
}

export function SubmitForm({ done, manifest }: { done: () => void; manifest?: string }) {
  const all = useView<Rows<ProjectRow>>('projects').data?.rows;
  const projects = ownProjects(all ?? []);
  const server = useOffers();
  const [form, setForm] = useState<JobForm>(newJob());
  const [yaml, setYaml] = useState(manifest ?? '');
  const [step, setStep] = useState<Step>(manifest ? 'review' : 'form');
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(false);
  const plan = usePlan();
  const isChecked = yaml === plan.checked;
  const set = (change: Partial<JobForm>) => setForm((old) => ({ ...old, ...change }));
  const only = projects.length === 1 ? projects[0] : undefined;
  useEffect(() => {
    if (form.project) return;
    if (only) set({ project: only.name, namespace: only.namespace ?? '' });
    if (all?.length === 0) set({ namespace: 'default' });
  }, [only?.name, all?.length]);
  const work = async (run: () => Promise<void>, inForm: boolean) => {
    setBusy(true);
    try {
      setWrongs(new Wrongs());
      await run();
    } catch (error) {
      setWrongs(wrongsOf(inForm ? toFormFields(error) : error, inForm ? FIELDS : []));
    }
    setBusy(false);
  };
  const review = () => {
    const found = check(form);
    setWrongs(found);
    if (found.any) return;
    const text = toYaml(jobObject(form));
    void work(async () => {
      await plan.dryRun(text);
      setYaml(text);
      setStep('review');
    }, true);
  };
  const submit = () => {
    if (step === 'form') return review();
    if (!isChecked) return void work(() => plan.dryRun(yaml), false);
    void work(async () => {
      const { kind = '', metadata } = await submitWith(yaml, collectionOf(yaml));
      toast(`Workload ${metadata?.name} is submitted.`);
      done();
      go(hrefOf.job({ namespace: metadata?.namespace ?? '', name: metadata?.name ?? '', kind }));
    }, false);
  };
  const writeYaml = () => {
    setYaml(toYaml(jobObject(form)));
    setStep('review');
  };
  const foot = (
    <>
      {step === 'review' && !manifest && <Button onClick={() => setStep('form')}>Back to the form</Button>}
      {step === 'form' && (
        <Button plain onClick={writeYaml}>
          Write YAML instead
        </Button>
      )}
      <span class="grow" />
      <FormFoot done={done} disabled={busy}>
        {submitText(step, busy, isChecked)}
      </FormFoot>
    </>
  );
  const fields = step === 'form' ? [...FIELDS, ...form.env.map((_, index) => `env.${index}`)] : [];
  return (
    <Dialog
      title={step === 'form' ? 'New workload' : 'New workload: manifest and plan'}
      onClose={done}
      onSubmit={submit}
      busy={busy}
      foot={foot}
    >
      <OtherWrongs wrongs={wrongs} fields={fields} />
      {step === 'form' && <Fields form={form} set={set} wrongs={wrongs} projects={projects} server={server} />}
      {step === 'review' && <Review yaml={yaml} setYaml={setYaml} plan={isChecked && yaml ? plan.shown : undefined} />}
    </Dialog>
  );
}

function asManifest(object: KubeObject): KubeObject {
  const {
    uid: _,
    creationTimestamp: __,
    managedFields: ___,
    resourceVersion: ____,
    ...metadata
  } = object.metadata ?? {};
  return { ...object, metadata };
}
