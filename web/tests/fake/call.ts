// What the parts of the fake server share: its state, a request, its answer, and tables of routes.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { KubeObject } from '../../src/lib/types.ts';
import type { World } from './world.ts';

export interface Fake {
  server: Server;
  url: string;
  world: World;
  requests: string[];
  changed: () => void; // sends all views anew
  lost: Set<string>; // uids of pods whose logs nobody keeps
  lines: number; // of each log that has begun
  draws: boolean; // logs that grow have a progress bar
  boards: Map<string, unknown>; // TensorBoards, by job
  opens: boolean; // whether there is a port for what pods serve
  denied: Set<string>; // "delete trainingjobs", "delete trainingjobs in vision": what the user may not do
  sockets: boolean; // whether WebSockets are accepted
  close: () => Promise<void>;
}

export interface Call {
  fake: Fake;
  method: string;
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  body: string;
}

// A path, the methods where not all are meant, and what answers with the parts of the path.
export interface Route {
  path: RegExp;
  methods?: string[];
  handle: (call: Call, ...parts: string[]) => void;
}

// Whether one of the routes answered; the first that fits does.
export function routed(routes: Route[], call: Call, path: string): boolean {
  for (const { path: pattern, methods, handle } of routes) {
    const parts = pattern.exec(path);
    if (!parts || (methods && !methods.includes(call.method))) continue;
    handle(call, ...parts.slice(1));
    return true;
  }
  return false;
}

export const parsed = (call: Call) => JSON.parse(call.body) as KubeObject;

export function answer(
  { response }: Pick<Call, 'response'>,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function refuse(
  call: Call,
  code: number,
  reason: string,
  message: string,
  causes: { field: string; message: string }[] = [],
): void {
  answer(call, code, {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message,
    details: { causes },
  });
}
