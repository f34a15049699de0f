import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { CODE, TOKEN } from '../fake/server.ts';
import { go, noTroubles, seriousFindings, stage, texts } from './fixture.ts';

const one = stage();
const names = (page: Page) => texts(page, '.grid-body .grid-row .name-link');
const wrongAt = (page: Page, label: string) =>
  page
    .locator('.field', { has: page.getByLabel(label, { exact: true }) })
    .locator('.wrong')
    .innerText();

test('a login that does not reach the server is tried again, and so is a session', async () => {
  const page = await one.page({ login: false });
  const cut = { login: 1, session: 2 };
  await page.route(/\/ui\/api\/(login|session)$/, (route) => {
    const what = route.request().url().endsWith('login') ? 'login' : 'session';
    cut[what] -= 1;
    return cut[what] >= 0 ? route.abort('connectionreset') : route.continue();
  });
  await page.goto('about:blank');
  await page.goto(`${one.fake.url}/#code=${CODE}`);
  await page.waitForSelector('h1:has-text("Connecting")');
  await page.waitForSelector('h1:has-text("Overview")');
  assert.equal(cut.login, -1);
  await page.reload();
  await page.waitForSelector('[role=status]:has-text("The server cannot be reached")');
  await page.waitForSelector('h1:has-text("Overview")');
  assert.equal(cut.session, -1);
  await page.context().close();
});

test('the frame is there before it is known who looks, and the session is asked for once', async () => {
  const page = await one.page();
  let asked = 0;
  let answer = (): void => undefined;
  const held = new Promise<void>((done) => (answer = done));
  await page.route('**/ui/api/session', async (route) => {
    asked += 1;
    await held;
    await route.continue();
  });
  await page.reload();
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
  assert.deepEqual(await texts(page, '#app'), ['Swell']);
  answer();
  await page.waitForSelector('h1:has-text("Overview")');
  assert.equal(await page.locator('.frame').count(), 1);
  assert.equal(asked, 1);
  await page.context().close();
});

test('a token logs in, a wrong one says why', async () => {
  const page = await one.page({ login: false });
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForSelector('.wrong:has-text("The token is not valid.")');
  await page.getByLabel('Token').fill(TOKEN);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForSelector('h1:has-text("Overview")');
  await page.context().close();
});

test('the code does not stay in the address, and the end of a session leads to the login', async () => {
  const page = await one.page();
  assert.equal(new URL(page.url()).hash, '');
  await page.context().clearCookies();
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.waitForSelector('text=Your session has ended');
  // Nothing that this user saw is left on the page for the next.
  assert.doesNotMatch(await page.evaluate(() => document.body.innerText), /vision|robotics|node-/);
  await page.context().close();
});

test('filters, order and search are in the address, and the CSV has what is shown', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'Add a filter' }).click();
  await page.locator('.menu button', { hasText: 'Status' }).click();
  await page.locator('.menu label', { hasText: 'Running' }).click();
  await page.keyboard.press('Escape');
  await page.waitForSelector('.chip:has-text("Status: Running")');
  await page.getByRole('columnheader', { name: 'Workload' }).getByRole('button').click();
  await page.getByLabel('Search Workloads').fill('bert');
  await page.waitForFunction(() => new URL(location.href).searchParams.get('q') === 'bert');
  const params = new URL(page.url()).searchParams;
  assert.deepEqual([params.get('status'), params.get('sort'), params.get('q')], ['Running', 'name', 'bert']);
  const expected = one.fake.world.jobs
    .filter((row) => row.status === 'Running' && row.name.startsWith('bert'))
    .map((row) => row.name);
  assert.deepEqual((await names(page)).sort(), expected.sort());
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByLabel('Download as CSV').click()]);
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
  assert.equal(lines.length, expected.length + 1);
  assert.match(lines[0] ?? '', /^Workload,Status,Reason,Project,/);
  await page.reload();
  await page.waitForSelector('.chip:has-text("Status: Running")');
  assert.deepEqual((await names(page)).sort(), expected.sort());
  await page.getByLabel('Remove the filter Status').click();
  await page.waitForFunction(() => !new URL(location.href).searchParams.has('status'));
  await page.context().close();
});

