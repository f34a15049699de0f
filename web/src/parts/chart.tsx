// Curves over time: lines, steps and stacked areas on one axis of time, with marks of events.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { highest, stack } from '../lib/curves.ts';
import { clock, dateTime, number } from '../lib/format.ts';
import { painted, theme } from '../lib/theme.ts';

export const HEADROOM = 1.08; // of an axis over its highest value

const LABEL_HALF = 27; // of a time at the right end of an axis, px
const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 4, 5].map((digit) => digit * 10 ** (power - 4))).flat();
const WHOLE_STEPS = STEPS.filter((step) => step >= 1);
const MINUTE = 60;
const HOUR = 3600;
const SPAN_STEPS = [
  ...[1, 2, 5, 10, 20, 30],
  ...[1, 2, 5, 10, 20, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 6, 12, 24, 48, 96, 240, 480, 960].map((hours) => hours * HOUR),
];

export interface Curve {
  label: string;
  values: (number | null)[];
  colour: string; // the name of a token: "accent", "p3"
  step?: boolean;
  dash?: boolean;
  area?: boolean;
  over?: (number | null)[]; // what lies above this curve, up to `values`, is hatched
  right?: boolean; // its own scale, at the right
  loose?: boolean; // may leave the chart at its top
  flat?: boolean; // a line over stacked areas, not one of them
}
export interface Mark {
  time: number;
  text: string;
  tone?: 'bad' | 'wait' | 'ok';
}
export interface ChartProps {
  label: string;
  times: number[];
  curves: Curve[];
  height?: number;
  stacked?: boolean;
  range?: [number, number];
  marks?: Mark[];
  format?: (value: number | null | undefined) => string;
  steps?: 'whole' | 'spans'; // of the axis: no parts of one, or seconds, minutes and hours
  sync?: string;
  top?: number;
  onZoom?: (from: number, to: number) => void;
  empty?: string;
  padRight?: number; // where another chart of the same width has a scale at the right
}

function token(name: string): string {
  const root = document.documentElement;
  const raw = getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const both = /^light-dark\(([^,]+),\s*([^)]+)\)$/.exec(raw);
  if (!both) return raw;
  return ((root.dataset.theme === 'dark' ? both[2] : both[1]) ?? raw).trim();
}
function faded(hex: string, alpha: number): string {
  return `${hex}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, '0')}`;
}

function hatchOf(colour: string): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const brush = tile.getContext('2d');
  if (!brush) return colour;
  brush.strokeStyle = colour;
  brush.lineWidth = 2;
  for (const shift of [-8, 0, 8]) {
    brush.beginPath();
    brush.moveTo(shift, 8);
    brush.lineTo(shift + 8, 0);
    brush.stroke();
  }
  return brush.createPattern(tile, 'repeat') ?? colour;
}

// The range between a quota and what is held, where more is held: drawn below the curves.
function drawHatch(plot: uPlot, curve: Curve, values: (number | null)[], colour: string): void {
  const brush = plot.ctx;
  const times = plot.data[0];
  brush.save();
  brush.beginPath();
  brush.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  brush.clip();
  brush.fillStyle = hatchOf(colour);
  for (let i = 0; i < times.length; i += 1) {
    const held = values[i];
    const quota = curve.over?.[i];
    if (held === null || held === undefined || quota === null || quota === undefined || held <= quota) continue;
    const left = plot.valToPos(times[i] ?? 0, 'x', true);
    const right = i + 1 < times.length ? plot.valToPos(times[i + 1] ?? 0, 'x', true) : left + 2;
    const top = plot.valToPos(held, 'y', true);
    brush.fillRect(left, top, Math.max(1, right - left), plot.valToPos(quota, 'y', true) - top);
  }
  brush.restore();
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const brush = plot.ctx;
  brush.save();
  for (const mark of marks) {
    const at = plot.valToPos(mark.time, 'x', true);
    if (at < plot.bbox.left || at > plot.bbox.left + plot.bbox.width) continue;
    brush.strokeStyle = token(mark.tone ?? 'wait');
    brush.lineWidth = devicePixelRatio;
    brush.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    brush.beginPath();
    brush.moveTo(at, plot.bbox.top);
    brush.lineTo(at, plot.bbox.top + plot.bbox.height);
    brush.stroke();
  }
  brush.restore();
}

