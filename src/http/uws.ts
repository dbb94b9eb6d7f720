/** Loads the native HTTP library and listens with it, alone or on a socket that several processes have inherited. */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import { closeSync } from 'node:fs';
import { requireUws, uwsCopyInUse, whyUnloadable } from '#src/base/install/native-binaries.ts';
import { listenFailure, probeListening } from '#src/base/net/listen-failure.ts';
import { listenOnInherited, loadInheritedListener } from '#src/base/os/listening-socket.ts';

export type Uws = typeof import('uWebSockets.js');

declare module 'uWebSockets.js' {
  // Methods that are missing in the package's own declarations.
  interface TemplatedApp {
    /**
     * Sets the seconds after which a connection is closed when no further bytes of its request arrive. Not every copy has this
     * method.
     */
    setIdleTimeout?(seconds: number): void;
    /** Sets the seconds after which an idle connection is closed after a response. */
    setResponseTimeout?(seconds: number): void;
    listen(
      host: string,
      port: number,
      options: number,
      cb: (socket: us_listen_socket | false) => void,
    ): TemplatedApp;
  }
}

/** The steps of the library's clock are four seconds, so a connection may end two seconds later. */
const MAX_IDLE_S = 10;
/** The longest head of a request, as in Node.js. The library's own limit is 4 KiB, which several cookies or a long code can exceed. */
const MAX_HEAD_BYTES = 16_384;
const HEAD_LIMIT = 'UWS_HTTP_MAX_HEADERS_SIZE';
/** Without this option another program of the same user could share the port. */
const EXCLUSIVE_PORT = 1;
/**
 * How many connections a process accepts in a millisecond from a socket that it shares with other
 * processes.
 */
const MAX_ACCEPTED = 4;
const ACCEPTED_WITHIN_MS = 1;
const LOOPBACK = '127.0.0.1';

export interface ListenAddress {
  readonly host: string;
  /** The port. With 0 the system chooses a free port. */
  readonly port: number;
  /** An inherited socket that is bound to this address, on which other processes of this server listen as well. */
  readonly descriptor?: number;
  /** The path of a unix socket, which is used in place of host and port. */
  readonly socketPath?: string | undefined;
}

export interface Listening {
  readonly port: number;
  /** Refuses new connections, unless other processes listen on the same socket. Call it once. */
  stop(): void;
}

/**
 * Loads the library: the copy at the path `named`, or else the copy of this installation. Throws an error of one line when the
 * binary does not run on this machine.
 */
export async function loadUws(named?: string): Promise<Uws> {
  const copy = await uwsCopyInUse(named);
  const given = process.env[HEAD_LIMIT];
  process.env[HEAD_LIMIT] = given ?? String(MAX_HEAD_BYTES); // the library reads the variable while it is loaded
  try {
    return requireUws(copy) as Uws;
  } catch (cause) {
    throw new Error(await whyUnloadable(`uWebSockets.js (${copy.path}, ${copy.origin})`, cause), { cause });
  } finally {
    if (given === undefined) delete process.env[HEAD_LIMIT]; // other programs that this process starts do not need the variable
  }
}

/**
 * Returns an app that closes connections on which no complete request arrives for ten seconds. For some copies of the library the
 * time must be set, because it is 30 seconds; for others it is always ten.
 */
export function createUwsApp(uws: Uws): TemplatedApp {
  const app = uws.App();
  app.setIdleTimeout?.(MAX_IDLE_S);
  app.setResponseTimeout?.(MAX_IDLE_S);
  return app;
}

/** Resolves once the app listens. When it cannot listen, rejects with one line that names the reason and the solution. */
export async function listenOn(uws: Uws, app: TemplatedApp, address: ListenAddress): Promise<Listening> {
  const { host, port, descriptor, socketPath } = address;
  if (socketPath !== undefined) return listenOnPath(uws, app, socketPath);
  if (descriptor !== undefined) {
    await listenOnInherited(descriptor).catch((cause: NodeJS.ErrnoException) => {
      throw new Error(listenFailure(cause.code, { host, port }), { cause });
    });
    return acceptFrom(uws, app, descriptor, true);
  }
  const listening = listen(app, host, port);
  if (listening !== undefined)
    return {
      port: uws.us_socket_local_port(listening),
      stop: () => uws.us_listen_socket_close(listening),
    };
  // uWebSockets.js does not report the reason, so Node.js tries to listen in its place.
  throw new Error(listenFailure(await probeListening(host, port), { host, port }));
}

function listenOnPath(uws: Uws, app: TemplatedApp, path: string): Listening {
  let listening: us_listen_socket | false = false;
  app.listen_unix((socket) => {
    listening = socket;
  }, path);
  const opened: us_listen_socket | false = listening;
  if (opened === false) throw new Error(`No socket can be opened at ${path}.`);
  return { port: 0, stop: () => uws.us_listen_socket_close(opened) };
}

function listen(app: TemplatedApp, host: string, port: number): us_listen_socket | undefined {
  let listening: us_listen_socket | false = false;
  app.listen(host, port, EXCLUSIVE_PORT, (socket) => {
    listening = socket;
  });
  return listening === false ? undefined : listening;
}

/**
 * Listens on a bound unix socket, which other processes of this server may share. When it cannot listen, rejects with an error of
 * one line.
 */
export async function listenForProxies(
  uws: Uws,
  app: TemplatedApp,
  descriptor: number,
  isShared: boolean,
): Promise<Listening> {
  await listenOnInherited(descriptor);
  return acceptFrom(uws, app, descriptor, isShared);
}

/**
 * Accepts the connections of a socket that this process has not opened through the library. Each process accepts only a few
 * connections at a time, so that other processes with the same socket get some, too.
 */
async function acceptFrom(
  uws: Uws,
  app: TemplatedApp,
  descriptor: number,
  isShared: boolean,
): Promise<Listening> {
  const inherited = await loadInheritedListener(descriptor);
  const listening = listen(app, LOOPBACK, 0);
  if (listening === undefined)
    throw new Error(
      `TROUPE_WORKERS above 1 and TROUPE_LISTEN_SOCKET need a port on ${LOOPBACK}, but no port can be opened there.`,
    );
  const own = inherited.find(uws.us_socket_local_port(listening));
  inherited.replace(own);
  let accepted = 0;
  let pause: NodeJS.Timeout | undefined;
  let isStopped = false;
  const goOn = () => {
    pause = undefined;
    if (accepted >= MAX_ACCEPTED && !isStopped) inherited.replace(own);
    accepted = 0;
  };
  const count = (change: number): void => {
    if (change < 0 || isStopped) return;
    pause ??= setTimeout(goOn, ACCEPTED_WITHIN_MS);
    // The event loop continues to watch the inherited socket, and the library finds nothing to
    // accept.
    if (++accepted === MAX_ACCEPTED) inherited.silence(own);
  };
  if (isShared) app.filter((_res, change) => count(Number(change)));
  return {
    port: uws.us_socket_local_port(listening),
    stop() {
      clearTimeout(pause);
      goOn(); // so that the event loop can let go of the socket that it watches
      isStopped = true;
      uws.us_listen_socket_close(listening);
      closeSync(descriptor);
    },
  };
}