test('columns are chosen, and the choice is in the address', async () => {
  const page = await one.page();
  await go(page, '/projects', 'Projects');
  await page.getByLabel('Choose columns').click();
  await page.locator('.menu label', { hasText: 'Memory held / quota' }).click();
  await page.waitForSelector('[role=columnheader]:has-text("Memory held / quota")');
  assert.match(new URL(page.url()).searchParams.get('cols') ?? '', /memory/);
  await page.context().close();
});

test('a view is saved under a name, and opened again', async () => {
  const page = await one.page();
  await go(page, '/workloads?status=Failed&sort=-name', 'Workloads');
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByLabel('Name of the view').fill('What failed');
  await page.keyboard.press('Enter');
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('link', { name: 'What failed' }).click();
  await page.waitForSelector('.chip:has-text("Status: Failed")');
  assert.equal(new URL(page.url()).search, '?status=Failed&sort=-name');
  await page.context().close();
});

test('the project form refuses at the field, and makes a project', async () => {
  const page = await one.page();
  await go(page, '/projects', 'Projects');
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByRole('button', { name: 'Create project' }).click();
  assert.equal(await wrongAt(page, 'Project name'), 'Enter a name.');
  await page.waitForFunction(() => document.activeElement?.getAttribute('data-field') === 'metadata.name');
  await page.getByLabel('Namespace').fill('kube-system');
  await page.getByRole('button', { name: 'Create project' }).click();
  assert.match(await wrongAt(page, 'Namespace'), /Kubernetes’ own/);
  await page.getByLabel('Namespace').fill('');
  await page.getByLabel('Project name').fill('vision');
  await page.getByLabel('GPU quota').fill('400');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.waitForSelector('.wrong:has-text("already exists")');
  await page.getByLabel('Project name').fill('project-a');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.waitForSelector('.wrong:has-text("has 64 GPUs")');
  assert.match(await wrongAt(page, 'GPU quota'), /Invalid value: 400/);
  await page.getByLabel('GPU quota').fill('4');
  await page.getByLabel('Autoscaling of elastic jobs').selectOption('Goodput');
  await page.getByLabel('Description').fill('no autoscaling here');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.waitForSelector('.wrong:has-text("Unsupported value")');
  assert.equal(await wrongAt(page, 'Autoscaling of elastic jobs'), 'Unsupported value: "Goodput"');
  await page.getByLabel('Description').fill('');
  const made = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/projects'));
  await page.getByRole('button', { name: 'Create project' }).click();
  assert.deepEqual((await made).postDataJSON().spec.autoscaling, { default: 'Goodput' });
  await page.waitForSelector('dialog', { state: 'detached' });
  await page.waitForSelector('.name-link:has-text("project-a")');
  await page.context().close();
});

test('what is typed after a refusal goes to its field, however slow the frames are', async () => {
  const page = await one.page();
  await page.addInitScript(() => {
    let frames = 0;
    window.requestAnimationFrame = (run) => window.setTimeout(() => run(performance.now()), (frames += 1) % 40);
  });
  await go(page, '/projects', 'Projects');
  await page.getByRole('button', { name: 'New project' }).click();
  for (let round = 0; round < 40; round += 1) {
    await page.getByLabel('Namespace').fill('kube-system');
    await page.getByRole('button', { name: 'Create project' }).click();
    await page.waitForSelector('.wrong:has-text("Kubernetes’ own")');
    await page.getByLabel('Description').fill(`round ${round}`);
    assert.equal(await page.getByLabel('Description').inputValue(), `round ${round}`);
    assert.equal(await page.getByLabel('Namespace').inputValue(), 'kube-system');
    await page.getByLabel('Namespace').fill('');
  }
  await page.context().close();
});

test('a node pool is made, changed and deleted', async () => {
  const page = await one.page();
  await go(page, '/nodepools', 'Node Pools');
  await page.getByRole('button', { name: 'New node pool' }).click();
  await page.getByLabel('Node pool name').fill('a100');
  await page.getByRole('button', { name: 'Nodes with a label' }).click();
  await page.getByLabel('Label key').fill('bad key!');
  await page.getByRole('button', { name: 'Create node pool' }).click();
  assert.match(await wrongAt(page, 'Label key'), /^A label key is a name/);
  await page.getByLabel('Label key').fill('gpu-type');
  await page.getByLabel('Label value').fill('a100');
  await page.getByRole('button', { name: 'Create node pool' }).click();
  await page.locator('.name-link', { hasText: 'a100' }).click();
  await page.waitForSelector('h1:has-text("a100")');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('GPU placement strategy').selectOption('Spread');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForSelector('.facts:has-text("GPUs Spread")');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.waitForSelector('h1:has-text("Node Pools")');
  assert.equal(
    one.fake.world.pools.some((pool) => pool.name === 'a100'),
    false,
  );
  await page.context().close();
});

