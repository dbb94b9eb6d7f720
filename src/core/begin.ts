/**
 * What the server does before anything else of it is loaded; `main.ts` imports it first. It makes this process its own:
 * no debugger, and nothing open that whoever started it left behind.
 */
import { closeInherited } from './descriptors.ts';
import { keepDebuggersOut } from './inspector.ts';

keepDebuggersOut();
closeInherited();
