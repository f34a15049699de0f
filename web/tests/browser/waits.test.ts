import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, stage, texts } from './fixture.ts';

const one = stage();
const pageOf = (row: { namespace: string; name: string; kind: string }, tab = '') =>
  `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=${tab}`;

test('a workload that waits tells its place among those of its project, in the list and on its page', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.queue?.place === 2);
  const queue = row?.queue;
  assert.ok(row && queue);
  await go(page, `/workloads?q=${row.name}`, 'Workloads');
  await page.waitForSelector('.grid-body [title^="It has place 2 in the queue"]:has-text("Place 2.")');
  await go(page, pageOf(row), row.name);
  await page.waitForSelector('.facts div:has(dt:text-is("Has waited"))');
  assert.doesNotMatch((await texts(page, '.facts dt')).join(), /Throughput|Duration|Lost work/, 'it has not run');
  await page
    .locator('.facts div', { has: page.locator('dt:text-is("Queue")') })
    .getByRole('link')
    .click();
  await page.waitForSelector(`.lines div:has(dt:text-is("Queue")):has-text("${queue.text}")`);
  await page.waitForSelector('section[aria-label="What would start it"]:has-text("It could start in 58m")');
  // What starts it is told once, and the table of nodes as a table.
  assert.doesNotMatch((await texts(page, 'section[aria-label=Why]')).join(), /could start|would start/);
  const nodes = page.locator('section[aria-label=Why] [aria-label=Nodes]');
  assert.deepEqual(await nodes.locator('th').allInnerTexts(), ['Node', 'Free GPUs', 'Held by']);
  await page.context().close();
  noTroubles(one);
});

test('no order is claimed where a project serves its users in turn, and none of what runs', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.queue);
  const runs = one.fake.world.jobs.find((job) => job.status === 'Running');
  assert.ok(row?.queue && runs);
  const before = row.queue;
  row.queue = { ...before, of: 5, place: null };
  await go(page, pageOf(row), row.name);
  await page.waitForSelector(`.facts div:has(dt:text-is("Queue")):has-text("one of 5 in ${before.project}")`);
  await go(page, pageOf(runs), runs.name);
  await page.waitForSelector('.facts dt:text-is("Waited")');
  await page.waitForSelector('.facts dt:text-is("Throughput")');
  assert.equal(await page.locator('.facts dt:text-is("Queue")').count(), 0);
  row.queue = before;
  await page.context().close();
});

test('what the page says of a workload that is over is not said again below', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Failed');
  assert.ok(row);
  await go(page, pageOf(row, 'why'), row.name);
  await page.waitForSelector('section[aria-label="What to do next"]:has-text("swell logs")');
  assert.equal(await page.locator('section[aria-label=Why]').count(), 0);
  assert.match((await texts(page, 'main')).join(), /is over: Failed: exit 1/);
  await page.context().close();
});

test('the list of nodes says what is wrong with each, and no word of a state is cut', async () => {
  const page = await one.page({ width: 1024 });
  await go(page, '/nodes', 'Nodes');
  await page.waitForSelector('.grid-row:has-text("node-5"):has-text("is read-only")');
  await page.waitForSelector('.grid-row:has-text("node-3"):has-text("pods failed there")');
  const cut = await page.locator('.grid-body .badge').evaluateAll((badges) =>
    badges
      .flatMap((badge) => [badge, ...badge.querySelectorAll('*')])
      .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible')
      .map((one) => one.textContent),
  );
  assert.deepEqual(cut, []);
  await page.context().close();
});

test('a node without a fault that gets no new pods yet says so under its health', async () => {
  const page = await one.page();
  const node = one.fake.world.nodes[0];
  assert.ok(node?.health);
  const before = node.health;
  const text = 'well again, but not for long enough yet: it gets no new pods';
  node.health = { ...before, state: 'Unhealthy', text };
  await go(page, `/node?name=${node.name}`, node.name);
  await page.waitForSelector(
    `section[aria-label=Health]:has-text("No check finds anything wrong now. The node is ${text}.")`,
  );
  node.health = before;
  await page.context().close();
});

test('a long wait leaves room for the state, and a phone shows the quotas of projects', async () => {
  const page = await one.page({ width: 390 });
  const row = one.fake.world.jobs.find((job) => job.queue);
  assert.ok(row);
  const before = row.waitsSince;
  row.waitsSince = new Date(one.fake.world.now - (14 * 60 + 22) * 60e3).toISOString();
  await go(page, `/workloads?q=${row.name}`, 'Workloads');
  await page.waitForSelector('.grid-body .small:text-is("14 h")');
  const [inside, wide] = await page
    .locator('.grid-body .badge')
    .first()
    .evaluate((badge) => [badge.clientWidth, badge.scrollWidth]);
  assert.equal(inside, wide, 'the state is not cut');
  row.waitsSince = before;
  await go(page, '/projects', 'Projects');
  const right = await page
    .locator('.grid-body .quota')
    .first()
    .evaluate((bar) => bar.getBoundingClientRect().right);
  assert.ok(right <= 390, `the bar ends at ${right} px`);
  await page.context().close();
});

test('an address without a page has a heading and a way on', async () => {
  const page = await one.page();
  await go(page, '/nosuch', 'There is no such page');
  await page.getByRole('link', { name: 'Go to the overview' }).click();
  await page.waitForSelector('h1:has-text("Overview")');
  await page.context().close();
});
