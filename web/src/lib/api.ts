// Requests to the server of these pages: the session, and the API server behind it.
import { signal } from '@preact/signals';
import { sentence } from './format.ts';

export interface Session {
  user: string;
  groups: string[];
  csrf: string;
  expires: string;
  version?: string; // of Swell
}
// undefined: not known yet; null: nobody is logged in.
export const session = signal<Session | null | undefined>(undefined);
export const loginHint = signal('');
// Why it is not known yet, while the server is asked again.
export const unreached = signal('');

export interface Cause {
  field: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly reason = '',
    readonly causes: Cause[] = [],
  ) {
    super(message);
  }
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function readError(answer: Response): Promise<ApiError> {
  const text = await answer.text();
  try {
    const body = JSON.parse(text) as { message?: string; reason?: string; details?: { causes?: Partial<Cause>[] } };
    const causes = (body.details?.causes ?? []).map((cause) => ({
      field: cause.field ?? '',
      message: cause.message ?? '',
    }));
    return new ApiError(answer.status, body.message || `The server answered ${answer.status}.`, body.reason, causes);
  } catch {
    return new ApiError(answer.status, text.trim().slice(0, 300) || `The server answered ${answer.status}.`);
  }
}

// Ends the session where the server no longer knows it.
function sessionEnded(): void {
  if (!session.value) return;
  loginHint.value = 'Your session has ended. Log in again to continue.';
  session.value = null;
}

export interface RequestOptions {
  body?: unknown;
  type?: string;
  signal?: AbortSignal;
}

export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = {};
  if (method !== 'GET') headers['X-Swell-CSRF'] = session.value?.csrf ?? '';
  let body: string | undefined;
  if (options.body !== undefined) {
    headers['Content-Type'] = options.type ?? 'application/json';
    body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
  }
  let answer: Response;
  try {
    answer = await fetch(path, { method, headers, body, signal: options.signal, credentials: 'same-origin' });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new ApiError(0, 'The server cannot be reached. Check that the cluster is running.');
  }
  if (answer.ok) return answer;
  const error = await readError(answer);
  if (answer.status === 401 && !path.endsWith('/login')) sessionEnded();
  throw error;
}

export async function json<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const answer = await send(method, path, options);
  const text = await answer.text();
  return (text ? JSON.parse(text) : {}) as T;
}

export function query(params: Record<string, string | number | boolean | undefined | null>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') search.set(key, String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : '';
}

// Requests to the API server, as the session's user.
export const kube = {
  path: (rest: string) => `/ui/api/k8s${rest}`,
  get: <T>(path: string, signal?: AbortSignal) => json<T>('GET', kube.path(path), { signal }),
  create: <T>(path: string, body: unknown, type?: string) => json<T>('POST', kube.path(path), { body, type }),
  replace: <T>(path: string, body: unknown, type?: string) => json<T>('PUT', kube.path(path), { body, type }),
  patch: <T>(path: string, body: unknown) =>
    json<T>('PATCH', kube.path(path), { body, type: 'application/merge-patch+json' }),
  remove: (path: string) => json<unknown>('DELETE', kube.path(path)),
};

// "/apis/swell.dev/v1/namespaces/a/trainingjobs/b"
export function objectPath(apiVersion: string, plural: string, namespace?: string | null, name?: string): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${place}/${plural}${name ? `/${encodeURIComponent(name)}` : ''}`;
}

const RETRY_FIRST_MS = 300;
const RETRY_MOST_MS = 5_000;

// The server, or what stands before it, did not answer.
export function isUnreached(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

// A view says so of what is not there, or not the user's to see.
export const isNotFound = (text: string | undefined): boolean => text !== undefined && /\bnot found\b/.test(text);

// A cluster that starts, or a machine whose network changes, answers soon. Nobody has to log in again for that.
async function untilAnswered(ask: () => Promise<Session>): Promise<Session> {
  for (let pause = RETRY_FIRST_MS; ; pause = Math.min(2 * pause, RETRY_MOST_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnreached(error)) throw error;
      unreached.value = sentence(errorText(error));
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

// The one-time code stands in the fragment, which is never sent to a server by itself.
export async function startSession(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code) {
    history.replaceState(null, '', location.pathname + location.search);
    try {
      session.value = await untilAnswered(() => json<Session>('POST', '/ui/api/login', { body: { code } }));
      return;
    } catch (error) {
      loginHint.value = `${sentence(errorText(error))} Run swell ui again for a new address, or log in with a token.`;
    }
  }
  try {
    session.value = await untilAnswered(() => json<Session>('GET', '/ui/api/session'));
    loginHint.value = '';
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401) && !loginHint.value)
      loginHint.value = sentence(errorText(error));
    session.value = null;
  }
}

export async function login(token: string): Promise<void> {
  session.value = await json<Session>('POST', '/ui/api/login', { body: { token } });
  loginHint.value = '';
}

export async function logout(): Promise<void> {
  await send('POST', '/ui/api/logout', { body: {} });
  loginHint.value = 'You are logged out.';
  session.value = null;
}
