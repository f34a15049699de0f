// The small parts of all pages.
import type { ComponentChildren, CSSProperties } from 'preact';
import { signal } from '@preact/signals';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { now } from '../lib/clock.ts';
import { ago, bound, dateTime, nameParts, number, ratio } from '../lib/format.ts';
import { hrefOf, param, place, setParams } from '../lib/router.ts';
import { colourOf } from '../lib/theme.ts';
import type { Share } from '../lib/types.ts';
import { Icon, type IconName } from './icons.tsx';

// The node pool that is shown for nodes of none. Commands print the same.
export const NO_POOL = '(no pool)';

type Children = { children?: ComponentChildren };

interface Crumb {
  text: string;
  href: string;
}

export function Head({
  title,
  crumbs,
  children,
  badge,
}: Children & {
  title: string;
  crumbs?: Crumb[];
  badge?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Swell`;
  }, [title]);
  return (
    <div class="head">
      {crumbs && (
        <nav class="crumbs" aria-label="Path">
          {crumbs.map((crumb) => (
            <>
              <a href={crumb.href}>{crumb.text}</a>
              <span aria-hidden="true">/</span>
            </>
          ))}
        </nav>
      )}
      <h1>{title}</h1>
      {badge}
      <div class="right">{children}</div>
    </div>
  );
}

export function Button({
  icon,
  primary,
  danger,
  plain,
  children,
  label,
  ...rest
}: Children & {
  icon?: IconName;
  primary?: boolean;
  danger?: boolean;
  plain?: boolean;
  label?: string;
  onClick?: (event: MouseEvent) => void;
  disabled?: boolean;
  type?: 'button' | 'submit';
  pressed?: boolean;
  title?: string;
}) {
  const { pressed, type, ...others } = rest;
  const names = ['button', primary && 'primary', danger && 'danger', plain && 'plain', !children && 'icon']
    .filter(Boolean)
    .join(' ');
  return (
    <button type={type ?? 'button'} class={names} aria-label={label} aria-pressed={pressed} title={label} {...others}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

const TONES: Record<string, string> = {
  running: 'ok',
  ready: 'ok',
  active: 'ok',
  succeeded: 'idle',
  completed: 'idle',
  healthy: 'ok',
  true: 'ok',
  pending: 'wait',
  waiting: 'wait',
  queued: 'wait',
  suspended: 'wait',
  preempted: 'wait',
  degraded: 'wait',
  readycordoned: 'wait',
  notready: 'bad',
  notreadycordoned: 'bad',
  empty: 'idle',
  failed: 'bad',
  invalid: 'bad',
  hung: 'bad',
  unknown: 'bad',
  error: 'bad',
  crashloopbackoff: 'bad',
  imagepullbackoff: 'bad',
  unhealthy: 'bad',
  warning: 'wait',
  faulty: 'wait',
  suspect: 'wait',
  slow: 'wait',
  starting: 'busy',
  creating: 'busy',
  initializing: 'busy',
  containercreating: 'busy',
  resuming: 'busy',
  restarting: 'busy',
  saving: 'busy',
  terminating: 'busy',
  deleting: 'busy',
};
export function toneOf(status: string): string {
  if (status.endsWith(', bad')) return 'bad';
  return TONES[status.toLowerCase().replace(/[^a-z]/g, '')] ?? 'idle';
}
export function Status({ word, reason }: { word: string; reason?: string | null }) {
  return (
    <span class={`badge ${toneOf(word)}`} title={reason ?? word}>
      <span class="cut">{word}</span>
    </span>
  );
}

// As in swell list, the reason that keeps the workload from running takes the place of its state.
export function JobStatus({ row }: { row: { status: string; statusText?: string; reason?: string | null } }) {
  const word = row.statusText ?? row.status;
  const tone = word === row.status || /^(?:Waiting|Restarting|Hung)$/.test(word) ? toneOf(word) : 'bad';
  return (
    <span class={`badge ${tone}`} title={[word, row.reason].filter(Boolean).join('\n')}>
      <span class="cut">{word}</span>
    </span>
  );
}

export function Age({ time }: { time?: string | null }) {
  return (
    <time dateTime={time ?? undefined} title={dateTime(time)} class="nowrap">
      {ago(time, now.value)}
    </time>
  );
}

export function Tile({
  label,
  value,
  unit,
  note,
  href,
  title,
}: {
  label: string;
  value: ComponentChildren;
  unit?: string;
  note?: ComponentChildren;
  href?: string;
  title?: string;
}) {
  const inside = (
    <>
      <div class="label">{label}</div>
      <div class="value">
        {value}
        {unit && <small> {unit}</small>}
      </div>
      <div class="note">{note}</div>
    </>
  );
  return href ? (
    <a class="tile" href={href} title={title}>
      {inside}
    </a>
  ) : (
    <div class="tile" title={title}>
      {inside}
    </div>
  );
}

export function Card({
  title,
  right,
  flush,
  children,
  id,
}: Children & {
  title?: ComponentChildren;
  right?: ComponentChildren;
  flush?: boolean;
  id?: string;
}) {
  return (
    <section class={`card${flush ? ' flush' : ''}`} id={id} aria-label={typeof title === 'string' ? title : undefined}>
      {(title || right) && (
        <header>
          <h2>{title}</h2>
          <div class="right">{right}</div>
        </header>
      )}
      {children}
    </section>
  );
}

export function Skeleton({ lines = 3, height }: { lines?: number; height?: number }) {
  return (
    <div class="stack" aria-busy="true" style={{ gap: '10px' }}>
      <span class="hidden-text">Loading</span>
      {Array.from({ length: lines }, (_, i) => (
        <span
          key={i}
          class="skeleton"
          style={{ width: `${100 - (i % 3) * 14}%`, height: height ? `${height}px` : undefined }}
        />
      ))}
    </div>
  );
}

export function Empty({ title, children }: Children & { title: string }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Notice({ tone, children }: Children & { tone?: 'bad' | 'wait' }) {
  return (
    <div class={`notice ${tone ?? ''}`} role={tone === 'bad' ? 'alert' : undefined}>
      {children}
    </div>
  );
}

// What a view shows instead of its data: a skeleton, or why there is no data.
export function Waiting({ state, lines }: { state: { data?: unknown; error?: string }; lines?: number }) {
  if (state.error && state.data === undefined) return <Notice tone="bad">This could not be read: {state.error}</Notice>;
  return state.data === undefined ? <Skeleton lines={lines ?? 5} /> : null;
}

// The page of an object that is not there, or has not been read yet.
export function Missing({
  name,
  text,
  crumbs,
  state,
  children,
}: Children & {
  name: string;
  text: string;
  crumbs: Crumb[];
  state: { data?: unknown; error?: string };
}) {
  return (
    <>
      <Head title={name} crumbs={crumbs} />
      {state.data === undefined ? (
        <Waiting state={state} />
      ) : (
        <Empty title={text}>
          <p>{children}</p>
        </Empty>
      )}
    </>
  );
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

// The tab that the address names; the first, if the page has no such tab.
export function chosenTab(tabs: [string, string][], named = param('tab')): string {
  return tabs.some(([key]) => key === named) ? named : (tabs[0]?.[0] ?? '');
}

// The tabs of a page; the chosen one is in the address.
export function Tabs({ tabs }: { tabs: [string, string][] }) {
  const first = tabs[0]?.[0];
  const chosen = chosenTab(tabs);
  const list = useRef<HTMLDivElement>(null);
  // On a phone the tabs are wider than the page.
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [chosen]);
  const keys = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step) return;
    const at = tabs.findIndex(([key]) => key === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    setParams({ tab: next[0] === first ? null : next[0] });
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" ref={list} onKeyDown={keys}>
      {tabs.map(([key, text]) => {
        const params = new URLSearchParams(place.value.params);
        if (key === first) params.delete('tab');
        else params.set('tab', key);
        return (
          <a
            key={key}
            role="tab"
            id={`tab-${key}`}
            aria-controls="tab-panel"
            tabIndex={key === chosen ? 0 : -1}
            aria-selected={key === chosen}
            href={`${place.value.path}?${params}`}
          >
            {text}
          </a>
        );
      })}
    </div>
  );
}
export function TabPanel({ children, tabs }: Children & { tabs: [string, string][] }) {
  return (
    <div role="tabpanel" id="tab-panel" class="stack" aria-labelledby={`tab-${chosenTab(tabs)}`}>
      {children}
    </div>
  );
}

export function Segments<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: [T, string][];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}

// A button that opens a list; Escape and a click elsewhere close it.
export function Menu({
  text,
  icon,
  label,
  toLeft,
  children,
  plain,
}: Children & {
  text?: ComponentChildren;
  icon?: IconName;
  label?: string;
  toLeft?: boolean;
  plain?: boolean;
}) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    // A menu that the focus has left would cover the page. A press on its text gives the focus to what it is in.
    const left = (event: Event) => {
      if (!(event.target as Node).contains(box.current)) outside(event);
    };
    document.addEventListener('pointerdown', outside);
    document.addEventListener('focusin', left);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('focusin', left);
    };
  }, [open]);
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && open) {
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector('button')?.focus();
    }
  };
  return (
    <div class="has-menu" ref={box} onKeyDown={keys}>
      <button
        type="button"
        class={`button${plain ? ' plain' : ''}`}
        aria-expanded={open}
        aria-label={label}
        title={label}
        onClick={() => setOpen(!open)}
      >
        {icon && <Icon name={icon} />}
        {text}
      </button>
      {open && (
        <div
          class={`menu${toLeft ? ' to-left' : ''}`}
          onClick={(event) => {
            if ((event.target as Element).closest('[data-closes]')) setOpen(false);
          }}
        >
          {children}
        </div>
      )}
    </div>
  );
}

export function tint(name: string | null | undefined): CSSProperties {
  return { '--tint': name ? `var(--p${colourOf(name).index})` : 'var(--strong-line)' } as CSSProperties;
}

// A name that is cut in its middle where it does not fit.
export function Name({ text }: { text: string }) {
  const [head, tail] = nameParts(text);
  if (!tail) return <span class="cut">{text}</span>;
  return (
    <span class="halves">
      <span class="cut">{head}</span>
      {tail}
    </span>
  );
}

export function ProjectName({ name, plain }: { name?: string | null; plain?: boolean }) {
  if (!name) return <span class="muted">–</span>;
  const inside = (
    <>
      <span
        class={`swatch${colourOf(name).again ? ' again' : ''}`}
        style={{ color: `var(--p${colourOf(name).index})` }}
      />
      <span class="cut">{name}</span>
    </>
  );
  return plain ? (
    <span class="with-swatch">{inside}</span>
  ) : (
    <a class="with-swatch" href={hrefOf.project(name)}>
      {inside}
    </a>
  );
}

// Held, quota (tick), fair share (triangle), and what is held over quota (hatched).
export function QuotaBar({ share, name, what = 'GPUs' }: { share: Share; name?: string; what?: string }) {
  const quota = share.quota !== null && share.quota !== undefined && share.quota >= 0 ? share.quota : null;
  // Not what is requested: a queue of a hundred jobs would leave a line of what is held.
  const top = Math.max(share.held, quota ?? 0, share.fairShare ?? 0, 0.001);
  const at = (value: number) => `${Math.min(100, (value / top) * 100)}%`;
  const within = quota === null ? share.held : Math.min(share.held, quota);
  const over = share.held - within;
  const text =
    `${number(share.held)} ${what} held, quota ${bound(quota)}` +
    (share.fairShare !== null && share.fairShare !== undefined ? `, fair share ${number(share.fairShare)}` : '') +
    (over > 0 ? `, ${number(over)} over quota` : '');
  return (
    <span class="quota" role="img" aria-label={text} title={text} style={name ? tint(name) : undefined}>
      <span class="fill" style={{ width: at(within) }} />
      {over > 0 && <span class="over" style={{ left: at(within), width: `calc(${at(share.held)} - ${at(within)})` }} />}
      {quota !== null && <span class="tick" style={{ left: at(quota) }} />}
      {share.fairShare !== null && share.fairShare !== undefined && (
        <span class="share" style={{ left: at(share.fairShare) }} />
      )}
    </span>
  );
}
export function QuotaCell({ share, name }: { share: Share; name?: string }) {
  const over = share.quota !== null && share.quota !== undefined && share.quota >= 0 && share.held > share.quota;
  return (
    <span class="meter">
      <QuotaBar share={share} name={name} />
      <span class="nowrap" style={{ minWidth: '44px', fontWeight: over ? 650 : undefined }}>
        {ratio(share.held, share.quota)}
      </span>
    </span>
  );
}
export function HeldBar({ held, total, what = 'GPUs' }: { held: number; total: number; what?: string }) {
  const text = `${number(held)} of ${number(total)} ${what} held`;
  return (
    <span class="quota" role="img" aria-label={text} title={text}>
      <span class="fill" style={{ width: total > 0 ? `${Math.min(100, (held / total) * 100)}%` : '0' }} />
    </span>
  );
}

export function CheckBox({
  label,
  checked,
  onChange,
}: {
  label: ComponentChildren;
  checked: boolean;
  onChange: (on: boolean) => void;
}) {
  const id = useId();
  return (
    <label class="check" for={id}>
      <input id={id} type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}
const toasts = signal<Toast[]>([]);
let lastToast = 0;
const TOASTS_MAX = 4;
export function toast(text: string, bad = false): void {
  const id = ++lastToast;
  toasts.value = [...toasts.value, { id, text, bad }].slice(-TOASTS_MAX);
  if (!bad) setTimeout(() => dismiss(id), 6000);
}
function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
// Outside of a secure context there is no clipboard, and elsewhere the browser may refuse.
export function copy(text: string, done: string, refused: string): void {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error());
  copied.then(
    () => toast(done),
    () => toast(refused),
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast${one.bad ? ' bad' : ''}`}>
          <span>{one.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(one.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
