/** The native HTTP library: loading it, and listening with it. */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import { listenFailure, probeListening } from '#src/core/listen-failure.ts';

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

/** Without this option a second server on the same port would silently share it. Workers of one server do share it. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

export interface ListenAddress {
  readonly host: string;
  /** With 0 the system chooses a free one. */
  readonly port: number;
  /** Whether other processes of this server listen on the port, too. */
  readonly isShared?: boolean;
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

/** Resolves with the listening socket. Rejects with one line that says why it cannot listen, and what to do. */
export async function listenOn(
  app: TemplatedApp,
  { host, port, isShared = false }: ListenAddress,
): Promise<us_listen_socket> {
  let listening: us_listen_socket | false = false;
  app.listen(host, port, isShared ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
    listening = socket;
  });
  if (listening !== false) return listening;
  // uWebSockets.js does not say why: Node.js is asked to listen in its place.
  throw new Error(listenFailure(await probeListening(host, port), { host, port }, 'TROUPE_PORT'));
}
