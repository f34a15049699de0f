// Numbers, times and amounts as people read them. Pure functions.
import type { Address } from './types.ts';

export const NONE = '–';

// At most two decimals, none that are zero: 4, 0.5, 12.25.
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const rounded = Math.round(value * 100) / 100;
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

// A number as people type it: "1,000" as the pages write a thousand; any other comma is that of a decimal.
export function plainNumber(text: string): string {
  const trimmed = text.trim();
  return /^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$/.test(trimmed)
    ? trimmed.replaceAll(',', '')
    : trimmed.replace(',', '.');
}

export function percent(part: number | null | undefined, whole: number | null | undefined): string {
  if (part === null || part === undefined || !whole) return NONE;
  return `${Math.round((part / whole) * 100)} %`;
}

// A quota or a limit: null means that there is none.
export function bound(value: number | null | undefined): string {
  if (value === null || value === undefined || value < 0) return 'no limit';
  return number(value);
}
// "8/4": held of quota, as Run:ai writes it.
export function ratio(held: number, quota: number | null | undefined): string {
  return `${number(held)}/${quota === null || quota === undefined || quota < 0 ? '∞' : number(quota)}`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let amount = value;
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${amount >= 100 || unit === 0 ? Math.round(amount) : Math.round(amount * 10) / 10} ${units[unit]}`;
}

// Two units at most: "3 d 4 h", "12 min", "45 s".
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(' ');
}

// One unit, as an axis has room for: "45 s", "1.7 min", "3 h".
export function shortSpan(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const [size, unit] = (
    [
      [86400, 'd'],
      [3600, 'h'],
      [60, 'min'],
      [1, 's'],
    ] as const
  ).find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.round((10 * seconds) / size) / 10} ${unit}`;
}

export function secondsSince(time: string | null | undefined, now = Date.now()): number | null {
  if (!time) return null;
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : Math.max(0, (now - at) / 1000);
}
export function ago(time: string | null | undefined, now = Date.now()): string {
  const seconds = secondsSince(time, now);
  if (seconds === null) return NONE;
  return seconds < 5 ? 'just now' : `${span(seconds < 60 ? seconds : Math.floor(seconds / 60) * 60)} ago`;
}

// Spans of a workload. While one grows, the server reports only its start.
interface Spans {
  status: string;
  waitSeconds?: number | null;
  waitsSince?: string | null; // of one that waits now
  runSeconds?: number | null;
  runsSince?: string | null;
}
export function waitOf(row: Spans, now = Date.now()): number | null {
  if (row.status === 'Suspended') return null; // it waits for nothing but its user
  return row.waitSeconds ?? secondsSince(row.waitsSince, now);
}
// As swell list counts it: from its start to its end, and anew after it was resumed.
export function runOf(row: Spans, now = Date.now()): number | null {
  return row.runSeconds ?? secondsSince(row.runsSince, now);
}