function fillOf(curve: Curve, stacked: boolean): string | undefined {
  const colour = token(curve.colour);
  if (stacked && !curve.flat) return faded(colour, 0.62);
  return curve.area ? faded(colour, 0.16) : undefined;
}

function seriesOf(curve: Curve, stacked: boolean): uPlot.Series {
  const colour = token(curve.colour);
  const linear = uPlot.paths.linear?.();
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  return {
    label: curve.label,
    stroke: colour,
    width: 1.75,
    scale: curve.right ? 'right' : 'y',
    fill: fillOf(curve, stacked),
    dash: curve.dash ? [5, 4] : undefined,
    paths: curve.step ? stepped : linear,
    points: { show: false },
    spanGaps: false,
  };
}

// As many decimals as the step has, so that no two numbers of an axis look alike.
function stepText(value: number, step: number): string {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
  return value.toLocaleString('en-US', { maximumFractionDigits: Math.max(2, decimals) });
}

function axes(now: () => Drawn): uPlot.Axis[] {
  const { props } = now();
  const text = token('muted');
  const grid = { stroke: token('line'), width: 1 };
  const font = '11px system-ui, sans-serif';
  const show = props.format ?? number;
  const timeLabel = (seconds: number) => {
    const range = now().props.range;
    const span = range ? range[1] - range[0] : 0;
    const at = dateTime(seconds * 1000);
    if (span > 172800) return at.slice(5, 10); // the day
    return span > 900 ? at.slice(11, 16) : clock(seconds * 1000);
  };
  const list: uPlot.Axis[] = [
    {
      stroke: text,
      grid: { show: false },
      ticks: { show: false },
      font,
      size: 26,
      space: 70,
      values: (_, splits) => splits.map(timeLabel),
    },
    {
      stroke: text,
      grid,
      ticks: { show: false },
      font,
      size: 52,
      space: 32,
      incrs: (_, __, ___, most) => {
        if (props.steps === 'spans') return SPAN_STEPS;
        return props.steps === 'whole' || most >= 2 ? WHOLE_STEPS : STEPS;
      },
      values: (_, splits, __, ___, step) => splits.map((value) => (props.format ? show(value) : stepText(value, step))),
    },
  ];
  if (props.curves.some((curve) => curve.right)) {
    list.push({
      scale: 'right',
      side: 1,
      stroke: text,
      grid: { show: false },
      ticks: { show: false },
      font,
      size: 52,
      values: (_, splits) => splits.map((value) => number(value)),
    });
  }
  return list;
}

// What the functions of a plot read when they draw: a plot outlives many renders.
interface Drawn {
  props: ChartProps;
  curves: Curve[];
  drawn: (number | null)[][];
}

function optionsOf(now: () => Drawn, width: number, onCursor: (index: number | null) => void): uPlot.Options {
  const { props, curves } = now();
  return {
    width,
    height: props.height ?? 200,
    legend: { show: false },
    padding: [8, props.curves.some((curve) => curve.right) ? 0 : (props.padRight ?? LABEL_HALF), 0, 0],
    cursor: {
      y: false,
      sync: props.sync ? { key: props.sync } : undefined,
      points: { size: 6 },
      drag: { x: props.onZoom !== undefined, y: false, setScale: false },
    },
    scales: {
      x: { time: true, range: (_, least, most) => now().props.range ?? [least, most] },
      y: { range: () => [0, Math.max(props.top ?? 0, (highest(now().curves, now().drawn) || 1) * HEADROOM)] },
      right: { range: (_, __, max) => [0, (max || 1) * 1.1] },
    },
    bands: props.stacked
      ? curves
          .filter((curve) => !curve.flat)
          .slice(1)
          .map((_, at) => ({ series: [at + 1, at + 2] as [number, number] }))
      : undefined,
    series: [{}, ...curves.map((curve) => seriesOf(curve, props.stacked === true))],
    axes: axes(now),
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          if (plot.select.width < 8) return;
          now().props.onZoom?.(
            plot.posToVal(plot.select.left, 'x'),
            plot.posToVal(plot.select.left + plot.select.width, 'x'),
          );
        },
      ],
      drawAxes: [
        (plot) =>
          now().curves.forEach((curve, i) => {
            if (curve.over) drawHatch(plot, curve, now().drawn[i] ?? [], token(curve.colour));
          }),
      ],
      draw: [(plot) => drawMarks(plot, now().props.marks ?? [])],
    },
  };
}

