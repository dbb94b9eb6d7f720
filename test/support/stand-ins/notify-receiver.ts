/** Stands in for a service manager: reads the notices of services from a unix socket, which Node.js cannot. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from '../store/temporary-store.ts';

const SCRIPT = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1])
print(flush=True)
while True:
    text, parts, _, _ = s.recvmsg(65536, 1024)
    [(_, _, credentials)] = parts
    fields = dict(line.split('=', 1) for line in text.decode().split('\\n'))
    print(json.dumps({'pid': int.from_bytes(credentials[:4], 'little'), **fields}), flush=True)
`;

/** A notice: its fields, and the process that has sent it. */
export interface Notice {
  readonly pid: number;
  readonly [field: string]: string | number;
}

/** Resolves with the value for NOTIFY_SOCKET, and the notices so far. */
export async function receiveNotices(
  t: TestContext,
): Promise<{ readonly path: string; readonly notices: readonly Notice[] }> {
  const path = join(temporaryDirectory(t), 'notify');
  const child: ChildProcessByStdio<null, Readable, null> = spawn('python3', ['-c', SCRIPT, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const notices: Notice[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => line !== '' && notices.push(JSON.parse(line) as Notice));
  await once(lines, 'line');
  return { path, notices };
}