test('a user is made, told by field what is wrong, given credentials and deleted', async () => {
  const page = await one.page();
  await go(page, '/users', 'Users');
  await page.getByRole('button', { name: 'New user' }).click();
  await page.getByRole('button', { name: 'Create user' }).click();
  assert.match(await wrongAt(page, 'Name'), /Enter a name/);
  assert.equal(await page.locator('#projects-wrong').innerText(), 'Choose at least one project.');
  await page.getByLabel('Name', { exact: true }).fill('eve lyn');
  await page.getByLabel('vision', { exact: true }).check();
  await page.getByRole('button', { name: 'Create user' }).click();
  await page.waitForSelector('.wrong:has-text("expected letters and digits")');
  await page.getByLabel('Name', { exact: true }).fill('eve');
  await page.getByRole('button', { name: 'Create user' }).click();
  await page.waitForSelector('h2:has-text("Credentials of eve")');
  assert.match(await page.locator('dialog pre').innerText(), /name: eve/);
  assert.deepEqual(await seriousFindings(page), []);
  await page.locator('dialog footer').getByRole('button', { name: 'Close' }).click();
  await page.waitForSelector('.grid-row:has-text("eve")');
  await page.getByLabel('New credentials for eve').click();
  await page.getByRole('button', { name: 'Make a kubeconfig' }).click();
  await page.waitForSelector('h2:has-text("Credentials of eve")');
  await page.locator('dialog footer').getByRole('button', { name: 'Close' }).click();
  await page.getByLabel('Delete eve').click();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.waitForSelector('.grid-row:has-text("eve")', { state: 'detached' });
  await page.context().close();
});

test('a manifest is copied, and where the browser forbids that, the page says so', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.kind === 'TrainingJob') ?? one.fake.world.jobs[0];
  assert.ok(row);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=yaml`, row.name);
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.waitForSelector('.toast:has-text("The manifest was copied.")');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), new RegExp(`name: ${row.name}`));
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.waitForSelector('.toast:has-text("Select the text instead.")');
  await page.context().close();
});

test('a project lists its own members and those that were made with users', async () => {
  const page = await one.page();
  await go(page, '/project?name=vision&tab=members', 'vision');
  assert.deepEqual(await texts(page, '.list-table tbody tr'), [
    'ada User researcher the project',
    'leads Group project-admin the project',
    'eve User viewer the user',
  ]);
  await page.context().close();
});

test('a failed workload has the status of swell list, and says what to do next', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Failed');
  assert.ok(row);
  await go(page, `/workloads?status=Failed&q=${row.name}`, 'Workloads');
  assert.deepEqual(await texts(page, '.grid-body .badge'), ['Failed: exit 1']);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=why`, row.name);
  await page.waitForSelector('section[aria-label="What to do next"]:has-text("swell logs")');
  assert.equal(await page.locator('text=would start').count(), 0);
  await page.context().close();
});

test('a workload whose image is missing says what to do, not that nothing would start it', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Pending');
  assert.ok(row);
  row.statusText = 'ImagePullBackOff';
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=why`, row.name);
  await page.waitForSelector('section[aria-label="What to do next"]:has-text("swell describe")');
  assert.equal(await page.locator('section[aria-label="What would start it"]').count(), 0);
  row.statusText = undefined;
  await page.context().close();
});

test('a timeline of few seconds has no clock twice', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Failed');
  assert.ok(row);
  const { created, completed } = row;
  row.completed = new Date(Date.parse(row.created ?? '') + 2500).toISOString();
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}`, row.name);
  await page.waitForSelector('.lane.axis span');
  const clocks = await texts(page, '.lane.axis span');
  assert.ok(clocks.length > 1);
  assert.equal(new Set(clocks).size, clocks.length, clocks.join());
  Object.assign(row, { created, completed });
  await page.context().close();
});

