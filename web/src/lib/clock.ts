// The present moment, for ages on the page; it stands still while the tab is hidden.
import { signal } from '@preact/signals';

const TICK_MS = 5_000;
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, TICK_MS);
  document.addEventListener('visibilitychange', () => {
    now.value = Date.now();
  });
}
