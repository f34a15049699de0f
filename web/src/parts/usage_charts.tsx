// The curves of GPUs in use, which several screens show: by project, and held against used.
import { useMemo } from 'preact/hooks';
import { withOthers } from '../lib/curves.ts';
import { align, fittedFrom, pick, sum, type History } from '../lib/history.ts';
import { continued, noted, type Sample } from '../lib/tail.ts';
import { colourOf } from '../lib/theme.ts';
import type { OverviewData, ProjectRow, Series } from '../lib/types.ts';
import { Chart, HEADROOM, type Curve, type Mark } from './chart.tsx';

// A project's series in one pool, or over all pools: the series without a pool, or the sum.
export function ofProject(series: Series[], name: string, project: string, pool = ''): Series | undefined {
  const ofPool = pool ? pick(series, name, { project, pool }) : [];
  if (ofPool.length > 0) return sum(ofPool);
  const all = pick(series, name, { project });
  const whole = all.filter((one) => !one.labels.pool);
  return sum(whole.length > 0 ? whole : all);
}
export function projectNames(history: History, projects: ProjectRow[] | undefined): string[] {
  const parents = new Set((projects ?? []).map((row) => row.parent).filter(Boolean));
  // A deleted project keeps its curve while the time that is shown has samples of it.
  const held = pick(history.series, 'project_gpu_held').filter((one) => one.v.some((value) => value !== null));
  const names = new Set(held.map((one) => one.labels.project ?? ''));
  for (const row of projects ?? []) names.add(row.name);
  return [...names].filter((name) => name && !parents.has(name)).sort();
}
export function rangeOf(history: History, live = true): [number, number] | undefined {
  if (!history.to) return undefined;
  return [live ? fittedFrom(history) : history.from, live ? Math.max(history.to, Date.now() / 1000) : history.to];
}
// Notes what projects hold, have and request now.
export function noteProjects(projects: ProjectRow[] | undefined): Sample[] {
  if (!projects) return noted('projects', undefined);
  const values: Record<string, number> = {};
  for (const row of projects) {
    const gpu = row.resources.gpu;
    values[`${row.name} held`] = gpu.held;
    values[`${row.name} requested`] = gpu.requested ?? 0;
    if (gpu.quota !== null && gpu.quota !== undefined && gpu.quota >= 0) values[`${row.name} quota`] = gpu.quota;
    if (gpu.fairShare !== null && gpu.fairShare !== undefined) values[`${row.name} fair`] = gpu.fairShare;
  }
  return noted('projects', values);
}
const NO_TAIL: Sample[] = [];

// What charts call work without a project. In the history its project is ''.
export const NO_PROJECT = 'no project';

// Notes how many GPUs work without a project holds now. Users who see a part of the cluster only cannot know that.
function noteNoProject(overview: OverviewData | undefined): Sample[] {
  if (!overview || overview.partial) return noted(NO_PROJECT, undefined);
  const free = overview.nodes.flatMap((node) => node.gpus).filter((gpu) => !gpu.project);
  return noted(NO_PROJECT, { held: free.reduce((all, gpu) => all + (gpu.share ?? 0), 0) });
}

interface UsageProps {
  history: History;
  projects: ProjectRow[] | undefined;
  overview?: OverviewData;
  sync?: string;
  height?: number;
  only?: string[];
  asShare?: boolean;
  marks?: Mark[];
  live?: boolean;
  pool?: string;
  onZoom?: (from: number, to: number) => void;
}

const shareText = (value: number | null | undefined) =>
  value === null || value === undefined ? '–' : `${Math.round(value)} %`;

export function ProjectUsageChart({
  history,
  projects,
  overview,
  sync,
  height,
  only,
  asShare,
  marks,
  live = true,
  pool,
  onZoom,
}: UsageProps) {
  const every = projectNames(history, projects);
  const names = only?.length ? every.filter((name) => only.includes(name)) : every;
  const all = names.length === every.length;
  const tail = live && !pool ? noteProjects(projects) : NO_TAIL;
  const rest = live && !pool ? noteNoProject(overview) : NO_TAIL;
  const palette = names.map(colourOf);
  const drawn = useMemo(() => {
    const series = names.map((name) =>
      continued(ofProject(history.series, 'project_gpu_held', name, pool), tail, `${name} held`),
    );
    const loose = continued(ofProject(history.series, 'project_gpu_held', '', pool), rest, 'held');
    if (all && loose.v.some((value) => value)) series.push(loose);
    const quotas = sum(
      names.map((name) => continued(ofProject(history.series, 'project_gpu_quota', name, pool), tail, `${name} quota`)),
    );
    const aligned = align([...series, quotas ?? { name: '', labels: {}, t: [], v: [] }]);
    const values = aligned.values.slice(0, -1);
    const shown = asShare
      ? values.map((list) =>
          list.map((value, at) => {
            const total = values.reduce((sum, other) => sum + (other[at] ?? 0), 0);
            if (values.every((other) => other[at] === null || other[at] === undefined)) return null;
            return total > 0 ? (100 * (value ?? 0)) / total : 0;
          }),
        )
      : values;
    const curves = withOthers(
      names.map((name, at): Curve => ({
        label: name,
        values: shown[at] ?? [],
        colour: `p${palette[at]?.index}`,
        dash: palette[at]?.again,
        step: true,
      })),
    );
    const outside = shown[names.length];
    if (outside) curves.push({ label: NO_PROJECT, values: outside, colour: 'strong-line', step: true });
    const quota = aligned.values.at(-1) ?? [];
    if (!asShare && names.length > 0)
      curves.push({ label: 'Quotas', values: quota, colour: 'text', step: true, dash: true, flat: true });
    return { times: aligned.times, curves };
  }, [history, tail, rest, all, names.join(), palette.map((one) => one.index).join(), asShare, pool]);
  const top = asShare ? 100 : overview?.gpus.total;
  return (
    <Chart
      label={asShare ? 'Share of the held GPUs by project' : 'GPUs held by project'}
      times={drawn.times}
      curves={drawn.curves}
      stacked
      range={rangeOf(history, live)}
      sync={sync}
      height={height}
      marks={marks}
      top={top ? top / HEADROOM : undefined}
      format={asShare ? shareText : undefined}
      steps="whole"
      onZoom={onZoom}
    />
  );
}

