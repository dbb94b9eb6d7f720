/**
 * What the server does before anything else of it is loaded; `main.ts` imports it first. It makes this process its own:
 * no debugger, nothing open that whoever started it left behind, and the service manager for itself.
 */
import { closeInherited } from './descriptors.ts';
import { keepDebuggersOut } from './inspector.ts';
import { takeNotifySocket } from './service-notice.ts';

keepDebuggersOut();
closeInherited();
takeNotifySocket();