test('the audit log of one user opens from the list of users', async () => {
  const page = await one.page();
  await go(page, '/users', 'Users');
  await page.getByRole('link', { name: 'ada' }).click();
  await page.waitForSelector('.grid-row:has-text("bert-1")');
  assert.equal(await page.locator('.grid-body .grid-row').count(), 1);
  await page.context().close();
});

test('a workload is submitted after its plan was shown', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'New workload' }).click();
  await page.getByLabel('Workload name').fill('from-the-page');
  await page.getByLabel('Project', { exact: true }).selectOption('vision');
  await page.getByLabel('Image').fill('Team/My Trainer:');
  await page.getByLabel('Memory each').fill('4');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  assert.match(await wrongAt(page, 'Image'), /^The tag after ":" is missing/);
  assert.equal(await wrongAt(page, 'Memory each'), '4 bytes: did you mean 4Gi?');
  await page.getByLabel('Memory each').fill('4Gi');
  await page.getByLabel('Image').fill('refuse');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.waitForSelector('.wrong:has-text("no image is called so")');
  await page.getByLabel('Image').fill('pytorch/pytorch:latest');
  await page.getByLabel('Priority class').selectOption('nosuch');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.waitForSelector('.wrong:has-text("no PriorityClass")');
  assert.match(await wrongAt(page, 'Priority class'), /nosuch/);
  await page.getByLabel('Priority class').selectOption('train');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.waitForSelector('text=It would start at once.');
  await page.waitForSelector('text=vision/unet-4 (1)');
  assert.equal(await page.locator('.notice pre').textContent(), 'It needs 1 GPU.\n  NODE    FREE\n  node-7  1 of 8');
  const yaml = page.getByRole('textbox', { name: 'Manifest' });
  assert.match(await yaml.inputValue(), /kind: TrainingJob/);
  await yaml.fill((await yaml.inputValue()).replace('replicas: 1', 'replicas: 2'));
  await page.getByRole('button', { name: 'Check and show the plan' }).click();
  await page.waitForSelector('text=It would start at once.');
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForSelector('h1:has-text("from-the-page")');
  assert.equal(one.fake.world.jobs[0]?.gpus.requested, 2);
  await page.context().close();
});

