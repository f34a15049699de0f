// A server of the pages over a made-up cluster: the fixture of the browser tests, and what one
// develops against without a cluster.
import { createReadStream, existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { answer, refuse, routed, type Call, type Fake, type Route } from './call.ts';
import { QUESTION_ROUTES } from './jobs.ts';
import { cronData, whyCron } from './crons.ts';
import { kube } from './kube.ts';
import { USER_ROUTES } from './projects.ts';
import { TextSocket } from './socket.ts';
import { history, jobData, makeWorld, overview, why, type World } from './world.ts';

export type { Fake } from './call.ts';

export const TOKEN = 'let-me-in';
export const CODE = 'one-time';
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const CSP = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

function viewOf(world: World, name: string, params: Record<string, unknown>): unknown {
  const text = (key: string) => String(params[key] ?? '');
  switch (name) {
    case 'overview':
      return overview(world);
    case 'projects':
      return { rows: world.projects, membersPartial: world.membersPartial };
    case 'nodepools':
      return { rows: world.pools };
    case 'nodes':
      return { rows: world.nodes };
    case 'workloads':
      return { rows: world.jobs };
    case 'events':
      return { rows: world.events };
    case 'users':
      return { rows: world.users };
    case 'crons':
      return { rows: world.crons };
    case 'cron':
      return cronData(world, text('namespace'), text('name'), text('kind'));
    case 'job':
      return jobData(world, text('namespace'), text('name'));
    case 'why':
      if (text('kind').startsWith('Cron')) return whyCron(world, text('namespace'), text('name'), text('kind'));
      return why(world.jobs.find((row) => row.namespace === text('namespace') && row.name === text('name')));
    default:
      return undefined;
  }
}

function staticFile(root: string, pathname: string, response: ServerResponse): void {
  const file = path.join(root, pathname.includes('.') ? pathname : 'index.html');
  if (!file.startsWith(root) || !existsSync(file)) return answer({ response }, 404, { message: 'no such file' });
  response.writeHead(200, {
    'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream',
    'content-security-policy': CSP,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  createReadStream(file).pipe(response);
}

interface View {
  view: string;
  params: Record<string, unknown>;
}

// The tabs that are open, and the views that each of them shows.
class Tabs {
  private readonly open = new Set<{ socket: TextSocket; views: Map<number, View> }>();
  revision = 1;

  constructor(private readonly world: () => World) {}

  private frame(id: number, { view, params }: View): string {
    const data = viewOf(this.world(), view, params);
    if (data === undefined)
      return JSON.stringify({ id, error: `${view} "${String(params.name)}" not found in namespace` });
    return JSON.stringify({ id, revision: String(this.revision), data });
  }

  accept(request: IncomingMessage, stream: Duplex): void {
    const tab = { socket: new TextSocket(request, stream), views: new Map<number, View>() };
    this.open.add(tab);
    tab.socket.onClose = () => this.open.delete(tab);
    tab.socket.onText = (text) => {
      const { op, id, view, params } = JSON.parse(text) as View & { op: string; id: number };
      if (op === 'unsubscribe') return void tab.views.delete(id);
      tab.views.set(id, { view, params });
      tab.socket.send(this.frame(id, { view, params }));
    };
  }
  changed(): void {
    this.revision += 1;
    for (const tab of this.open) for (const [id, one] of tab.views) tab.socket.send(this.frame(id, one));
  }
  close(): void {
    for (const tab of this.open) tab.socket.close();
  }
}

// The one session there is.
class Session {
  in = false;
  private readonly document = {
    user: 'admin',
    groups: ['system:masters'],
    csrf: 'csrf-word',
    version: '0.1.0',
    expires: new Date(Date.now() + 43200e3).toISOString(),
  };

  login(call: Call): void {
    const given = JSON.parse(call.body) as { code?: string; token?: string };
    if (given.code !== CODE && given.token !== TOKEN)
      return answer(call, 401, {
        message: given.code ? 'The code is used or too old.' : 'The token is not valid.',
      });
    this.in = true;
    answer(call, 200, this.document, { 'set-cookie': 'swell_session=abc; HttpOnly; SameSite=Strict; Path=/' });
  }
  // Whether the request may pass; if not, it is answered.
  passes(call: Call): boolean {
    const { headers } = call.request;
    if (!this.in || !/swell_session=abc/.test(headers.cookie ?? '')) {
      answer(call, 401, { message: 'Log in first.' });
      return false;
    }
    if (call.method === 'GET' || headers['x-swell-csrf'] === this.document.csrf) return true;
    refuse(call, 403, 'Forbidden', 'the CSRF header is missing');
    return false;
  }
  show(call: Call): void {
    answer(call, 200, this.document);
  }
  logout(call: Call): void {
    this.in = false;
    answer(call, 200, {});
  }
}

function readHistory(call: Call): void {
  const search = call.url.searchParams;
  const number = (name: string) => Number(search.get(name));
  const names = (search.get('series') ?? '').split(',');
  answer(call, 200, { series: history(call.fake.world, names, number('from'), number('to'), number('points')) });
}

function apiOf(session: Session, tabs: Tabs): (call: Call) => void {
  const routes: Route[] = [
    { path: /^\/ui\/api\/session$/, handle: (call) => session.show(call) },
    { path: /^\/ui\/api\/logout$/, handle: (call) => session.logout(call) },
    {
      path: /^\/ui\/api\/views\/(\w+)$/,
      handle: (call, view) =>
        answer(call, 200, {
          revision: String(tabs.revision),
          data: viewOf(call.fake.world, view, Object.fromEntries(call.url.searchParams)),
        }),
    },
    { path: /^\/ui\/api\/history$/, handle: readHistory },
    ...QUESTION_ROUTES,
    ...USER_ROUTES,
    { path: /^\/ui\/api\/k8s(\/.*)$/, handle: kube },
  ];
  return (call) => {
    if (call.url.pathname === '/ui/api/login') return session.login(call);
    if (session.passes(call) && !routed(routes, call, call.url.pathname))
      answer(call, 404, { message: 'there is nothing here' });
  };
}

export async function startFake(root: string, jobs = 60, port = 0): Promise<Fake> {
  const session = new Session();
  const tabs = new Tabs(() => fake.world);
  const api = apiOf(session, tabs);
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://fake');
    fake.requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (!url.pathname.startsWith('/ui/api/')) return staticFile(root, url.pathname, response);
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => api({ fake, method: request.method ?? 'GET', request, response, url, body }));
  });
  server.on('upgrade', (request, stream) => {
    if (!fake.sockets || !session.in) return void stream.destroy();
    tabs.accept(request, stream);
  });
  const fake: Fake = {
    server,
    url: '',
    world: makeWorld(jobs),
    requests: [],
    lost: new Set(),
    lines: 200,
    draws: false,
    boards: new Map(),
    opens: true,
    denied: new Set(),
    sockets: true,
    changed: () => tabs.changed(),
    close: () =>
      new Promise((done) => {
        tabs.close();
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}
