// A square for each GPU: its colour is the project, hatched where it is held and idle, crossed out where it is unhealthy.
import type { GpuSquare } from '../lib/types.ts';
import { number } from '../lib/format.ts';
import { tint } from './basic.tsx';

export function GpuSquares({ gpus, away, idle }: { gpus: GpuSquare[]; away?: boolean; idle?: Set<number> }) {
  const held = gpus.filter((gpu) => gpu.project || gpu.job).length;
  const bad = gpus.filter((gpu) => gpu.bad).length;
  return (
    <div class="gpus" role="img" aria-label={`${held} of ${gpus.length} GPUs held${bad > 0 ? `, ${bad} unhealthy` : ''}`}>
      {gpus.map((gpu) => {
        const taken = Boolean(gpu.project || gpu.job);
        const part = gpu.share && gpu.share < 1 ? `${number(gpu.share)} of it ` : '';
        const text = taken ? `GPU ${gpu.index}: ${part}held by ${gpu.job ?? 'a pod'}${gpu.project ? ` of ${gpu.project}` : ''}` : `GPU ${gpu.index}: ${gpu.bad ? 'no pod' : 'free'}`;
        return <span key={gpu.index} title={gpu.bad ? `${text}; unhealthy: it gets no new pods` : text} class={`gpu${gpu.bad ? ' bad' : ''}${taken ? (idle?.has(gpu.index) ? ' idle' : ' held') : ''}${away ? ' away' : ''}`} style={taken ? tint(gpu.project ?? gpu.job) : undefined} />;
      })}
    </div>
  );
}