test('many workloads are suspended and deleted at once', async () => {
  const page = await one.page();
  await go(page, '/workloads?status=Running&q=resnet', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  const chosen = await names(page);
  await page.getByLabel('Choose all rows').click();
  await page.getByRole('button', { name: `Suspend ${chosen.length}` }).click();
  await page.getByRole('button', { name: 'Suspend', exact: true }).click();
  await page.waitForSelector('.toast:has-text("being suspended")');
  for (const name of chosen) assert.equal(one.fake.world.jobs.find((row) => row.name === name)?.status, 'Suspended');
  await go(page, `/workloads?q=${chosen[0]}`, 'Workloads');
  await page.getByLabel('Choose all rows').click();
  await page.getByRole('button', { name: 'Delete 1' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForSelector('.toast:has-text("deleted")');
  assert.equal(
    one.fake.world.jobs.some((row) => row.name === chosen[0]),
    false,
  );
  await page.context().close();
});

test('what a filter hides is not changed with what was chosen', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  const [first] = await names(page);
  await page.getByLabel('Choose all rows').click();
  const all = one.fake.world.jobs.length;
  await page.waitForSelector(`.bulk:has-text("${all} workloads chosen")`);
  await page.getByLabel('Search Workloads').fill(first ?? '');
  const found = one.fake.world.jobs.filter((row) => row.name.includes(first ?? '')).length;
  assert.ok(found < all);
  await page.waitForSelector(`.bulk:has-text("${found} workload")`);
  await page.getByRole('button', { name: `Delete ${found}`, exact: true }).waitFor();
  await page.getByLabel('Search Workloads').fill('');
  await page.waitForSelector(`.bulk:has-text("${all} workloads chosen")`);
  await page.context().close();
});

test('an action that the user may not do is not offered', async () => {
  one.fake.denied = new Set([
    'create projects',
    'update projects',
    'delete trainingjobs',
    'patch trainingjobs',
    'create trainingjobs',
  ]);
  const page = await one.page();
  await go(page, '/projects', 'Projects');
  await page.waitForSelector('.grid-body .grid-row');
  assert.equal(await page.getByRole('button', { name: 'New project' }).count(), 0);
  await go(page, '/workloads', 'Workloads');
  await page.getByLabel('Choose all rows').click();
  await page.waitForSelector('text=You may read these workloads, not change them.');
  assert.equal(await page.getByRole('button', { name: /Delete|New workload/ }).count(), 0);
  one.fake.denied.clear();
  await page.context().close();
});

test('members that the user may not see are not counted as none', async () => {
  const { world } = one.fake;
  const page = await one.page();
  const counts = async () => {
    await go(page, '/projects?cols=members', 'Projects');
    await page.waitForSelector('.grid-body .grid-row');
    return texts(page, '.grid-body .grid-row .num');
  };
  const known = (await counts()).map(Number);
  assert.ok(known.includes(0));
  world.membersPartial = true;
  assert.deepEqual(
    await counts(),
    known.map((count) => (count > 0 ? `≥ ${count}` : '–')),
  );
  world.membersPartial = undefined;
  await page.context().close();
});

test('back leads to the rows that one left', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  const top = () => page.locator('.grid-scroll').evaluate((box) => box.scrollTop);
  await page.locator('.grid-scroll').evaluate((box) => box.scrollTo(0, 800));
  await page.waitForFunction(() => (history.state as { top?: number } | null)?.top === 800);
  await page.locator('.grid-body [data-row="24"]').click();
  await page.waitForSelector('.crumbs');
  await page.goBack();
  await page.waitForSelector('.grid-body [data-row="24"]');
  assert.equal(await top(), 800);
  await page.getByRole('columnheader', { name: 'Workload' }).getByRole('button').click();
  await page.waitForFunction(() => document.querySelector('.grid-scroll')?.scrollTop === 0);
  await page.context().close();
});

test('the keyboard reaches search, pages, rows and dialogs', async () => {
  const page = await one.page();
  await page.keyboard.press('g');
  await page.keyboard.press('n');
  await page.waitForSelector('h1:has-text("Nodes")');
  await page.keyboard.press('/');
  await page.keyboard.type('robotics');
  await page.waitForSelector('.results a:has-text("robotics")');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("robotics")');
  await go(page, '/workloads', 'Workloads');
  await page.locator('.name-link').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => document.activeElement?.getAttribute('data-row') === '1');
  await page.keyboard.press('End');
  await page.waitForFunction(
    (last) => document.activeElement?.getAttribute('data-row') === String(last),
    one.fake.world.jobs.length - 1,
  );
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=tablist]');
  await page.locator('[role=tab][aria-selected=true]').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('[role=tab][aria-selected=true]:has-text("Throughput")');
  await go(page, '/projects', 'Projects');
  await page.getByRole('button', { name: 'New project' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  await page.waitForFunction(() => document.activeElement?.textContent === 'New project');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog:has-text("search")');
  await page.context().close();
});

test('a change is on the page within half a second, and within a poll where there is no live connection', async () => {
  const page = await one.page();
  await go(page, '/workloads?q=whisper', 'Workloads');
  await page.waitForSelector('.live.is-live');
  const row = one.fake.world.jobs.find((job) => job.name.startsWith('whisper') && job.status === 'Running');
  assert.ok(row);
  // The page itself takes the time, so that the way through the debugger does not count.
  const seen = page.evaluate(
    () =>
      new Promise<number>((done) => {
        new MutationObserver(() => {
          if (document.body.innerText.includes('Preempted')) done(Date.now());
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
      }),
  );
  await page.evaluate(() => 0);
  const begin = Date.now();
  row.status = 'Preempted';
  one.fake.changed();
  assert.ok((await seen) - begin < 500, 'later than 500 ms');
  await page.context().close();
  one.fake.sockets = false;
  const polling = await one.page();
  await go(polling, '/workloads?q=whisper', 'Workloads');
  await polling.waitForSelector('.live.is-polling');
  await polling.waitForSelector('.badge:has-text("Preempted")');
  row.status = 'Running';
  one.fake.changed();
  await polling.waitForSelector('.badge:has-text("Preempted")', { state: 'detached' });
  await polling.route('**/ui/api/views/**', (route) => route.abort('connectionreset'));
  await polling.waitForSelector('.live.is-away:has-text("No connection")');
  await polling.waitForSelector('text=Workloads could not be read: The server cannot be reached.');
  await polling.unroute('**/ui/api/views/**');
  await polling.waitForSelector('.live.is-polling');
  await polling.waitForSelector('text=Workloads could not be read', { state: 'detached' });
  one.fake.sockets = true;
  await polling.context().close();
});

test('what-if shows the decisions that would follow', async () => {
  const page = await one.page();
  await go(page, '/whatif', 'What-if');
  await page.getByRole('button', { name: 'Show what would happen' }).click();
  await page.waitForSelector('text=Add a change first');
  await page.getByRole('button', { name: 'Change a quota' }).click();
  await page.getByRole('button', { name: 'Show what would happen' }).click();
  await page.waitForSelector('.wrong:has-text("Choose a project.")');
  await page.getByLabel('Project', { exact: true }).selectOption('robotics');
  await page.getByLabel('GPU quota').fill('12');
  await page.getByRole('button', { name: 'Show what would happen' }).click();
  await page.waitForSelector('text=Stop vision/resnet-3 (2 GPUs)');
  await page.context().close();
});

test('a workload tells its progress, and one that hangs who is suspected', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  const row = one.fake.world.jobs.find((job) => job.status === 'Hung');
  assert.ok(row);
  await go(page, `/workloads?q=${row.name}`, 'Workloads');
  await page.waitForSelector('.grid-row [role=progressbar][aria-valuenow="40"]');
  await page.waitForSelector('.grid-row .badge.bad:has-text("Hung")');
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}`, row.name);
  await page.waitForSelector('.progress-line:has-text("40 %"):has-text("step 400 of 1,000 · epoch 3 of 5 · training")');
  assert.equal(await page.locator('.progress-line', { hasText: 'left' }).count(), 0, 'what hangs has no end');
  await page.waitForSelector('[role=region][aria-label=Suspects] tr:has-text("worker-3")');
  await page.waitForSelector('pre:has-text("line 88 in next_batch")');
  assert.equal(await page.locator('pre', { hasText: 'all_reduce' }).first().isVisible(), false);
  await page.context().close();
  noTroubles(one);
});

test('a node tells what is wrong with it and with each of its GPUs', async () => {
  const page = await one.page();
  await page.waitForSelector('.node-map .gpu.bad');
  assert.equal(await page.locator('.node-map .gpu.bad').count(), 1);
  await go(page, '/nodes?health=Faulty,Suspect,Unhealthy', 'Nodes');
  await page.waitForSelector('.grid-foot:has-text("3 of 8 nodes")');
  await page.locator('.name-link', { hasText: 'node-2' }).click();
  await page.waitForSelector('.notice:has-text("has faults, and gets new pods")');
  const gpu = page.locator('[aria-label=GPUs] tr', { hasText: 'fallen off the bus' });
  assert.match(await gpu.innerText(), /^3\s/);
  await gpu.locator('.badge.bad:has-text("Unhealthy")').waitFor();
  await page.locator('tr', { hasText: 'GpuHealthy' }).locator('.badge.bad').waitFor();
  await go(page, '/node?name=node-3', 'node-3');
  await page.waitForSelector('[aria-label=Failures] tr:has-text("uncorrectable ECC"):has-text("Hardware")');
  await page.waitForSelector('[aria-label=Failures] tr:has-text("not yours to see")');
  await page.context().close();
  noTroubles(one);
});

test('what others hold is not called free, and what is not known is not called none', async () => {
  const { nodes, projects } = one.fake.world;
  const gpu = nodes[6]?.gpuDevices[0];
  const project = projects.find((row) => row.name === 'speech');
  assert.ok(gpu && project);
  const before = { gpu: { ...gpu }, running: project.running, pending: project.pending };
  Object.assign(gpu, { job: null, pod: null, project: null, share: 1, idleSince: null });
  Object.assign(project, { running: null, pending: null });
  const page = await one.page();
  await go(page, '/node?name=node-6', 'node-6');
  const row = page.locator('[aria-label=GPUs] tbody tr').first();
  assert.match(await row.innerText(), /held by work that you may not see/);
  await page.waitForSelector('.gpu.held.others');
  await go(page, '/project?name=speech', 'speech');
  await page.waitForSelector('.facts div:has-text("– running, – pending")');
  Object.assign(gpu, before.gpu, { share: undefined });
  Object.assign(project, { running: before.running, pending: before.pending });
  await page.context().close();
  noTroubles(one);
});

test('a node is drained', async () => {
  const page = await one.page();
  const node = one.fake.world.nodes.find((row) => row.name === 'node-4');
  assert.ok(node && node.pods.length > 1);
  if (node.pods[0]) node.pods[0].job = null; // a DaemonSet's
  await go(page, '/node?name=node-4', 'node-4');
  await page.getByRole('button', { name: 'Drain' }).click();
  const job = node.pods[1]?.job;
  await page.waitForSelector(`dialog:has-text("On it run pods of"):has-text("${job}")`);
  await page.locator('dialog').getByRole('button', { name: 'Drain' }).click();
  await page.waitForSelector('.toast:has-text("leave it")');
  await page.waitForSelector('h1 + .badge.wait > :text-is("Ready, cordoned")');
  assert.equal(node.pods.length, 1);
  await page.getByRole('button', { name: 'Uncordon' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Uncordon' }).click();
  await page.waitForSelector('h1 + .badge:has-text("cordoned")', { state: 'detached' });
  await page.context().close();
});

test('a workload that grows while that pays shows its curve', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running === 2);
  assert.ok(row);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=throughput`, row.name);
  await page.getByText('One GPU more is worth +31 % here; flat with 1: +4 %.').waitFor();
  await page.getByText('GPU type: Stays on T4: A100 would make 20 % more').waitFor();
  await page.waitForSelector('.facts div:has-text("Lost work"):has-text("240 GPU-seconds of 2 GPU-hours")');
  await page.waitForSelector(
    'section:has-text("Checkpoints and lost work") p:has-text("It has held 2 GPU-hours in all.")',
  );
  const curve = page.getByRole('img', { name: 'Throughput by number of workers' });
  assert.match((await curve.getAttribute('aria-label')) ?? '', /1: 39 \/s, 2: 77 \/s, 4: 132 \/s expected/);
  await page.context().close();
  noTroubles(one);
});

