/**
 * A server that will be killed: prints the pids of its processes and its folder as one line of
 * JSON, and then continues.
 */
import { dirname } from 'node:path';
import { descendantsOf, openKernel, parentOf, startTestHost } from './kernel-fixture.ts';

const testHost = await startTestHost();
const busy = await openKernel(testHost, {
  a: 'import subprocess\nprint(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)\nwhile True: pass',
});
const idle = await openKernel(testHost, { a: '1' });
const printed = busy.printed('\n');
busy.run(['a']).catch(() => {});
await printed;
await idle.ready;
const host = parentOf((await busy.ready).pid);
process.stdout.write(
  `${JSON.stringify({ folder: dirname(testHost.runDir), pids: [host, ...descendantsOf(host)] })}\n`,
);
