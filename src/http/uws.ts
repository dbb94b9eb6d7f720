/** The native HTTP library: loading it, and listening with it, alone or on a socket that several processes have inherited. */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import { closeSync } from 'node:fs';
import { listenFailure, probeListening } from '#src/core/listen-failure.ts';
import { listenOnInherited, loadInheritedListener } from '#src/os/listening-socket.ts';

export type Uws = typeof import('uWebSockets.js');

declare module 'uWebSockets.js' {
  // This overload is missing in the package's own declarations; the native code accepts it.
  interface TemplatedApp {
    listen(
      host: string,
      port: number,
      options: number,
      cb: (socket: us_listen_socket | false) => void,
    ): TemplatedApp;
  }
}

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
  /** With 0 the system chooses a free one. */
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

/** Loads the library. Throws an error of one line when its binary does not run on this machine. */
export async function loadUws(): Promise<Uws> {
  try {
    return (await import('uWebSockets.js')).default;
  } catch (cause) {
    const { platform, arch, version } = process;
    throw new Error(
      `uWebSockets.js cannot be loaded on ${platform}-${arch} with Node ${version}: it needs Node 20, 22 or 24 on Linux with glibc, and glibc 2.38 or newer for Node 22 and 24.`,
      { cause },
    );
  }
}

/** Resolves once the app listens. Rejects with one line that names the reason and the solution when it cannot listen. */
export async function listenOn(uws: Uws, app: TemplatedApp, address: ListenAddress): Promise<Listening> {
  const { host, port, descriptor, socketPath } = address;
  if (socketPath !== undefined) return listenOnPath(uws, app, socketPath);
  if (descriptor !== undefined) return listenTogether(uws, app, { ...address, descriptor });
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

async function listenTogether(
  uws: Uws,
  app: TemplatedApp,
  { host, port, descriptor }: ListenAddress & { readonly descriptor: number },
): Promise<Listening> {
  await listenOnInherited(descriptor).catch((cause: NodeJS.ErrnoException) => {
    throw new Error(listenFailure(cause.code, { host, port }), { cause });
  });
  const inherited = await loadInheritedListener(descriptor);
  const listening = listen(app, LOOPBACK, 0);
  if (listening === undefined)
    throw new Error(`TROUPE_WORKERS above 1 needs a port on ${LOOPBACK}, but no port can be opened there.`);
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
  app.filter((_res, change) => count(Number(change)));
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
