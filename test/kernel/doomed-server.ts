/** A server that is to be killed: prints the pids of its kernels' processes as one line of JSON, then lives on. */
import { openKernel, parentOf, startTestHost } from './kernel-fixture.ts';

const host = await startTestHost();
const busy = await openKernel(host, {
  a: 'import subprocess\nprint(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)\nwhile True: pass',
});
const idle = await openKernel(host, { a: '1' });
const printed = busy.printed('\n');
busy.run(['a']).catch(() => {});
const message = await printed;
const child = message.op === 'cell-op' ? Number(message.console?.[0]?.data) : 0;
const kernels = [(await busy.ready).pid, (await idle.ready).pid];
process.stdout.write(`${JSON.stringify([...kernels, child, parentOf(kernels[0] ?? 0)])}\n`);
