// What somebody sees who has rights in one project only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, stage } from './fixture.ts';

const one = stage();

// The user may make workloads in `project` alone, and sees the pods of no other, until what is returned is called.
function inProjectAlone(project: string): () => void {
  const { world, denied } = one.fake;
  const { jobs, projects } = world;
  const others = projects.filter((row) => row.name !== project).map((row) => row.namespace ?? row.name);
  for (const place of ['the cluster', ...others]) denied.add(`create trainingjobs in ${place}`);
  world.jobs = [];
  world.projects = projects.map((row) => (row.name === project ? row : { ...row, running: null, pending: null }));
  return () => {
    denied.clear();
    Object.assign(world, { jobs, projects });
  };
}

test('a project without workloads takes the first one from its researcher', async (context) => {
  context.after(inProjectAlone('vision'));
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'New workload' }).first().click();
  // The only project that takes it is chosen already.
  const project = page.getByLabel('Project', { exact: true });
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>('dialog select')?.value === 'vision');
  assert.deepEqual(await project.locator('option').allInnerTexts(), ['choose a project', 'vision']);
  await page.getByLabel('Workload name').fill('first');
  await page.getByLabel('Image').fill('python:3.11');
  await page.getByLabel('Command').fill('set -e\npython train.py');
  await page.route('**/ui/api/plan', (route) =>
    route.fulfill({ status: 403, json: { message: 'podgroups is forbidden: User "ann" cannot list them' } }),
  );
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.waitForSelector('dialog .notice:has-text("The manifest is valid.")');
  assert.equal(await page.locator('dialog [role=alert]').count(), 0, 'what is hidden from a user is no error');
  const manifest = await page.getByLabel('Manifest', { exact: true }).inputValue();
  assert.match(manifest, /- \|-\n +set -e\n +python train.py\n/);
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForSelector('h1:has-text("first")');
  await page.context().close();
  noTroubles(one);
});

test('nobody is offered what they may not do', async (context) => {
  context.after(inProjectAlone('vision'));
  one.fake.denied.add('create trainingjobs');
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('text=There are no workloads');
  assert.equal(await page.getByRole('button', { name: 'New workload' }).count(), 0);
  await page.context().close();
});

test('what would happen is asked only by those who can read the whole cluster', async (context) => {
  context.after(() => one.fake.denied.clear());
  one.fake.denied.add('list podgroups');
  const page = await one.page();
  await go(page, '/whatif', 'What-if');
  await page.waitForSelector('text=Only users who can read the whole cluster can ask this');
  assert.equal(await page.getByRole('button', { name: 'Show what would happen' }).count(), 0);
  await page.context().close();
});

test('on a cluster without projects, a workload goes to the default namespace', async (context) => {
  const { world } = one.fake;
  const { projects } = world;
  context.after(() => Object.assign(world, { projects }));
  world.projects = [];
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'New workload' }).first().click();
  await page.waitForSelector('dialog select option:text-is("none: namespace default")', { state: 'attached' });
  await page.getByLabel('Workload name').fill('alone');
  await page.getByLabel('Image').fill('python:3.11');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  assert.match(await page.getByLabel('Manifest', { exact: true }).inputValue(), /\n {2}namespace: default\n/);
  await page.context().close();
});

test('the end of a log is in sight without scrolling the page', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running');
  assert.ok(row);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  await page.waitForSelector('.log-line');
  const box = await page.locator('.log').boundingBox();
  assert.ok(box && box.y + box.height <= 900, `the box of the log ends at ${box && box.y + box.height} of 900`);
  await page.context().close();
});
