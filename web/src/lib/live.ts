// One connection per tab: views are subscribed to, and their data arrives when it changes.
// - A view that several parts of a page show is subscribed to once.
// - Where no WebSocket can be had, views are polled.
// - A tab that is hidden for 30 s, or paused, subscribes to nothing.
import { signal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { ApiError, errorText, isUnreached, json, query } from './api.ts';
import { applied, type Delta } from './delta.ts';
import { forgetNotes } from './tail.ts';

export type Params = Record<string, string | number>;
export interface ViewState<T> {
  data?: T;
  error?: string;
  at?: number;
}
type Link = 'connecting' | 'live' | 'polling' | 'paused' | 'hidden';

const HIDDEN_MS = 30_000;
const POLL_MS = 2_000;
const KEEP_MS = 5_000; // a view that no page shows any more: the next page may want it again
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 10_000;
const TRIES_BEFORE_POLLING = 3;

export const link = signal<Link>('connecting');
export const paused = signal(false);
// Whether the last request found the server.
export const reached = signal(true);

interface Subscription {
  id: number;
  view: string;
  params: Params;
  users: number;
  revision?: string;
  state: Signal<ViewState<unknown>>;
  drop?: number;
}

const subscriptions = new Map<string, Subscription>();
let nextId = 1;
let socket: WebSocket | undefined;
let tries = 0;
let wasLive = false; // since the session began
let retryTimer = 0;
let pollTimer = 0;
let hiddenTimer = 0;
let running = false;
let asleep = false;

function send(message: unknown): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function subscribe(subscription: Subscription): void {
  send({ op: 'subscribe', id: subscription.id, view: subscription.view, params: subscription.params, delta: true });
}

interface Frame {
  id: number;
  revision?: string;
  data?: unknown;
  base?: string;
  delta?: Delta;
  error?: string;
}

// The data after a delta; undefined where the delta is not of the data that is here.
function changed(subscription: Subscription, frame: Frame): unknown {
  if (!frame.delta || frame.base !== subscription.revision) return undefined;
  return applied(subscription.state.peek().data, frame.delta);
}

function take(frame: Frame): void {
  for (const subscription of subscriptions.values()) {
    if (subscription.id !== frame.id) continue;
    if (frame.error !== undefined) {
      subscription.state.value = { ...subscription.state.peek(), error: frame.error };
    } else {
      const data = frame.delta === undefined ? frame.data : changed(subscription, frame);
      if (data === undefined) return void subscribe(subscription); // the whole view is sent again
      subscription.revision = frame.revision;
      subscription.state.value = { data, at: Date.now() };
    }
  }
}

function connect(): void {
  clearTimeout(retryTimer);
  if (!running || asleep || paused.peek() || socket) return;
  if (link.peek() !== 'polling') link.value = 'connecting';
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const made = new WebSocket(`${scheme}//${location.host}/ui/api/live`);
  socket = made;
  made.onopen = () => {
    tries = 0;
    wasLive = true;
    reached.value = true;
    stopPolling();
    link.value = 'live';
    for (const subscription of subscriptions.values()) subscribe(subscription);
  };
  made.onmessage = (message) => {
    try {
      take(JSON.parse(String(message.data)) as Frame);
    } catch {
      /* a frame that is not JSON carries nothing for a view */
    }
  };
  made.onclose = () => {
    if (socket !== made) return;
    socket = undefined;
    if (!running || asleep || paused.peek()) return;
    tries += 1;
    // Pages that show nothing yet do not wait for a second try.
    if (!wasLive || tries >= TRIES_BEFORE_POLLING) startPolling();
    else link.value = 'connecting';
    retryTimer = window.setTimeout(connect, Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** tries));
  };
}

function disconnect(): void {
  const old = socket;
  socket = undefined;
  clearTimeout(retryTimer);
  stopPolling();
  old?.close();
}

function stopPolling(): void {
  clearTimeout(pollTimer);
  pollTimer = 0;
}
function startPolling(): void {
  link.value = 'polling';
  if (!pollTimer) void poll();
}

async function pollOne(subscription: Subscription): Promise<void> {
  try {
    const answer = await json<{ revision: string; data: unknown }>(
      'GET',
      `/ui/api/views/${subscription.view}${query(subscription.params)}`,
    );
    reached.value = true;
    if (answer.revision === subscription.revision && !subscription.state.peek().error) return;
    take({ id: subscription.id, ...answer });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return stop();
    reached.value = !isUnreached(error);
    take({ id: subscription.id, error: errorText(error) });
  }
}
async function poll(): Promise<void> {
  clearTimeout(pollTimer);
  for (const subscription of [...subscriptions.values()]) await pollOne(subscription);
  if (link.peek() === 'polling' && running) pollTimer = window.setTimeout(() => void poll(), POLL_MS);
}

function visibilityChanged(): void {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = window.setTimeout(() => {
      asleep = true;
      disconnect();
      if (!paused.peek()) link.value = 'hidden';
    }, HIDDEN_MS);
  } else if (asleep) {
    asleep = false;
    if (paused.peek()) return;
    link.value = 'connecting';
    connect();
  }
}

export function start(): void {
  if (running) return;
  running = true;
  tries = 0;
  wasLive = false;
  document.addEventListener('visibilitychange', visibilityChanged);
  connect();
}
export function stop(): void {
  running = false;
  document.removeEventListener('visibilitychange', visibilityChanged);
  disconnect();
  for (const subscription of subscriptions.values()) subscription.state.value = {};
  forgetNotes();
}
export function setPaused(on: boolean): void {
  paused.value = on;
  if (on) {
    disconnect();
    link.value = 'paused';
  } else {
    link.value = 'connecting';
    connect();
  }
}

function acquire(view: string, params: Params): { key: string; subscription: Subscription } {
  const key = JSON.stringify([view, params]);
  let subscription = subscriptions.get(key);
  if (!subscription) {
    subscription = { id: nextId++, view, params, users: 0, state: signal<ViewState<unknown>>({}) };
    subscriptions.set(key, subscription);
    subscribe(subscription);
    if (link.peek() === 'polling') void pollOne(subscription);
  }
  return { key, subscription };
}

// The data of a view, kept current while the part that calls this is on the page.
export function useView<T>(view: string, params: Params = {}): ViewState<T> {
  const key = JSON.stringify([view, params]);
  const held = useMemo(() => acquire(view, params), [key]);
  useEffect(() => {
    const { subscription } = acquire(view, params);
    subscription.users += 1;
    clearTimeout(subscription.drop);
    return () => {
      subscription.users -= 1;
      subscription.drop = window.setTimeout(() => {
        if (subscription.users > 0 || subscriptions.get(key) !== subscription) return;
        subscriptions.delete(key);
        send({ op: 'unsubscribe', id: subscription.id });
      }, KEEP_MS);
    };
  }, [key]);
  const current = subscriptions.get(key) ?? held.subscription;
  return current.state.value as ViewState<T>;
}
