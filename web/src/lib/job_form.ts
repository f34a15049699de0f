// The form of a workload, and the TrainingJob that it makes. Pure.
import { wrongImage } from './image.ts';
import type { KubeObject } from './types.ts';

export interface EnvPair {
  name: string;
  value: string;
}
export interface JobForm {
  name: string;
  project: string;
  namespace: string;
  type: string;
  image: string;
  command: string;
  workers: string;
  gpus: string;
  elastic: boolean;
  least: string;
  cpu: string;
  memory: string;
  priority: string;
  onPreemption: string;
  env: EnvPair[];
  curves: boolean;
}

// The classes of workload, as runai submit knows them: the role of their pods, and their usual priority class.
export const TYPES: { name: string; title: string; role: string }[] = [
  { name: 'train', title: 'Training', role: 'worker' },
  { name: 'interactive', title: 'Interactive workspace', role: 'workspace' },
  { name: 'build', title: 'Build workspace (not preempted)', role: 'workspace' },
  { name: 'inference', title: 'Inference (not preempted)', role: 'server' },
];

export function newJob(project = '', namespace = ''): JobForm {
  return {
    name: '',
    project,
    namespace,
    type: 'train',
    image: '',
    command: '',
    workers: '1',
    gpus: '1',
    elastic: false,
    least: '1',
    cpu: '',
    memory: '',
    priority: '',
    onPreemption: 'Requeue',
    env: [],
    curves: false,
  };
}

const QUANTITY = /^\d+(?:\.\d+)?(?:m|k|K|M|G|T|Ki|Mi|Gi|Ti)?$/;

const LEAST_BYTES = 2 ** 20;

// An amount without a unit is in bytes, and m is a thousandth of one. Nobody means so little.
export function wrongMemory(text: string): string | undefined {
  if (!text) return undefined;
  if (!QUANTITY.test(text)) return 'Enter an amount such as 8Gi.';
  const [, amount = '', unit = ''] = /^([\d.]+)(m?)$/.exec(text) ?? [];
  if (!amount || (!unit && Number(amount) >= LEAST_BYTES)) return undefined;
  return unit
    ? `${text} is ${Number(amount) / 1000} bytes: did you mean ${amount}Mi?`
    : `${amount} bytes: did you mean ${amount}Gi?`;
}

export function checkJob(form: JobForm, add: (field: string, message: string) => void): void {
  if (!form.project && !form.namespace) add('spec.project', 'Choose a project.');
  if (!form.image.trim()) add('image', 'Enter the image of the container.');
  else {
    const wrong = wrongImage(form.image.trim());
    if (wrong) add('image', wrong);
  }
  const workers = Number(form.workers);
  if (!/^\d+$/.test(form.workers.trim()) || workers < 1) add('workers', 'Enter a whole number of 1 or more.');
  if (!/^\d+(?:\.\d+)?$/.test(form.gpus.trim()))
    add('gpus', 'Enter a number: 0, a fraction such as 0.5, or whole GPUs.');
  else if (Number(form.gpus) > 1 && !Number.isInteger(Number(form.gpus)))
    add('gpus', `${form.gpus} is neither a fraction of one GPU nor a whole number.`);
  if (form.elastic) {
    if (!/^\d+$/.test(form.least.trim()) || Number(form.least) < 1) add('least', 'Enter a whole number of 1 or more.');
    else if (Number(form.least) > workers)
      add('least', `The job has ${form.workers} workers; the minimum cannot exceed that.`);
  }
  if (form.cpu.trim() && !QUANTITY.test(form.cpu.trim())) add('cpu', 'Enter an amount such as 2 or 500m.');
  const memory = wrongMemory(form.memory.trim());
  if (memory) add('memory', memory);
  form.env.forEach((pair, index) => {
    if (!/^[A-Za-z_][\w.-]*$/.test(pair.name))
      add(`env.${index}`, 'Enter a name of letters, digits and underscores, or remove this line.');
  });
}

