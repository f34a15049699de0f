// How far a workload is: a bar with its percentage, and in words the steps, the time that is left and the phase.
import { now } from '../lib/clock.ts';
import { ago, number, span } from '../lib/format.ts';
import type { Progress, WorkloadRow } from '../lib/types.ts';

const PHASES: Record<string, string> = {
  init: 'starting',
  step: 'training',
  eval: 'evaluating',
  save: 'saving a checkpoint',
  load: 'loading a checkpoint',
  data: 'waiting for data',
  done: 'done',
};

export const shareOf = (progress: Progress | null | undefined) => progress?.percentage ?? null;

// Before the end of the first percent there is progress, too.
export function progressText(row: WorkloadRow): string {
  const { progress } = row;
  if (!progress) return '';
  const share = shareOf(progress);
  if (share !== null) return `${share} %`;
  return progress.step === null || progress.step === undefined ? '' : `step ${number(progress.step)}`;
}

export function ProgressBar({ row }: { row: WorkloadRow }) {
  const share = shareOf(row.progress);
  if (share === null) return null;
  return (
    <span
      class={`progress${row.status === 'Hung' ? ' bad' : ''}`}
      role="progressbar"
      aria-label={`Progress of ${row.name}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share}
    >
      <span style={{ width: `${share}%` }} />
    </span>
  );
}

export function ProgressCell({ row }: { row: WorkloadRow }) {
  const text = progressText(row);
  if (!text) return <span class="muted">–</span>;
  return (
    <span class="meter">
      <ProgressBar row={row} />
      <span class="nowrap">{text}</span>
    </span>
  );
}

export function ProgressLine({ row }: { row: WorkloadRow }) {
  const { progress } = row;
  if (!progress) return null;
  const running = row.status === 'Running' || row.status === 'Hung';
  const words = [
    progress.step !== null &&
      progress.step !== undefined &&
      `step ${number(progress.step)}${progress.total ? ` of ${number(progress.total)}` : ''}`,
    // Epochs are counted from 0.
    progress.epoch !== null &&
      progress.epoch !== undefined &&
      `epoch ${number(progress.epoch + 1)}${progress.epochs ? ` of ${number(progress.epochs)}` : ''}`,
    running && progress.phase && (PHASES[progress.phase] ?? progress.phase),
    progress.etaSeconds !== null && progress.etaSeconds !== undefined && `${span(progress.etaSeconds)} left`,
    running && progress.updated && `last change ${ago(progress.updated, now.value)}`,
  ].filter(Boolean);
  const share = shareOf(progress);
  return (
    <div class="progress-line">
      {share !== null && (
        <>
          <ProgressBar row={row} />
          <strong class="nowrap">{share} %</strong>
        </>
      )}
      <span class="muted">{words.join(' · ')}</span>
    </div>
  );
}
