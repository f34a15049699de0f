// Tables: which columns they have, and what they show where rows cannot be read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, stage, texts } from './fixture.ts';

const one = stage();

test('a list that cannot be read says so, and does not look as if it were loading', async () => {
  const page = await one.page();
  await page.routeWebSocket(/live/, (socket) => socket.close());
  await page.route(/views\/nodes/, (route) => route.abort());
  await go(page, '/nodes', 'Nodes');
  await page.waitForSelector('[role=alert]:has-text("Nodes could not be read: The server cannot be reached.")');
  assert.equal(await page.locator('main [aria-busy]').count(), 0);
  await page.unroute(/views\/nodes/);
  await page.waitForSelector('.grid-head:has-text("Health")');
  await page.waitForSelector('[role=alert]', { state: 'detached' });
  await page.context().close();
});

test('the order of a hidden column shows it, and a column without any value is left out', async () => {
  const page = await one.page();
  const heads = async () => (await texts(page, '.grid-head [role=columnheader]')).filter(Boolean);
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  assert.ok(!(await heads()).includes('Wait'), 'the state tells how long it waits');
  assert.ok((await heads()).includes('Progress'));
  await go(page, '/workloads?sort=-wait', 'Workloads');
  await page.waitForSelector('[role=columnheader][aria-sort=descending]:has-text("Wait")');
  const silent = one.fake.world.jobs.map((job) => job.progress);
  one.fake.world.jobs.forEach((job) => delete job.progress);
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  assert.ok(!(await heads()).includes('Progress'));
  one.fake.world.jobs.forEach((job, at) => (job.progress = silent[at]));
  await page.context().close();
});

test('a role that the project and the user both have is told once', async () => {
  const role = { name: 'vision', role: 'researcher' };
  const { users } = one.fake.world;
  users.push({ name: 'twice', role: 'researcher', projects: [role, { ...role }] });
  const page = await one.page();
  await go(page, '/users', 'Users');
  const cell = page.locator('.grid-row:has-text("twice") .cut:has-text("vision")');
  assert.equal((await cell.innerText()).trim(), 'vision researcher');
  users.pop();
  await page.context().close();
});
