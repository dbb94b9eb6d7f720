/** The native HTTP library: loading it, and listening with it. */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';

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

/** Without this option a second server on the same port would silently share it. */
const EXCLUSIVE_PORT = 1;

/** Loads the library. Throws an error of one line when its binary does not run on this machine. */
export async function loadUws(): Promise<Uws> {
  try {
    return (await import('uWebSockets.js')).default;
  } catch (cause) {
    const { platform, arch, version } = process;
    throw new Error(
      `uWebSockets.js cannot be loaded on ${platform}-${arch} with Node ${version}: it needs Node 20, 22 or 24 on Linux with glibc 2.27 or newer, macOS or Windows.`,
      { cause },
    );
  }
}

/** Returns the listening socket. Throws when the port is taken or the address does not belong to this machine. */
export function listenOn(app: TemplatedApp, host: string, port: number): us_listen_socket {
  let listening: us_listen_socket | false = false;
  app.listen(host, port, EXCLUSIVE_PORT, (socket) => {
    listening = socket;
  });
  if (listening === false)
    throw new Error(
      `cannot listen on ${host}:${port}: the port is taken or the address is not of this machine`,
    );
  return listening;
}