const two = (value: number) => String(value).padStart(2, '0');
export function clock(time: string | number | Date | null | undefined): string {
  if (time === null || time === undefined || time === '') return NONE;
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return NONE;
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
export function dateTime(time: string | number | null | undefined): string {
  if (time === null || time === undefined || time === '') return NONE;
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return NONE;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(at)}`;
}

const DAY_MS = 86_400_000;

// A moment among others that lie at most so far apart: with its day, where a clock alone does not tell them apart.
export function moment(time: string | number, apartMs: number): string {
  return apartMs > DAY_MS ? dateTime(time).slice(5, 16) : clock(time);
}

// The zone of all clocks on the pages: that of the browser.
export const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

// The zone, and the zone of the pages if their clocks show another time.
export function zoneText(zone: string, at = new Date()): string {
  try {
    const there = at.toLocaleString('en-US', { timeZone: zone });
    return there === at.toLocaleString('en-US') ? zone : `${zone}; times here: ${zoneHere()}`;
  } catch {
    return zone; // which the browser does not know
  }
}

export function gpuHours(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return NONE;
  const hours = seconds / 3600;
  if (seconds > 0 && hours < 0.1) return '< 0.1';
  return number(Math.round(hours * 10) / 10);
}

// Hours of one GPU; little time in smaller units, so that what is known does not read as nothing.
export function gpuTime(seconds: number): string {
  if (seconds <= 0) return 'none';
  if (seconds < 360) return plural(Math.round(seconds), 'GPU-second');
  const hours = gpuHours(seconds);
  return `${hours} ${hours === '1' ? 'GPU-hour' : 'GPU-hours'}`;
}

interface GpuAccount {
  lostGpuSeconds?: number | null;
  heldGpuSeconds?: number | null;
  heldGpuAsOf?: string | null;
}

// The GPU time in the job's account, plus that of the GPUs it has held since the account was written. A job without an
// account whose loss is 0 never held a GPU.
export function heldTimeText(account: GpuAccount, holds = 0, now = Date.now()): string {
  const { lostGpuSeconds: lost, heldGpuSeconds: held } = account;
  const known = held ?? (lost === 0 ? 0 : null);
  if (known === null) return 'not known';
  return gpuTime(known + holds * (secondsSince(account.heldGpuAsOf, now) ?? 0));
}

// What a job lost of what it held, as far as it is known.
export function lostWorkText(job: GpuAccount): string {
  const { lostGpuSeconds: lost, heldGpuSeconds: held } = job;
  if (lost === null || lost === undefined) return 'not known';
  return lost > 0 && held ? `${gpuTime(lost)} of ${gpuTime(held)}` : gpuTime(lost);
}

// What a server said, as a sentence by itself.
export function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}

const SHORT_NAME = 18;
const TAIL_MOST = 10;

// A long name in two parts: "finetune-llama-3", "-worker-1". The second is never cut, because names of one series, and
// of the pods of a job, differ at their end.
export function nameParts(name: string): [string, string] {
  if (name.length <= SHORT_NAME) return [name, ''];
  const dash = name.indexOf('-', name.length - TAIL_MOST);
  const tail = dash > 0 ? dash : name.length - TAIL_MOST;
  return [name.slice(0, tail), name.slice(tail)];
}

// Kubernetes counts the nodes that lack GPUs, which says nothing beside the numbers that follow.
export function withoutCount(reason: string): string {
  return reason.replace(
    /(^|: )\d+\/\d+ nodes are available: \d+ Insufficient nvidia\.com\/gpu\. Needs /,
    (_, before: string) => (before ? ': needs ' : 'Needs '),
  );
}

// The server's texts have times in UTC; the pages show those of the reader.
export function withClocks(text: string): string {
  return text.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => dateTime(time));
}

// Without what the word of the state says already.
function withoutState(reason: string): string {
  return reason.replace(/^(\S+) cannot start: container \S+ waits with \S+: (?:Back-off pulling (?=image ))?/, '$1: ');
}

// "PyTorchJob a is suspended" -> "Suspended", where "a" is said beside it.
function withoutSubject(said: string, subject: string): string {
  const rest = said.slice(subject.length).replace(/^is (?=\S)/, '');
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

// A member is named without its job, which the row names: what is left has room for the cause.
export function reasonText({ reason, name, kind }: { reason?: string | null; name: string; kind: string }): string {
  const said = withClocks(withoutState(withoutCount(reason ?? '')));
  const member = `${name}-`;
  if (said.startsWith(member) && said.length > member.length) return said.slice(member.length);
  const job = `${kind} ${name} `;
  return said.startsWith(job) && said.length > job.length ? withoutSubject(said, job) : said;
}

// Where a workload answers: "10.96.0.7:80 (http)", and the port of every node if it has one.
export function addressTexts(addresses: Address[]): string[] {
  return addresses.flatMap(({ ip, ports }) => {
    const host = ip.includes(':') ? `[${ip}]` : ip;
    return ports.map(({ name, port, nodePort }) => {
      const notes = [name ?? '', nodePort ? `port ${nodePort} of each node` : ''].filter(Boolean).join(', ');
      return `${host}:${port}${notes ? ` (${notes})` : ''}`;
    });
  });
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// How often other work took members: "2 (1 whole, 1 shrink)", "1 shrink"; "2" where all stopped the job.
export function preemptionsText(whole?: number | null, shrinks?: number | null): string {
  if (!shrinks) return number(whole ?? 0);
  const shrunk = plural(shrinks, 'shrink');
  return whole ? `${number(whole + shrinks)} (${number(whole)} whole, ${shrunk})` : shrunk;
}
