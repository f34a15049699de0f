// Walkthrough 2 (Run:ai: quotas, over quota, preemption and return), clicked as its document says, on a
// cluster of its own: one node with 8 GPUs. The numbers 8/4, 4/4 + 4/4 and 8/4 are read from the pages.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launch, seriousFindings, shot, texts } from '../browser/fixture.ts';

const BIN = process.env.SWELL_BIN ?? path.resolve('../build/bin');
const POOL = 'single-node-pool';
const JOB = 'large-training-job';
const SPACE = 'jupyter-workspace';
const LONG_MS = 90_000;

const data = mkdtempSync(path.join(tmpdir(), 'swell-pages-'));
const environment = {
  ...process.env,
  PATH: `${BIN}:${process.env.PATH}`,
  KUBECONFIG: path.join(data, 'kubeconfig'),
  SWELL_DATA_DIR: data,
};
const run = (program: string, ...words: string[]) =>
  execFileSync(path.join(BIN, program), words, { env: environment, encoding: 'utf8', timeout: LONG_MS });
let browser: Browser;
let page: Page;

before(async () => {
  run('swell', 'up', '--detach', '--nodes', '1', '--gpus-per-node', '8', '--data-dir', data);
  browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  page = await context.newPage();
  page.setDefaultTimeout(LONG_MS);
  const printed = /https?:\/\/\S+#code=\S+/.exec(run('swell', 'ui', '--print'))?.[0];
  assert.ok(printed, 'swell ui prints an address with a code');
  await page.goto(printed);
  await page.waitForSelector('h1:has-text("Overview")').catch(async (problem) => {
    throw new Error(`${problem.message}\nThe page says: ${await page.innerText('body')}`);
  });
});
after(async () => {
  await browser?.close();
  run('swell', 'down', '--data-dir', data);
  rmSync(data, { recursive: true, force: true });
});

const rail = async (text: string) => {
  await page.locator('nav.rail').getByRole('link', { name: text, exact: true }).click();
  await page.waitForSelector(`h1:has-text("${text}")`);
};
const row = (name: string) =>
  page.locator('.grid-body .grid-row', { has: page.locator('.name-link', { hasText: name }) });
const waitRow = (name: string, text: string) => row(name).filter({ hasText: text }).waitFor();
const waitUsage = async (a: string, b: string) => {
  await rail('Projects');
  await waitRow('project-a', a);
  await waitRow('project-b', b);
};
// What the legend of a chart says of a curve now.
const legend = (card: string, curve: string) =>
  page.locator(`${card} .legend button`, { hasText: curve }).locator('.val');
const waitLegend = (card: string, curve: string, value: string) =>
  legend(card, curve)
    .filter({ hasText: new RegExp(`^${value}$`) })
    .waitFor();

test('setup: a node pool and two projects with 4 GPUs each', async () => {
  assert.deepEqual(await texts(page, 'nav.rail h2'), ['Workload manager', 'Platform Admin']);
  await rail('Workloads');
  await page.waitForSelector('text=There are no workloads');
  await rail('Node Pools');
  await page.getByRole('button', { name: 'New node pool' }).first().click();
  await page.getByLabel('Node pool name').fill(POOL);
  await page.getByRole('button', { name: 'Create node pool' }).click();
  await waitRow(POOL, '0/8');
  await rail('Projects');
  for (const [name, description] of [
    ['project-a', 'First project for preemption demo'],
    ['project-b', 'Second project for preemption demo'],
  ] as const) {
    await page.getByRole('button', { name: 'New project' }).first().click();
    await page.getByLabel('Project name').fill(name);
    await page.getByLabel('Description').fill(description);
    await page.getByLabel('Node pool', { exact: true }).selectOption(POOL);
    await page.getByLabel('GPU quota').fill('4');
    await page.getByRole('button', { name: 'Create project' }).click();
    await waitRow(name, '0/4');
  }
  // The API server refuses a second project of this name, and the form says so at the field.
  await page.getByRole('button', { name: 'New project' }).first().click();
  await page.getByLabel('Project name').fill('project-a');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page
    .locator('.field', { has: page.getByLabel('Project name') })
    .locator('.wrong', { hasText: 'already exists' })
    .waitFor();
  await page.keyboard.press('Escape');
  await waitUsage('0/4', '0/4');
});

test('steps 1 and 2: training holds 8 of 4 GPUs, over its quota', async () => {
  run(
    'runai',
    'submit',
    JOB,
    '--project',
    'project-a',
    '--image',
    'python:3.11',
    '--gpu',
    '8',
    '--elastic',
    '--min-workers',
    '2',
    '--command',
    'python3 -c "import time\nfor step in range(3600):\n  print(\'step\', step, flush=True)\n  time.sleep(1)"',
  );
  await rail('Workloads');
  await waitRow(JOB, 'Running');
  await waitRow(JOB, '8/8');
  await waitUsage('8/4', '0/4');
  await waitRow('project-a', '200 %');
  await shot(page, 'walkthrough2-over-quota');
  await row('project-a').locator('.name-link').click();
  await page.waitForSelector('h1:has-text("project-a")');
  await page.waitForSelector('.badge:has-text("over quota")');
  await page.getByRole('tab', { name: 'Borrowing' }).click();
  await page.waitForSelector('text=project-a holds 4 GPUs over its quota.');
});

