// A square for each GPU: its colour is the project. It is hatched where it is held and idle, crossed out where it is
// unhealthy.
import type { GpuSquare } from '../lib/types.ts';
import { number } from '../lib/format.ts';
import { tint } from './basic.tsx';

const isHeld = (gpu: GpuSquare) => Boolean(gpu.project || gpu.job || gpu.share);
// Held by pods that the user may not see.
export const heldByOthers = (gpu: GpuSquare) => Boolean(gpu.share) && !gpu.project && !gpu.job;

function textOf(gpu: GpuSquare): string {
  if (!isHeld(gpu)) return `GPU ${gpu.index}: ${gpu.bad ? 'no pod' : 'free'}`;
  const part = gpu.share && gpu.share < 1 ? `${number(gpu.share)} of it ` : '';
  if (heldByOthers(gpu)) return `GPU ${gpu.index}: ${part}held by work that you may not see`;
  return `GPU ${gpu.index}: ${part}held by ${gpu.job ?? 'a pod'}${gpu.project ? ` of ${gpu.project}` : ''}`;
}

function Square({ gpu, away, idle }: { gpu: GpuSquare; away?: boolean; idle?: boolean }) {
  const held = isHeld(gpu);
  const use = idle ? 'idle' : 'held';
  const names = ['gpu', gpu.bad && 'bad', held && use, heldByOthers(gpu) && 'others', away && 'away'].filter(Boolean);
  return (
    <span
      title={gpu.bad ? `${textOf(gpu)}; unhealthy: it gets no new pods` : textOf(gpu)}
      class={names.join(' ')}
      style={held && !heldByOthers(gpu) ? tint(gpu.project ?? gpu.job) : undefined}
    />
  );
}

export function GpuSquares({ gpus, away, idle }: { gpus: GpuSquare[]; away?: boolean; idle?: Set<number> }) {
  const held = gpus.filter(isHeld).length;
  const bad = gpus.filter((gpu) => gpu.bad).length;
  return (
    <div
      class="gpus"
      role="img"
      aria-label={`${held} of ${gpus.length} GPUs held${bad > 0 ? `, ${bad} unhealthy` : ''}`}
    >
      {gpus.map((gpu) => (
        <Square key={gpu.index} gpu={gpu} away={away} idle={idle?.has(gpu.index)} />
      ))}
    </div>
  );
}