test('a slow rank is named on its workload, and marked among the workers', async () => {
  const page = await one.page();
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.members.running === 2);
  assert.ok(row);
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=workers`, row.name);
  await page.waitForSelector(`.notice:has-text("A rank is slow."):has-text("pod ${row.name}-worker-1")`);
  const slow = page.locator('.grid-row', { has: page.locator('.badge:has-text("slow")') });
  assert.equal(await slow.count(), 1);
  assert.match(await slow.innerText(), /worker-1/);
  // The pages have no terminal; they have its command.
  await slow.getByRole('button', { name: `swell exec -it -n ${row.namespace} ${row.name}-worker-1 -- sh` }).click();
  await page.waitForSelector('.toast:has-text("swell exec -it")');
  await page.context().close();
  noTroubles(one);
});

test('a TensorBoard is started, opened, or told to be missing', async () => {
  const page = await one.page();
  const running = one.fake.world.jobs.filter((job) => job.status === 'Running');
  const plain = running.find((job) => !/^(?:eval|sweep)/.test(job.name));
  assert.ok(plain);
  const start = async (row: typeof plain) => {
    await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}`, row.name);
    await page.getByRole('button', { name: 'TensorBoard' }).click();
  };
  await start(plain);
  await page.waitForSelector('dialog:has-text("TensorBoard is starting")');
  // The window has no way back to the pages.
  const opened = page.context().waitForEvent('page');
  await page.locator('dialog').getByRole('button', { name: 'Open TensorBoard' }).click();
  const board = await opened;
  await board.waitForURL(/^http:\/\/localhost:\d+\/program$/);
  assert.equal(await board.evaluate(() => window.opener), null);
  await board.close();
  assert.deepEqual(await seriousFindings(page), []);
  await page.locator('dialog footer').getByRole('button', { name: 'Close' }).click();
  await page.locator('.head').getByRole('button', { name: 'TensorBoard' }).waitFor();
  // Without the right the page says so, and no window stays.
  one.fake.denied = new Set(['create pods/portforward']);
  await page.locator('.head').getByRole('button', { name: 'TensorBoard' }).click();
  await page.waitForSelector('.toast.bad:has-text("you may not create pods/portforward")');
  assert.equal(page.context().pages().length, 1);
  one.fake.denied.clear();
  for (const [word, text] of [
    ['sweep', 'has no TensorBoard'],
    ['eval', 'writes no curves'],
  ] as const) {
    const row = running.find((job) => job.name.startsWith(word));
    if (!row) continue;
    await start(row);
    await page.waitForSelector(`dialog .notice.bad:has-text("${text}")`);
  }
  // Without a port for what pods serve it answers at a node port, and the dialog says why.
  one.fake.boards.clear();
  one.fake.opens = false;
  await start(plain);
  const link = page.locator('dialog').getByRole('link', { name: 'Open TensorBoard' });
  assert.equal(await link.getAttribute('href'), 'http://127.0.0.1:30606');
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
  await page.waitForSelector('dialog:has-text("--ui-programs-address")');
  one.fake.opens = true;
  one.fake.denied = new Set(['create deployments']);
  one.fake.boards.clear();
  const other = await one.page();
  await go(other, `/job?namespace=${plain.namespace}&name=${plain.name}&kind=${plain.kind}`, plain.name);
  await other.getByRole('button', { name: 'Suspend' }).waitFor();
  assert.equal(await other.getByText('TensorBoard').count(), 0);
  one.fake.denied.clear();
  await other.context().close();
  await page.context().close();
  noTroubles(one);
});