test('step 3: a workspace of project-b takes its quota back', async () => {
  run(
    'runai',
    'submit',
    SPACE,
    '--project',
    'project-b',
    '--image',
    'jupyter/tensorflow-notebook',
    '--gpu',
    '4',
    '--interactive',
    '--port',
    '8888:8888',
  );
  await rail('Workloads');
  await waitRow(SPACE, 'Running');
  await waitRow(JOB, '4/8');
  await waitUsage('4/4', '4/4');
  await shot(page, 'walkthrough2-shared');
});

test('step 4: the events and the handover in Analytics', async () => {
  await rail('Events');
  await page.getByLabel('Search Events').fill(`Shrunk ${JOB}`);
  await page.locator('.grid-body .grid-row', { hasText: 'Shrunk' }).first().waitFor();
  await rail('Analytics');
  for (const title of ['GPU Utilization', 'Project Resource Usage', 'Quota vs. Usage'])
    await page.waitForSelector(`h2:has-text("${title}")`);
  await waitLegend('#gpu-utilization', 'Held', '8');
  await waitLegend('#project-usage', 'project-a', '4');
  await waitLegend('#project-usage', 'project-b', '4');
  await page.locator('#project-usage summary', { hasText: 'in this time' }).waitFor();
  await page.locator('#preemptions-by-rule tr', { hasText: /^(?:Reclaim|Shrink).*4$/ }).waitFor();
  await page.locator('#waits', { hasText: 'Half wait at most' }).waitFor();
  await shot(page, 'walkthrough2-analytics');
  assert.deepEqual(await seriousFindings(page), []);
});

test('step 5: the workspace is deleted, and the training has its 8 GPUs again', async () => {
  await rail('Workloads');
  await page.getByLabel(`Choose ${SPACE}`).check();
  await page.getByRole('button', { name: 'Delete 1' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await waitRow(JOB, '8/8');
  await waitUsage('8/4', '0/4');
  await rail('Analytics');
  await waitLegend('#project-usage', 'project-a', '8');
  await waitLegend('#project-usage', 'project-b', '0');
  await shot(page, 'walkthrough2-returned');
});

test('a workload of the form is refused at the field, submitted, read, suspended and resumed', async () => {
  await rail('Workloads');
  await page.getByLabel(`Choose ${JOB}`).check();
  await page.getByRole('button', { name: 'Delete 1' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await row(JOB).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'New workload' }).first().click();
  await page.getByLabel('Workload name').fill('from-the-page');
  await page.getByLabel('Project', { exact: true }).selectOption('project-b');
  await page.getByLabel('Image').fill('python:3.11');
  await page.getByLabel('Command').fill('echo begun; sleep 1000');
  await page.getByLabel('Memory each').fill('1Gi');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  const manifest = page.getByRole('textbox', { name: 'Manifest' });
  const good = await manifest.inputValue();
  await manifest.fill(good.replace('replicas: 1', 'replicas: -1'));
  await page.getByRole('button', { name: 'Check and show the plan' }).click();
  await page.locator('dialog .notice.bad', { hasText: 'spec.roles.worker.replicas' }).waitFor();
  await manifest.fill(good);
  // As it was checked before: nothing is left to check.
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForSelector('h1:has-text("from-the-page")');
  await page.waitForSelector('.head .badge:has-text("Running")');
  await page.getByRole('tab', { name: 'Logs' }).click();
  await page.locator('.log-line', { hasText: 'begun' }).waitFor();
  await page.getByRole('button', { name: 'Suspend' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Suspend' }).click();
  await page.waitForSelector('.head .badge:has-text("Suspended")');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.waitForSelector('.head .badge:has-text("Running")');
  // What ran before the suspension is there, too, and comes first.
  await page.locator('.log-line.break', { hasText: 'attempt 1' }).waitFor();
  await page.locator('.log-line.break', { hasText: 'attempt 2' }).waitFor();
  const printed = () => texts(page, '.log-line');
  await page.waitForFunction(
    () => [...document.querySelectorAll('.log-line')].filter((line) => line.textContent === 'begun').length === 2,
  );
  assert.match((await printed())[0] ?? '', /attempt 1/);
  await shot(page, 'logs-of-two-attempts');
  await page.getByLabel('Attempt', { exact: true }).selectOption('1');
  await page.waitForFunction(
    () => [...document.querySelectorAll('.log-line')].filter((line) => line.textContent === 'begun').length === 1,
  );
  await page.getByRole('tab', { name: 'YAML' }).click();
  await page.locator('pre.text', { hasText: 'swell.dev/workload: train' }).waitFor();
  await shot(page, 'from-the-page');
});
