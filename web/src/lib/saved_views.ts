// Filters, order and columns of a table that the user gave a name, kept in this browser.
import { signal } from '@preact/signals';

export interface SavedView {
  name: string;
  search: string;
}
const KEY = 'swell.views';
const VIEWS_MAX = 20;

type Store = Record<string, SavedView[]>;

function read(): Store {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? '{}') as unknown;
    return typeof found === 'object' && found !== null ? (found as Store) : {};
  } catch {
    return {}; // nothing stored, or storage is switched off
  }
}
const store = signal<Store | undefined>(undefined);

export function viewsOf(table: string): SavedView[] {
  const views = (store.value ?? read())[table];
  return Array.isArray(views) ? views : [];
}
function write(table: string, views: SavedView[]): void {
  const next = { ...(store.peek() ?? read()), [table]: views.slice(-VIEWS_MAX) };
  store.value = next;
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    /* they last as long as the page */
  }
}
export function saveView(table: string, name: string, search: string): void {
  write(table, [...viewsOf(table).filter((view) => view.name !== name), { name, search }]);
}
export function dropView(table: string, name: string): void {
  write(
    table,
    viewsOf(table).filter((view) => view.name !== name),
  );
}