test('a workload is submitted with its curves', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'New workload' }).click();
  await page.getByLabel('Workload name').fill('with-curves');
  await page.getByLabel('Project', { exact: true }).selectOption('vision');
  await page.getByLabel('Image').fill('pytorch/pytorch:latest');
  await page.getByLabel(/TensorBoard: keep the curves/).check();
  await page.getByRole('button', { name: 'Show the plan' }).click();
  assert.match(
    await page.getByRole('textbox', { name: 'Manifest' }).inputValue(),
    /SWELL_LOG_DIR\n\s+value: \/training_logs\/with-curves/,
  );
  one.fake.requests.length = 0;
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForSelector('h1:has-text("with-curves")');
  const sent = one.fake.requests.filter(
    (request) => /^(?:POST|PATCH)/.test(request) && !request.includes('accessreviews'),
  );
  assert.deepEqual(
    sent.slice(0, 4).map((request) => request.replace('/ui/api/', '').replace(/\?.*/, '')),
    [
      'POST k8s/api/v1/namespaces/vision/persistentvolumeclaims',
      'POST k8s/apis/swell.dev/v1/namespaces/vision/trainingjobs',
      'PATCH k8s/api/v1/namespaces/vision/persistentvolumeclaims/with-curves-tensorboard',
      'POST tensorboard',
    ],
  );
  await page.context().close();
});

