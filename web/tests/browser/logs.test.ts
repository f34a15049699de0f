// The logs of a workload: those of several workers, of attempts that are over, and long ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, stage, texts } from './fixture.ts';

const one = stage();

test('logs are merged, searched and of one worker', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running > 1);
  assert.ok(row);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  // The logs that grow, and those of earlier attempts: one of each worker, two of the first.
  const logs = 2 * row.members.running + 1;
  await page.waitForSelector(`text=${(200 * logs).toLocaleString('en-US')} lines of ${logs} logs`);
  await page.getByLabel('Search the logs').fill('loss is high');
  await page.waitForSelector(`[role=status]:has-text("${4 * logs} lines")`);
  await page.getByLabel('Only matching lines').check();
  assert.ok((await texts(page, '.log-line')).every((line) => line.includes('loss is high')));
  await page.getByLabel('Search the logs').fill('');
  await page.waitForSelector('.log-line .who:has-text("worker-1 #2")');
  await page.getByLabel('Worker', { exact: true }).selectOption(`${row.name}-worker-1`);
  await page.waitForSelector('.log-line:has-text("step 201")');
  await page.context().close();
  noTroubles(one);
});

test('a progress bar is one line that changes, before its line has ended', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running > 1);
  assert.ok(row);
  one.fake.draws = true;
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  await page.waitForSelector('.log-line:has(.who:has-text("worker-1 #2")):has-text("eval: 10%")');
  await page.getByLabel('Worker', { exact: true }).selectOption(`${row.name}-worker-1`);
  // Each number is there for 200 ms, which a busy page may leave out.
  await page.locator('.log-line', { hasText: /eval: ([5-9]\d|\d{3,})%/ }).waitFor();
  const bars = (await texts(page, '.log-line')).filter((line) => line.includes('eval'));
  assert.equal(bars.length, 1);
  assert.match(bars[0] ?? '', /^eval: \d+%$/);
  one.fake.draws = false;
  await page.context().close();
  noTroubles(one);
});

test('the times of a log are those of the clock of the page', async () => {
  const page = await one.page({ zone: 'Asia/Kolkata' });
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running > 1);
  assert.ok(row);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  await page.getByLabel('Times').check();
  const shown = await page
    .locator('.log-line time')
    .first()
    .evaluate((time) => {
      const at = new Date((time as HTMLTimeElement).dateTime);
      return [time.textContent?.slice(0, 8), at.toTimeString().slice(0, 8)];
    });
  assert.equal(shown[0], shown[1]);
  await page.context().close();
});

test('a log that is longer than what is read says so, and where all of it is', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running > 1);
  assert.ok(row);
  const command = `swell logs ${row.name} -n ${row.namespace}`;
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  await page.waitForSelector('text=/lines of \\d+ logs/');
  assert.equal(await page.getByText(command).count(), 0, 'all lines are there');
  one.fake.lines = 5000;
  await page.reload();
  await page.waitForSelector(`p:has-text("The last "):has-text("${command} --all prints all.")`);
  await page.getByLabel('Worker', { exact: true }).selectOption(`${row.name}-worker-1`);
  await page.waitForSelector(`p:has-text("swell logs ${row.name}-worker-1 -n ${row.namespace} prints all.")`);
  one.fake.lines = 200;
  await page.context().close();
  noTroubles(one);
});

test('logs of attempts that are over are shown, in order and by themselves', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running === 2);
  assert.ok(row);
  one.fake.requests.length = 0;
  one.fake.lost = new Set([`old-${row.name}-worker-1`]);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=logs`, row.name);
  await page.waitForSelector('text=worker-1, attempt 1, preempted: the log is not there any more.');
  await page.getByLabel('Worker', { exact: true }).selectOption(`${row.name}-worker-0`);
  await page.waitForSelector('text=/lines of 3 logs/');
  await page.getByLabel('Follow').uncheck();
  await page.locator('.log').evaluate((element) => {
    element.scrollTop = 0;
  });
  await page.waitForSelector('.log-line.break:has-text("==> worker-0, attempt 1, preempted <==")');
  await page.waitForSelector('.log-line:has-text("step 1 loss 1.0000"):has-text("before")');
  const asked = one.fake.requests.filter((request) => request.includes(`/log/old-${row.name}-worker-0`));
  assert.equal(asked.length, 2, 'each log that has ended is read once');
  assert.ok(
    asked.some((request) => /node=node-0&restart=1/.test(request)),
    asked.join(),
  );
  await page.getByLabel('Attempt', { exact: true }).selectOption('2');
  await page.waitForSelector('.log-line.break', { state: 'detached' });
  assert.ok((await texts(page, '.log-line')).every((line) => !line.includes('before')));
  await page.getByLabel('Attempt', { exact: true }).selectOption('1');
  await page.waitForSelector('.log-line:has-text("before again"), .log-line:has-text("before")');
  one.fake.lost.clear();
  await page.context().close();
});