interface LegendProps {
  props: ChartProps;
  off: Set<string>; // the curves that are not shown
  toggle: (label: string) => void;
  cursor: number | null;
  top: number;
}

function Legend({ props, off, toggle, cursor, top }: LegendProps) {
  const show = props.format ?? number;
  const at = cursor ?? props.times.length - 1;
  const time = cursor === null ? undefined : props.times[cursor];
  return (
    <div class="legend">
      {props.curves.map((curve) => (
        <button
          type="button"
          key={curve.label}
          aria-pressed={!off.has(curve.label)}
          onClick={() => toggle(curve.label)}
        >
          {(props.stacked && !curve.flat) || curve.area ? (
            <span class="swatch" style={{ background: `var(--${curve.colour})` }} />
          ) : (
            <span class={`line${curve.dash ? ' dash' : ''}`} style={{ color: `var(--${curve.colour})` }} />
          )}
          {curve.label} <span class="val">{(curve.right ? number : show)(curve.values[at])}</span>
          {curve.loose && (curve.values[at] ?? 0) > top * HEADROOM && <span>(above the chart)</span>}
        </button>
      ))}
      {time !== undefined && <span>{dateTime(time * 1000)}</span>}
    </div>
  );
}

export function Chart(props: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [off, setOff] = useState<Set<string>>(() => new Set());
  const [cursor, setCursor] = useState<number | null>(null);
  const curves = props.curves.filter((curve) => !off.has(curve.label));
  // An upper curve is filled down to the axis, so it is drawn before those below it.
  const areas = props.stacked ? curves.filter((curve) => !curve.flat) : [];
  const lines = curves.filter((curve) => !areas.includes(curve));
  const inverse = [...areas].reverse().concat(lines);
  const drawn = [...stack(areas.map((curve) => curve.values)).reverse(), ...lines.map((curve) => curve.values)];
  const data = [props.times, ...drawn] as uPlot.AlignedData;
  const shape = JSON.stringify([
    inverse.map((curve) => [curve.label, curve.colour, curve.step, curve.dash, curve.area, curve.right]),
    props.height,
    props.stacked,
    theme.value,
    painted.value,
  ]);
  const latest = useRef<Drawn>({ props, curves: inverse, drawn });
  latest.current = { props, curves: inverse, drawn };
  useEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    const made = new uPlot(
      optionsOf(() => latest.current, Math.max(200, element.clientWidth), setCursor),
      data,
      element,
    );
    plot.current = made;
    const sizes = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, element.clientWidth), height: props.height ?? 200 }),
    );
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [props.times, props.curves, off, props.range?.[0], props.range?.[1], props.marks?.length]);
  const show = props.format ?? number;
  const toggle = (label: string) =>
    setOff((old) => {
      const next = new Set(old);
      if (!next.delete(label)) next.add(label);
      return next;
    });
  const summary = useMemo(
    () => props.curves.map((curve) => `${curve.label} ${show(curve.values.at(-1))}`).join(', '),
    [props.curves],
  );
  return (
    <figure class="chart">
      <Legend props={props} off={off} toggle={toggle} cursor={cursor} top={highest(inverse, drawn)} />
      <div
        class="plot"
        ref={holder}
        role="img"
        aria-label={`${props.label}. Now: ${summary}.`}
        style={{ height: `${props.height ?? 200}px` }}
      />
      {props.times.length === 0 && <div class="nothing">{props.empty ?? 'There are no samples in this time yet.'}</div>}
    </figure>
  );
}
