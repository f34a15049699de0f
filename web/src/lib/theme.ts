// Light or dark: as the system says, or as the user chose.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'swell.theme';

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : 'system';
  } catch {
    return 'system';  // storage is switched off
  }
}

export const theme = signal<Theme>('system');
// Counts up with every change of colours, so that canvases draw again.
export const painted = signal(0);

function apply(): void {
  const dark = theme.peek() === 'dark' || (theme.peek() === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  painted.value += 1;
}

export function setTheme(next: Theme): void {
  theme.value = next;
  try {
    if (next === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch { /* the choice lasts as long as the page */ }
  apply();
}

export function startTheme(): void {
  theme.value = stored();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  apply();
}

const PALETTE = 8;
const colours = signal<Map<string, number>>(new Map());

// The same project has the same colour on every page: by age, so that a new one changes no other.
export function learnProjects(rows: { name: string; created?: string }[]): void {
  const names = [...rows].sort((a, b) => (a.created ?? '').localeCompare(b.created ?? '') || a.name.localeCompare(b.name)).map((row) => row.name);
  if (names.every((name, index) => colours.peek().get(name) === index % PALETTE)) return;
  colours.value = new Map(names.map((name, index) => [name, index % PALETTE]));
}
export function colourIndex(name: string): number {
  const known = colours.value.get(name);
  if (known !== undefined) return known;
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return hash % PALETTE;
}
