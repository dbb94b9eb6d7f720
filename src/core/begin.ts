/**
 * The first step of the server; `main.ts` imports it before anything else. It closes the debugger and every descriptor that the
 * launcher left open, and keeps the connection to the service manager for this process.
 */
import { closeInherited } from './descriptors.ts';
import { keepDebuggersOut } from './inspector.ts';
import { takeNotifySocket } from './service-notice.ts';

keepDebuggersOut();
closeInherited();
takeNotifySocket();