test('analytics tells waits and preemptions by rule', async () => {
  const page = await one.page();
  await go(page, '/analytics', 'Analytics');
  await page.waitForSelector('#waits tr:has-text("robotics"):has-text("min")');
  await page.waitForSelector('#preemptions-by-rule tr:has-text("Reclaim")');
  await page.context().close();
});

test('what work without a project holds is in the charts by project and in the consumption', async () => {
  const pod = one.fake.world.nodes.flatMap((node) => node.pods).find((found) => found.gpus);
  assert.ok(pod?.project);
  const { project } = pod;
  const page = await one.page();
  pod.project = null;
  try {
    await go(page, '/', 'Overview');
    await page.waitForSelector('.chart .legend button:has-text("no project") .val:not(:text-is("0"))');
    await go(page, '/analytics', 'Analytics');
    await page.waitForSelector('[aria-label=Consumption] tr:has-text("no project")');
    await page.waitForSelector('[aria-label=Consumption] tr:has-text("All")');
    await go(page, '/analytics?project=vision', 'Analytics');
    await page.waitForSelector('[aria-label=Consumption] tr:has-text("vision")');
    assert.equal(await page.locator('[aria-label=Consumption] tr:has-text("no project")').count(), 0);
  } finally {
    pod.project = project;
    await page.context().close();
  }
});

test('the theme is kept', async () => {
  const page = await one.page();
  await page.getByLabel('Use dark colours').click();
  await page.reload();
  await page.waitForSelector('html[data-theme=dark]');
  await page.context().close();
});
