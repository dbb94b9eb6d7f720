/** Sends requests whose bytes reach the server in several parts, and returns its answers. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { bounded, eventually } from './processes.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How many connections are open at once. */
const MAX_AT_ONCE = 400;

/** Returns each way to cut `request` into two parts. */
export function everyCut(request: string): string[][] {
  return Array.from({ length: request.length - 1 }, (_, at) => [
    request.slice(0, at + 1),
    request.slice(at + 1),
  ]);
}

/**
 * Sends each request on a connection of its own. The server has read one part before it gets the next. Each request must end its connection.
 * Resolves with the answers, without their dates and the random times of event streams.
 */
export async function answersInParts(
  server: Address,
  requests: readonly (readonly string[])[],
): Promise<string[]> {
  const answers: string[] = [];
  for (let at = 0; at < requests.length; at += MAX_AT_ONCE)
    answers.push(...(await sendTogether(server, requests.slice(at, at + MAX_AT_ONCE))));
  return answers;
}

async function sendTogether(
  { host, port }: Address,
  requests: readonly (readonly string[])[],
): Promise<string[]> {
  const exchanges = requests.map((parts) => ({ parts, ...open(host, port) }));
  const rounds = Math.max(...requests.map((parts) => parts.length));
  for (let round = 0; round < rounds; round++) {
    await Promise.all(exchanges.map(({ parts, socket }) => write(socket, parts[round])));
    await eventually('the server has read the parts', () => !isUnderWay(port));
  }
  return Promise.all(
    exchanges.map(({ parts, text, closed }) =>
      bounded('the server ends the connection', closed, () => `${JSON.stringify(parts)}\n${text()}`).then(
        () =>
          text()
            .replace(/^date: .*\r\n/im, '')
            .replace(/^retry: \d+\n/m, ''),
      ),
    ),
  );
}

function open(host: string, port: number) {
  const socket = connect({ host, port, noDelay: true });
  let received = '';
  socket.setEncoding('latin1').on('data', (text) => (received += String(text)));
  socket.on('error', () => {}); // the server may close before it has got all parts
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, closed, text: () => received };
}

/** Resolves when the system has taken the part, or the connection is over. */
function write(socket: Socket, part: string | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (part === undefined || !socket.writable) resolve();
    else socket.write(part, 'latin1', () => resolve());
  });
}

/** Whether bytes of a client of this port have not been read yet, by the queues that Linux reports (proc(5), /proc/net/tcp). */
function isUnderWay(port: number): boolean {
  const name = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'latin1').split('\n').slice(1))
    .some((line) => {
      const [, local = '', remote = '', , queues = ''] = line.trim().split(/\s+/);
      const [sent, received] = queues.split(':');
      return (
        (local.endsWith(name) && Number.parseInt(received ?? '0', 16) > 0) ||
        (remote.endsWith(name) && Number.parseInt(sent ?? '0', 16) > 0)
      );
    });
}
