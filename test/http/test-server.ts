import http from 'node:http';
import net from 'node:net';
import type { TestContext } from 'node:test';
import type { Auth, Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import type { Route } from '#src/http/route.ts';
import { createServer, type Server, type ServerOptions } from '#src/http/server.ts';
import { httpDefaults } from './http-defaults.ts';

export const principal: Principal = {
  workspaceId: 'ws_1' as WorkspaceId,
  userId: 'ada' as UserId,
  tokenId: 'tok_1' as TokenId,
  role: 'editor',
  scopes: ['workspaceRuntime:connect'],
};

/** Knows one token, one workspace, and two actions of which one is allowed. */
export const auth: Auth = {
  authenticate(authorization, workspaceHeader) {
    if (authorization !== 'Bearer good') throw new AppError('unauthenticated', 'Send a valid token.');
    if (workspaceHeader === '') throw new AppError('missing_workspace', 'Say which workspace is meant.');
    if (workspaceHeader !== 'ws_1') throw notFound();
    return principal;
  },
  identify(authorization) {
    if (authorization !== 'Bearer good') throw new AppError('unauthenticated', 'Send a valid token.');
    return { ...principal, isBound: false };
  },
  authenticateSession() {
    throw new AppError('unauthenticated', 'There are no sessions.');
  },
  identifySignIn() {
    throw new AppError('unauthenticated', 'There are no sessions.');
  },
  authorize(_, action) {
    if (action === 'forbidden') throw new AppError('role_too_low', 'You may not.');
  },
  requirements(action) {
    if (action === 'thing.use') return { scopes: ['workspaceRuntime:connect'], role: 'viewer' };
    return action === 'forbidden' ? { scopes: ['workspaceRuntime:connect'], role: 'owner' } : undefined;
  },
};

export const GOOD = { authorization: 'Bearer good', 'service-workspace-id': 'ws_1' } as const;
export const JSON_BODY = { ...GOOD, 'content-type': 'application/json' } as const;

export interface TestServer extends Server {
  /** The logged errors. */
  readonly logged: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[];
}

/** A server on a free port that is closed when the test ends. */
export async function serve(
  t: TestContext,
  routes: readonly Route[],
  ports: Partial<ServerOptions> = {},
): Promise<TestServer> {
  const logged: TestServer['logged'] = [];
  const server = await createServer({
    ...httpDefaults({ error: (fields, message) => logged.push({ fields, message }) }),
    routes,
    auth,
    ...ports,
  });
  t.after(() => server.close(0));
  return { ...server, logged };
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  /** The body if it is JSON, else undefined. */
  readonly json: unknown;
  /** The code in a problem document. */
  readonly code: string | undefined;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export function send(
  server: Server,
  path: string,
  { method = 'GET', headers = GOOD, body }: RequestOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: server.host, port: server.port, path, method, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const isJson = /json$/.test(response.headers['content-type'] ?? '') && text !== '';
          const json: unknown = isJson ? JSON.parse(text) : undefined;
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json,
            code: codeOf(json),
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

function codeOf(json: unknown): string | undefined {
  if (typeof json !== 'object' || json === null || !('code' in json)) return undefined;
  return typeof json.code === 'string' ? json.code : undefined;
}

/** A connection on which any bytes can be sent, and everything that comes back is kept. */
export class RawConnection {
  readonly socket: net.Socket;
  text = '';
  readonly closed: Promise<void>;
  #waiting: { readonly isThere: (text: string) => boolean; readonly resolve: () => void }[] = [];

  constructor(server: Server) {
    this.socket = net.connect(server.port, server.host);
    this.closed = new Promise((resolve) => this.socket.on('close', () => resolve()));
    this.socket.on('error', () => {});
    this.socket.on('data', (data) => {
      this.text += data.toString('latin1');
      this.#waiting = this.#waiting.filter(({ isThere, resolve }) => !isThere(this.text) || resolve());
    });
  }

  write(text: string): void {
    this.socket.write(text);
  }

  /** Settles once the text so far satisfies the condition. */
  until(isThere: (text: string) => boolean): Promise<void> {
    if (isThere(this.text)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ isThere, resolve });
    });
  }

  leave(): void {
    this.socket.destroy();
  }
}
