// What the server's views say; docs/ui.md has the requests.

export interface Share {
  held: number;
  quota?: number | null;
  fairShare?: number | null;
  requested?: number | null;
  limit?: number | null;
  weight?: number | null;
}
export interface ObjectRef {
  kind: string;
  namespace?: string;
  name: string;
}

export interface GpuSquare {
  index: number;
  project?: string | null;
  job?: string | null;
  share?: number;
  bad?: boolean;
}
export interface OverviewData {
  gpus: { total: number; ready: number; held: number; free: number; idleHeld?: number | null };
  jobs: { running: number; pending: number; oldestPendingSince?: string | null };
  failing?: { total: number; rows: FailingRow[] };
  preemptionsToday?: number | null;
  lostGpuSecondsToday?: number | null;
  pools: { name: string; total: number; held: number }[];
  nodes: { name: string; pool?: string | null; ready: boolean; gpus: GpuSquare[] }[];
  decisions: Decision[];
  partial?: boolean;
}
export type FailingRow = Pick<WorkloadRow, 'namespace' | 'name' | 'kind' | 'status' | 'statusText' | 'reason'>;
export interface Decision {
  time: string;
  reason: string;
  object: ObjectRef;
  message: string;
}

export interface Member {
  kind: string;
  name: string;
  role: string;
  source?: 'Project' | 'User'; // where it is written: in the Project, or with the user
}
export interface ProjectRow {
  name: string;
  parent?: string | null;
  namespace?: string | null;
  status: string;
  message?: string;
  priority?: number | null;
  description?: string;
  resources: { gpu: Share; cpu?: Share; memory?: Share };
  pools: { name: string; gpu: Share }[];
  running: number | null; // null: its workloads are not the user's to see
  pending: number | null;
  longestPendingSince?: string | null;
  members: Member[];
  created?: string;
  borrows?: number | null;
  lends?: number | null;
}

export interface PoolRow {
  name: string;
  status: string;
  label?: { key: string; value: string } | null;
  nodes: string[];
  gpus: { total: number; held: number; free: number };
  cpus?: { total: number; held: number };
  memory?: { total: number; held: number };
  strategy?: { gpu?: string; cpu?: string };
  created?: string;
  projects?: number;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}
export interface GpuDevice {
  index: number;
  uuid?: string | null;
  model?: string | null;
  health?: string | null;
  healthReason?: string | null;
  utilization?: number | null; // 0 to 1
  memoryUsed?: number | null;
  job?: string | null;
  pod?: string | null;
  idleSince?: string | null;
  namespace?: string | null;
  project?: string | null;
  share?: number | null;
}
export interface NodeFailure {
  time: string;
  pod?: string | null;
  class: string;
  weight: number;
  message?: string | null;
}
export interface NodeHealth {
  state: 'Healthy' | 'Faulty' | 'Suspect' | 'Unhealthy';
  text: string;
  score: number;
  suspectFrom: number;
  faults: { type: string; reason?: string; message?: string; taints: boolean }[];
  failures: NodeFailure[];
}
export interface NodePod {
  namespace: string;
  name: string;
  status: string;
  project?: string | null;
  job?: string | null;
  gpus?: number;
}
export interface NodeRow {
  name: string;
  status: string;
  reason?: string | null;
  pool?: string | null;
  gpuType?: string | null;
  gpus: { total: number; held: number; free: number };
  gpuDevices: GpuDevice[];
  cpu?: { total: number; held: number; used?: number | null };
  memory?: { total: number; held: number; used?: number | null };
  pods: NodePod[];
  conditions: Condition[];
  health?: NodeHealth;
  unschedulable?: boolean;
  created?: string;
}

export interface WorkloadRow {
  namespace: string;
  name: string;
  kind: string;
  apiVersion: string;
  plural: string;
  uid: string;
  status: string;
  statusText?: string; // the state, and what swell list says of it: Pending, ImagePullBackOff
  reason?: string | null;
  project?: string | null;
  pool?: string | null;
  priority?: string | number | null;
  preemptible?: boolean | null;
  members: { running: number; requested: number; min?: number | null; max?: number | null };
  gpus: { requested: number; held: number };
  place?: number | null; // in its project's queue, of the first that wait there
  queue?: QueuePlace | null; // the same on its own page, of any that waits
  waitSeconds?: number | null;
  waitsSince?: string | null; // of one that waits now: since it was made, or stopped
  runSeconds?: number | null; // of one that has ended
  runsSince?: string | null; // of one that has started: since then, or since it was resumed last
  preemptions?: number | null; // that stopped it
  shrinks?: number | null; // others took members, and it trained on
  createdBy?: string | null;
  created?: string;
  started?: string | null;
  completed?: string | null;
  progress?: Progress | null;
  throughput?: number | null;
  throughputUnit?: string | null;
  workload?: string | null;
}
// The place of a workload among what waits in its project.
export interface QueuePlace {
  project: string;
  of: number;
  place: number | null; // null: the project serves its users in turn
  text: string;
}
export interface CronRun {
  kind: string;
  name: string;
  status: string;
  began?: string | null;
  ended?: string | null;
}
// A Cron of KubeDL or a CronJob: what starts workloads at the times of a schedule.
export interface CronRow {
  namespace: string;
  name: string;
  kind: string;
  apiVersion: string;
  plural: string;
  uid: string;
  project?: string | null;
  starts: string; // the kind of its workloads
  schedule: string;
  timeZone?: string | null;
  policy: string;
  state: 'Active' | 'Suspended' | 'Ended' | 'Invalid' | 'Deleting';
  reason?: string | null;
  next?: string | null;
  last?: string | null;
  active: number;
  lastRun?: CronRun | null;
  created?: string;
}
export interface CronData {
  summary: CronRow;
  runs: CronRun[];
  events: EventRow[];
}
export interface Progress {
  phase?: string | null;
  step?: number | null;
  total?: number | null;
  epoch?: number | null;
  epochs?: number | null;
  percentage?: number | null;
  etaSeconds?: number | null;
  updated?: string | null;
}
export interface HungRank {
  rank: number;
  pod?: string | null;
  node?: string | null;
  phase?: string | null;
  step?: number | null;
  since?: string | null;
  deadlineSeconds?: number | null;
  suspect?: boolean;
  stack?: string | null;
}
export interface Hang {
  now: boolean;
  message?: string | null;
  since?: string | null;
  restarts: number;
  ranks: HungRank[];
}
// A start of a member's container, which has a log.
export interface LogPart {
  key: string;
  member: string;
  uid: string;
  node?: string | null;
  container?: string | null;
  attempt: number;
  start: number;
  live: boolean; // the pod is there, and this is the newest start in it
  running: boolean; // more may come
  result?: string | null;
  started?: string | null;
  ended?: string | null;
}

