// Light or dark: as the system says, or as the user chose.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'swell.theme';

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : 'system';
  } catch {
    return 'system'; // storage is switched off
  }
}

export const theme = signal<Theme>('system');
// Counts up with every change of colours, so that canvases draw again.
export const painted = signal(0);

function apply(): void {
  const dark =
    theme.peek() === 'dark' || (theme.peek() === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  painted.value += 1;
}

export function setTheme(next: Theme): void {
  theme.value = next;
  try {
    if (next === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    /* the choice lasts as long as the page */
  }
  apply();
}

export function startTheme(): void {
  theme.value = stored();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  apply();
}

const PALETTE = 10;
const NAMES_KEPT = 200;
const COLOURS_KEY = 'swell.colours';
// The place of each project in the palette. After its end colours repeat, and are marked.
const places = new Map<string, number>();
const learned = signal(0);
let read = false;
let listed = false; // whether the list of projects has come

function readPlaces(): void {
  if (read) return;
  read = true;
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(COLOURS_KEY) ?? '[]');
    for (const [name, at] of Array.isArray(kept) ? (kept as [unknown, unknown][]) : []) {
      if (typeof name === 'string' && Number.isInteger(at) && places.size < NAMES_KEPT) places.set(name, at as number);
    }
  } catch {
    /* colours are chosen anew */
  }
}
function keepPlaces(): void {
  try {
    localStorage.setItem(COLOURS_KEY, JSON.stringify([...places].slice(-NAMES_KEPT)));
  } catch {
    /* they last as long as the page */
  }
}

// The first place that no other name has. A name that is gone gives its place up when the palette is full.
export function placeOf(name: string, taken: Map<string, number>, now: Set<string>): number {
  const known = taken.get(name);
  if (known !== undefined) return known;
  const free = (used: Set<number>) => {
    let at = 0;
    while (used.has(at)) at += 1;
    return at;
  };
  const unused = free(new Set(taken.values()));
  if (unused < PALETTE || now.size === 0) return unused;
  return free(new Set([...taken].filter(([other]) => now.has(other)).map(([, at]) => at)));
}

// A project keeps its colour on every page of this browser, also when other projects are made and deleted.
export function learnProjects(rows: { name: string; created?: string }[]): void {
  readPlaces();
  const names = [...rows]
    .sort((a, b) => (a.created ?? '').localeCompare(b.created ?? '') || a.name.localeCompare(b.name))
    .map((row) => row.name);
  const now = new Set(names);
  const fresh = names.filter((name) => !places.has(name));
  for (const name of fresh) {
    const at = placeOf(name, places, now);
    for (const [other, place] of places) if (place === at && !now.has(other)) places.delete(other);
    places.set(name, at);
  }
  if (fresh.length > 0) keepPlaces();
  if (fresh.length > 0 || !listed) learned.value += 1;
  listed = true;
}
// `again`: another name has the colour, too.
export function colourOf(name: string): { index: number; again: boolean } {
  void learned.value;
  readPlaces();
  // Before the list is there, the order in which parts of a page ask would decide, and differ in each browser.
  if (!listed && !places.has(name)) return { index: name.length % PALETTE, again: false };
  const at = placeOf(name, places, new Set());
  places.set(name, at);
  return { index: at % PALETTE, again: at >= PALETTE };
}
