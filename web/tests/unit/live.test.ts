// The connection of a tab: what it says of itself when it is paused, hidden and seen again.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { link, setPaused, start, stop } from '../../src/lib/live.ts';

class FakeSocket {
  static readonly OPEN = 1;
  readyState = 0;
  send(): void {}
  close(): void {}
}

test('a tab that is paused stays so when it was hidden', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const heard: (() => void)[] = [];
  const page = {
    hidden: false,
    addEventListener: (_: string, listener: () => void) => heard.push(listener),
    removeEventListener: () => undefined,
  };
  Object.assign(globalThis, {
    document: page,
    window: globalThis,
    location: { protocol: 'http:', host: 'localhost' },
    WebSocket: FakeSocket,
  });
  const hide = (hidden: boolean) => {
    page.hidden = hidden;
    for (const listener of heard) listener();
    if (hidden) mock.timers.tick(31_000);
  };
  start();
  hide(true);
  assert.equal(link.value, 'hidden');
  hide(false);
  assert.equal(link.value, 'connecting');
  setPaused(true);
  hide(true);
  assert.equal(link.value, 'paused');
  hide(false);
  assert.equal(link.value, 'paused');
  setPaused(false);
  assert.equal(link.value, 'connecting');
  stop();
  mock.timers.reset();
});
