/**
 * The first step of the server; `main.ts` imports it before anything else. It closes the debugger and every descriptor that the
 * launcher left open, and keeps the address of the service manager for this process alone.
 */

import inspector from 'node:inspector';
import { closeInherited } from '#src/base/os/descriptors.ts';
import { takeNotifySocket } from '#src/base/os/service-notice.ts';

/** Node.js also gives workers a port for a debugger, which opens none. */
const ASKED_FOR = /^--inspect(-brk|-wait)?(=|$)/;
/** A request that came before the handler was set reaches the main thread through another thread. */
const LATE_CHECKS_MS = [0, 10, 50, 250, 1000, 5000];

/**
 * Makes SIGUSR1 do nothing from here on, and closes an inspector that SIGUSR1 or NODE_OPTIONS has opened: only the
 * command line can ask for a debugger (`node --inspect …`). Call it before anything else.
 */
function keepDebuggersOut(): void {
  process.on('SIGUSR1', () => {});
  if (process.execArgv.some((argument) => ASKED_FOR.test(argument))) return;
  closeInspector();
  for (const delayMs of LATE_CHECKS_MS) setTimeout(closeInspector, delayMs).unref();
}

function closeInspector(): void {
  if (inspector.url() !== undefined) inspector.close();
}

keepDebuggersOut();
closeInherited();
takeNotifySocket();
