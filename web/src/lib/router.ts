// The address of the page: a path of one word, and its parameters.
import { signal } from '@preact/signals';

export interface Place {
  path: string;
  params: URLSearchParams;
}

function read(): Place {
  return { path: location.pathname, params: new URLSearchParams(location.search) };
}
export const place = signal<Place>(
  typeof location === 'undefined' ? { path: '/', params: new URLSearchParams() } : read(),
);

// What another screen, or the same screen of another object, begins anew.
export function screenKey({ path, params }: Place): string {
  return [path, ...['namespace', 'name', 'kind'].map((key) => params.get(key) ?? '')].join(' ');
}

export function startRouter(): void {
  window.addEventListener('popstate', () => {
    place.value = read();
  });
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const anchor = (event.target as Element).closest?.('a');
    if (!anchor || anchor.target || anchor.hasAttribute('download') || anchor.origin !== location.origin) return;
    const href = anchor.getAttribute('href') ?? '';
    if (!href.startsWith('/')) return;
    event.preventDefault();
    go(href);
  });
}

export function go(href: string, replace = false): void {
  const before = screenKey(place.peek());
  if (replace) history.replaceState(null, '', href);
  else if (href !== location.pathname + location.search) history.pushState(null, '', href);
  place.value = read();
  if (before !== screenKey(place.peek())) {
    window.scrollTo(0, 0);
    document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
  }
}

// How far the table of a page is scrolled, with the page's entry in the history: Back leads to the rows that one left.
export function keepScroll(top: number): void {
  history.replaceState({ top }, '');
}
export function keptScroll(): number {
  return (history.state as { top?: number } | null)?.top ?? 0;
}

export function param(name: string): string {
  return place.value.params.get(name) ?? '';
}

// Changes parameters of the current page; an empty value removes one.
export function setParams(changes: Record<string, string | null | undefined>, replace = true): void {
  const params = new URLSearchParams(place.peek().params);
  for (const [key, value] of Object.entries(changes)) {
    if (value) params.set(key, value);
    else params.delete(key);
  }
  const text = params.toString();
  go(place.peek().path + (text ? `?${text}` : ''), replace);
}

// What counts as running and as pending, in the words of the table of workloads.
export const RUNNING = 'Running,Hung';
export const PENDING = 'Pending,Preempted,Restarting';

export const hrefOf = {
  job: ({ namespace, name, kind }: { namespace: string; name: string; kind: string }, tab?: string) =>
    `/job?${new URLSearchParams({ namespace, name, kind, ...(tab ? { tab } : {}) })}`,
  cron: ({ namespace, name, kind }: { namespace: string; name: string; kind: string }, tab?: string) =>
    `/cron?${new URLSearchParams({ namespace, name, kind, ...(tab ? { tab } : {}) })}`,
  project: (name: string, tab?: string) => `/project?${new URLSearchParams({ name, ...(tab ? { tab } : {}) })}`,
  node: (name: string) => `/node?${new URLSearchParams({ name })}`,
  audit: (user: string) => `/events?${new URLSearchParams({ tab: 'audit', user })}`,
  preemptions: '/events?reason=Preempted,Reclaimed,Shrunk',
  nodes: (filters: Record<string, string>) => `/nodes?${new URLSearchParams(filters)}`,
  pool: (name: string) => `/nodepool?${new URLSearchParams({ name })}`,
  workloads: (filters: Record<string, string> = {}) => {
    const text = new URLSearchParams(filters).toString();
    return `/workloads${text ? `?${text}` : ''}`;
  },
};
