/**
 * The first step of the server; `main.ts` imports it before anything else. It closes the debugger and every descriptor that the
 * launcher left open, and keeps the address of the service manager for this process alone.
 */
import { closeInherited } from '#src/os/descriptors.ts';
import { takeNotifySocket } from '#src/os/service-notice.ts';
import { keepDebuggersOut } from './inspector.ts';

keepDebuggersOut();
closeInherited();
takeNotifySocket();