export function UtilizationChart({
  history,
  overview,
  sync,
  height,
  marks,
  live = true,
  pool,
  onZoom,
}: UsageProps | Omit<UsageProps, 'projects'>) {
  const tail =
    live && !pool
      ? noted('overview', overview && { gpu_total: overview.gpus.total, gpu_held: overview.gpus.held })
      : NO_TAIL;
  const drawn = useMemo(() => {
    const of = (name: string) => sum(pick(history.series, name, pool ? { pool } : {}));
    const used = of('gpu_utilized');
    const { times, values } = align([
      continued(of('gpu_total'), tail, 'gpu_total'),
      continued(of('gpu_held'), tail, 'gpu_held'),
      used ?? { name: 'gpu_utilized', labels: {}, t: [], v: [] },
    ]);
    const curves: Curve[] = [
      { label: 'Total', values: values[0] ?? [], colour: 'muted', dash: true, step: true },
      { label: 'Held', values: values[1] ?? [], colour: 'accent', area: true, step: true },
      { label: 'Used', values: values[2] ?? [], colour: 'p2' },
    ];
    return { times, curves };
  }, [history, tail, pool]);
  return (
    <Chart
      label="GPUs in total, held and used"
      steps="whole"
      times={drawn.times}
      curves={drawn.curves}
      range={rangeOf(history, live)}
      sync={sync}
      height={height}
      marks={marks}
      onZoom={onZoom}
    />
  );
}

export function QuotaChart({
  history,
  projects,
  project,
  height,
  sync,
  marks,
  live = true,
  pool,
  onZoom,
}: UsageProps & { project: string }) {
  const tail = live && !pool ? noteProjects(projects) : NO_TAIL;
  const palette = colourOf(project).index;
  const drawn = useMemo(() => {
    const of = (name: string) => ofProject(history.series, name, project, pool);
    const parts = [
      continued(of('project_gpu_held'), tail, `${project} held`),
      continued(of('project_gpu_quota'), tail, `${project} quota`),
      continued(of('project_gpu_fair_share'), tail, `${project} fair`),
      continued(of('project_gpu_requested'), tail, `${project} requested`),
    ];
    const aligned = align(parts);
    const quota = aligned.values[1] ?? [];
    const curves: Curve[] = [
      { label: 'Held', values: aligned.values[0] ?? [], colour: `p${palette}`, step: true, area: true, over: quota },
      { label: 'Quota', values: quota, colour: 'text', step: true },
      { label: 'Fair share', values: aligned.values[2] ?? [], colour: 'muted', step: true, dash: true },
      { label: 'Requested', values: aligned.values[3] ?? [], colour: 'wait', step: true, dash: true, loose: true },
    ];
    return { times: aligned.times, curves };
  }, [history, tail, project, palette, pool]);
  return (
    <Chart
      label={`Quota, fair share and use of ${project}`}
      steps="whole"
      times={drawn.times}
      curves={drawn.curves}
      range={rangeOf(history, live)}
      sync={sync}
      height={height}
      marks={marks}
      onZoom={onZoom}
    />
  );
}

// CPUs or memory of a node pool or a node: what there is, what pods request, what they use.
export function AmountChart({
  history,
  what,
  labels,
  total = 0,
  height = 150,
}: {
  history: History;
  what: 'cpu' | 'memory';
  labels: Record<string, string>;
  total?: number;
  height?: number;
}) {
  const unit = what === 'memory' ? 2 ** 30 : 1;
  const prefix = labels.node ? `node_${what}` : what;
  const drawn = useMemo(() => {
    const of = (part: string) =>
      sum(pick(history.series, `${prefix}_${part}`, labels)) ?? { name: '', labels: {}, t: [], v: [] };
    const { times, values: amounts } = align([of('total'), of('held'), of('used')]);
    const values = amounts.map((list) => list.map((value) => (value === null ? null : value / unit)));
    const curves: Curve[] = [
      ...(labels.node ? [] : [{ label: 'Total', values: values[0] ?? [], colour: 'muted', dash: true, step: true }]),
      { label: 'Held', values: values[1] ?? [], colour: 'accent', area: true, step: true },
      { label: 'Used', values: values[2] ?? [], colour: 'p2' },
    ];
    return { times, curves };
  }, [history, prefix, JSON.stringify(labels)]);
  return (
    <Chart
      label={`${what === 'cpu' ? 'CPUs' : 'GiB of memory'} held and used`}
      times={drawn.times}
      curves={drawn.curves}
      range={rangeOf(history)}
      top={total / unit / HEADROOM}
      height={height}
      empty="There are no samples in this time. Large clusters keep such curves of their first node pools only."
    />
  );
}
