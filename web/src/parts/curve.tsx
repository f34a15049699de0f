// A job's throughput by its number of workers: measured and expected values, the present size, the requested one.
import { number } from '../lib/format.ts';

export interface CurvePoint {
  size: number;
  throughput: number;
  expected?: boolean;
}

export function Curve({ points, now, wanted }: { points: CurvePoint[]; now: number; wanted?: number }) {
  const W = 320;
  const H = 190;
  const PAD = 34;
  const most = Math.max(1, ...points.map((point) => point.size));
  const top = Math.max(1e-9, ...points.map((point) => point.throughput)) * 1.1;
  const x = (size: number) => PAD + (size / most) * (W - PAD - 10);
  const y = (value: number) => H - PAD - (value / top) * (H - PAD - 10);
  const per = points[0] ? points[0].throughput / points[0].size : 0;
  const say = (point: CurvePoint) => `${number(point.throughput)} /s${point.expected ? ' expected' : ''}`;
  const text = (point: CurvePoint) => `${point.size}: ${say(point)}`;
  return (
    <svg
      viewBox={`0 0 ${W} ${H}`}
      style={{ width: '100%', maxWidth: '460px' }}
      role="img"
      aria-label={`Throughput by number of workers: ${points.map(text).join(', ')}`}
    >
      <g stroke="var(--line)">
        <path d={`M${PAD} 10V${H - PAD}H${W - 10}`} fill="none" />
      </g>
      {per > 0 && (
        <path
          d={`M${x(0)} ${y(0)}L${x(most)} ${y(Math.min(top, per * most))}`}
          stroke="var(--strong-line)"
          stroke-dasharray="4 4"
        />
      )}
      {wanted !== undefined && wanted !== now && wanted <= most && (
        <path d={`M${x(wanted)} 10V${H - PAD}`} stroke="var(--ok)" stroke-dasharray="2 3">
          <title>It requests {wanted} workers</title>
        </path>
      )}
      <path
        d={points.map((point, at) => `${at ? 'L' : 'M'}${x(point.size)} ${y(point.throughput)}`).join('')}
        fill="none"
        stroke="var(--accent)"
        stroke-width="1.75"
      />
      {points.map((point) => (
        <circle
          key={point.size}
          cx={x(point.size)}
          cy={y(point.throughput)}
          r={point.size === now ? 6 : 4}
          fill={point.size === now ? 'var(--accent)' : 'var(--card)'}
          stroke="var(--accent)"
          stroke-width="2"
          stroke-dasharray={point.expected ? '2 2' : undefined}
        >
          <title>
            {point.size} workers: {say(point)}
          </title>
        </circle>
      ))}
      <g fill="var(--muted)" font-size="11">
        {points.map((point) => (
          <text key={point.size} x={x(point.size)} y={H - PAD + 16} text-anchor="middle">
            {point.size}
          </text>
        ))}
        <text x={W / 2} y={H - 4} text-anchor="middle">
          workers
        </text>
        <text x={PAD + 4} y={16}>
          {number(top)} /s
        </text>
      </g>
    </svg>
  );
}