export interface EventRow {
  time: string;
  type: string;
  reason: string;
  object: ObjectRef | string;
  message: string;
  count?: number;
}
export interface JobMember {
  pod: string;
  role?: string;
  index?: number;
  node?: string | null;
  gpus?: number[];
  status: string;
  reason?: string | null;
  restarts?: number;
  attempt?: number;
  started?: string | null;
  finished?: string | null;
  exitCode?: number | null;
  message?: string | null;
  cpu?: number | null;
  memory?: number | null;
  straggler?: boolean;
}
export interface JobData {
  summary: WorkloadRow;
  sentence?: string;
  conditions: Condition[];
  members: JobMember[];
  timeline: { member?: string | null; state: string; from: string; to?: string | null }[];
  marks: { time: string; kind: string; text: string }[];
  sizes: { time: string; members: number }[];
  checkpoints: { time: string; step?: number | null }[];
  lostGpuSeconds?: number | null; // null: not known
  heldGpuSeconds?: number | null;
  heldGpuAsOf?: string | null;
  events: EventRow[];
  attempts: { number: number; from: string; to?: string | null; reason?: string | null }[];
  logs?: LogPart[];
  hang?: Hang | null;
  warnings?: { type: string; message: string; since?: string | null }[];
  actions?: { suspend?: boolean; resume?: boolean; scale?: boolean; delete?: boolean };
  goodput?: Goodput | null;
  addresses?: Address[];
}
// A Service that leads to the pods of a workload.
export interface Address {
  service: string;
  ip: string;
  ports: { name?: string | null; port: number; nodePort?: number | null }[];
}
export interface Goodput {
  sentence: string;
  next?: string | null;
  unit: string;
  members: number;
  wanted: number;
  fit?: string | null;
  decision?: string | null;
  typeDecision?: string | null; // why it has the type of GPU that it has
  noise?: string | null;
  sizes: {
    members: number;
    perSecond: number;
    relative: number;
    measured: boolean;
    source: string;
    efficiency?: number;
  }[];
}
export interface TensorboardData {
  state: 'None' | 'Starting' | 'Ready' | 'Failed';
  url?: string | null;
  port?: number | null;
  message?: string | null;
  opens?: boolean;
  closed?: string | null;
}
export interface WhyData {
  sentence: string;
  lines: string[];
  status?: string;
  waits?: boolean;
  next?: string; // what a user does about it
  wouldStartWith?: string[]; // each alone
  start?: string; // when it starts as things are, or why that is not told
  displaces?: ({ namespace: string; name: string; members?: number } | string)[];
}
export interface UserRow {
  name: string;
  groups?: string[];
  role?: string | null;
  runAs?: string | number | null;
  created?: string;
  projects?: { name: string; role: string }[];
}
// audit.k8s.io/v1
export interface AuditEvent {
  auditID: string;
  stage: string;
  stageTimestamp: string;
  verb: string;
  requestURI: string;
  userAgent?: string;
  sourceIPs?: string[];
  user?: { username: string };
  impersonatedUser?: { username: string };
  objectRef?: { resource: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number; reason?: string };
}
export interface PlanData {
  text: string[];
  starts: boolean;
  displaces?: { namespace: string; name: string; members?: number }[];
  placement?: { node: string; members: number }[];
}
export interface WhatIfData {
  decisions: { text: string; kind: string }[];
  before?: Partial<OverviewData>;
  after?: Partial<OverviewData>;
}
export interface Rows<T> {
  rows: T[];
  total?: number; // where only some of them were sent
  partial?: boolean;
}
export interface Series {
  name: string;
  labels: Record<string, string>;
  t: number[];
  v: (number | null)[];
  steady?: boolean; // a value holds until the next, however far away that is
  holds?: number; // how many seconds a value holds, where the distances of the samples do not tell
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: {
    name?: string;
    namespace?: string;
    generateName?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    resourceVersion?: string;
    [key: string]: unknown;
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [key: string]: unknown;
}
