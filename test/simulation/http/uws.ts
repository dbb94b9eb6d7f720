/** A stand-in for uWebSockets.js: the server takes its requests from connections in memory. */
import { type Life, type World, world } from '../world/world.ts';
import type { Connection, RequestHead, ServerEnd } from './connection.ts';
import { Routes } from './routes.ts';

type Handler = (res: SimulatedResponse, req: SimulatedRequest) => void;
type Chunk = string | ArrayBuffer | Uint8Array;

class SimulatedRequest {
  readonly #head: RequestHead;
  readonly #parameters: readonly string[];

  constructor(head: RequestHead, parameters: readonly string[]) {
    this.#head = head;
    this.#parameters = parameters;
  }

  getMethod(): string {
    return this.#head.method.toLowerCase();
  }

  getUrl(): string {
    return this.#head.path;
  }

  getQuery(name?: string): string | undefined {
    const { query } = this.#head;
    return name === undefined ? query : (new URLSearchParams(query ?? '').get(name) ?? undefined);
  }

  getHeader(name: string): string {
    return this.#head.headers[name] ?? '';
  }

  getParameter(index: number): string | undefined {
    return this.#parameters[index];
  }

  forEach(visit: (name: string, value: string) => void): void {
    for (const [name, value] of Object.entries(this.#head.headers)) visit(name, value);
  }
}

/** What was handed over belongs to the caller again when a call returns. */
function copied(chunk: Chunk): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  return Buffer.from(new Uint8Array(chunk));
}

class SimulatedResponse implements ServerEnd {
  readonly #connection: Connection;
  readonly #over: () => void;
  readonly #abortHandlers: (() => void)[] = [];
  #status = '200 OK';
  #offset = 0;
  #isHeadSent = false;
  #isOver = false;
  #writable: ((offset: number) => boolean) | undefined;
  data: ((chunk: ArrayBuffer, isLast: boolean) => void) | undefined;

  constructor(connection: Connection, over: () => void) {
    this.#connection = connection;
    this.#over = over;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  cork(write: () => void): this {
    this.#requireOpen();
    write();
    return this;
  }

  writeStatus(status: string): this {
    this.#requireOpen();
    this.#status = status;
    return this;
  }

  writeHeader(): this {
    this.#requireOpen();
    return this;
  }

  write(chunk: Chunk): boolean {
    this.#requireOpen();
    this.#sendHead();
    const bytes = copied(chunk);
    this.#offset += bytes.length;
    return this.#connection.sendChunk(bytes);
  }

  tryEnd(chunk: Chunk, totalBytes: number): [boolean, boolean] {
    const bytes = copied(chunk);
    if (this.#offset + bytes.length >= totalBytes) {
      this.end(bytes);
      return [true, true];
    }
    return [this.write(bytes), false];
  }

  getWriteOffset(): number {
    return this.#offset;
  }

  end(body?: Chunk): this {
    this.#requireOpen();
    this.#sendHead();
    const bytes = body === undefined ? undefined : copied(body);
    if (bytes !== undefined && bytes.length > 0) this.#connection.sendChunk(bytes);
    this.#connection.sendEnd();
    this.#conclude();
    return this;
  }

  endWithoutBody(): this {
    return this.end();
  }

  close(): this {
    if (this.#isOver) return this;
    this.#connection.cut();
    this.#abort();
    return this;
  }

  onWritable(handler: (offset: number) => boolean): this {
    this.#writable = handler;
    return this;
  }

  onAborted(handler: () => void): this {
    this.#abortHandlers.push(handler);
    return this;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): this {
    this.data = handler;
    return this;
  }

  pause(): void {}

  resume(): void {}

  getRemoteAddressAsText(): ArrayBuffer {
    return new TextEncoder().encode('127.0.0.1').buffer as ArrayBuffer;
  }

  clientLeft(): void {
    if (!this.#isOver) this.#abort();
  }

  writable(): void {
    if (!this.#isOver) this.#writable?.(this.#offset);
  }

  #sendHead(): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    this.#connection.sendHead(Number.parseInt(this.#status, 10));
  }

  #abort(): void {
    this.#conclude();
    for (const handler of this.#abortHandlers) handler();
  }

  #conclude(): void {
    this.#isOver = true;
    this.#over();
  }

  /** uWebSockets.js throws when a response is used after its end. */
  #requireOpen(): void {
    if (this.#isOver) throw new Error('uWS.HttpResponse must not be accessed after its end or abort.');
  }
}

/** What `App()` returns. */
export class SimulatedServer {
  isListening = false;
  readonly #routes = new Map<string, Routes<Handler>>();
  readonly #responses = new Set<SimulatedResponse>();
  readonly #life: Life = world().life;

  get(pattern: string, handler: Handler): this {
    return this.#add('GET', pattern, handler);
  }

  post(pattern: string, handler: Handler): this {
    return this.#add('POST', pattern, handler);
  }

  put(pattern: string, handler: Handler): this {
    return this.#add('PUT', pattern, handler);
  }

  patch(pattern: string, handler: Handler): this {
    return this.#add('PATCH', pattern, handler);
  }

  del(pattern: string, handler: Handler): this {
    return this.#add('DELETE', pattern, handler);
  }

  head(pattern: string, handler: Handler): this {
    return this.#add('HEAD', pattern, handler);
  }

  options(pattern: string, handler: Handler): this {
    return this.#add('OPTIONS', pattern, handler);
  }

  any(pattern: string, handler: Handler): this {
    return this.#add('any', pattern, handler);
  }

  filter(): this {
    return this;
  }

  listen(...args: readonly unknown[]): this {
    this.isListening = true;
    listening.set(this.#life, this);
    (args.at(-1) as (socket: SimulatedServer) => void)(this);
    return this;
  }

  close(): void {
    for (const response of [...this.#responses]) response.close();
  }

  #add(method: string, pattern: string, handler: Handler): this {
    let routes = this.#routes.get(method);
    if (routes === undefined) {
      routes = new Routes();
      this.#routes.set(method, routes);
    }
    routes.add(pattern, handler);
    return this;
  }

  /** Takes a request, in a task of the life of this server. */
  receive(connection: Connection): ServerEnd {
    const { head, body } = connection;
    const match = this.#routes.get(head.method)?.find(head.path) ?? this.#routes.get('any')?.find(head.path);
    if (match === undefined) throw new Error(`There is no route for ${head.method} ${head.path}.`);
    const response = new SimulatedResponse(connection, () => this.#responses.delete(response));
    this.#responses.add(response);
    match.handler(response, new SimulatedRequest(head, match.parameters));
    if (!response.isOver) response.data?.(new Uint8Array(body).buffer, true);
    return response;
  }
}

let listening = new Map<Life, SimulatedServer>();
let listeningIn: World | undefined;

/** Returns the server that a life has opened. */
export function serverOf(life: Life): SimulatedServer | undefined {
  return listening.get(life);
}

/** The module that the server loads in place of uWebSockets.js. */
export const uws = {
  App(): SimulatedServer {
    if (listeningIn !== world()) listening = new Map();
    listeningIn = world();
    return new SimulatedServer();
  },
  us_listen_socket_close(server: SimulatedServer): void {
    server.isListening = false;
  },
  us_socket_local_port: (): number => 4000,
};