// As `arena submit --tensorboard` has it: a claim of the job's own, and the SDK's part of it.
const LOGS = '/training_logs';
export const claimOf = (name: string) => `${name}-tensorboard`;
export function curvesClaim(name: string, namespace: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: claimOf(name), namespace, labels: { app: 'tensorboard', release: name, role: 'tensorboard' } },
    spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } },
  };
}
// The name of the job whose claim a manifest mounts.
export function claimedBy(manifest: string): string | undefined {
  return /claimName: *["']?([a-z0-9-]+)-tensorboard\b/.exec(manifest)?.[1];
}

function container(form: JobForm, role: string): Record<string, unknown> {
  const gpus = Number(form.gpus);
  const limits = gpus >= 1 ? { 'nvidia.com/gpu': gpus } : undefined;
  const requests: Record<string, string> = {};
  if (form.cpu.trim()) requests.cpu = form.cpu.trim();
  if (form.memory.trim()) requests.memory = form.memory.trim();
  const resources = { ...(limits ? { limits } : {}), ...(Object.keys(requests).length ? { requests } : {}) };
  const env = [
    ...form.env.map((pair) => ({ name: pair.name, value: pair.value })),
    ...(form.curves ? [{ name: 'SWELL_LOG_DIR', value: `${LOGS}/${form.name}` }] : []),
  ];
  return {
    name: role,
    image: form.image.trim(),
    ...(form.command.trim() ? { command: ['/bin/sh', '-c', form.command] } : {}),
    ...(env.length ? { env } : {}),
    ...(Object.keys(resources).length ? { resources } : {}),
    ...(form.curves ? { volumeMounts: [{ name: 'training-logs', mountPath: LOGS }] } : {}),
  };
}

export function jobObject(form: JobForm): KubeObject {
  const type = TYPES.find((one) => one.name === form.type) ?? { name: 'train', role: 'worker' };
  const gpus = Number(form.gpus);
  const labels = { 'swell.dev/workload': type.name, ...(form.project ? { 'swell.dev/project': form.project } : {}) };
  const role = {
    replicas: Number(form.workers),
    restartPolicy: 'OnFailure',
    ...(form.elastic ? { elastic: { minReplicas: Number(form.least), maxReplicas: Number(form.workers) } } : {}),
    template: {
      metadata: {
        labels,
        ...(gpus > 0 && gpus < 1 ? { annotations: { 'swell.dev/gpu-fraction': String(gpus) } } : {}),
      },
      spec: {
        containers: [container(form, type.role)],
        ...(form.curves
          ? { volumes: [{ name: 'training-logs', persistentVolumeClaim: { claimName: claimOf(form.name) } }] }
          : {}),
      },
    },
  };
  return {
    apiVersion: 'swell.dev/v1',
    kind: 'TrainingJob',
    metadata: {
      ...(form.name ? { name: form.name } : { generateName: 'job-' }),
      namespace: form.namespace || form.project,
      labels,
    },
    spec: {
      ...(form.project ? { project: form.project } : {}),
      priorityClassName: form.priority || type.name,
      ...(form.onPreemption === 'Fail' ? { preemption: { onPreemption: 'Fail' } } : {}),
      ...(type.name === 'train' ? { backoffLimit: 6 } : {}),
      roles: { [type.role]: role },
    },
  };
}

type Labels = Record<string, string>;
interface BatchSpec {
  manualSelector?: boolean;
  template?: { metadata?: { labels?: Labels } };
}

// By these labels Kubernetes tells the pods of its Jobs apart. It gives each Job its own.
const OWN_LABELS = /^(?:batch\.kubernetes\.io\/)?(?:controller-uid|job-name)$/;
const othersOf = (labels: Labels) =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !OWN_LABELS.test(key)));

function asNewBatchJob(object: KubeObject): KubeObject {
  const { selector: _, template, ...spec } = object.spec as BatchSpec & { selector?: unknown };
  const { labels, ...metadata } = template?.metadata ?? {};
  const pod = { ...template, metadata: { ...metadata, labels: othersOf(labels ?? {}) } };
  const own = object.metadata?.labels;
  return {
    ...object,
    metadata: { ...object.metadata, ...(own ? { labels: othersOf(own) } : {}) },
    spec: { ...spec, template: pod },
  };
}

// An object as a new one: without what the server wrote.
export function asNew(object: KubeObject, name: string): KubeObject {
  const isBatch = object.kind === 'Job' && object.apiVersion?.startsWith('batch/');
  const chosen = isBatch && !(object.spec as BatchSpec | undefined)?.manualSelector;
  const { status: _, ...rest } = chosen ? asNewBatchJob(object) : object;
  const old = rest.metadata ?? {};
  return {
    ...rest,
    metadata: {
      name,
      ...(old.namespace ? { namespace: old.namespace } : {}),
      ...(old.labels ? { labels: old.labels } : {}),
    },
  };
}
