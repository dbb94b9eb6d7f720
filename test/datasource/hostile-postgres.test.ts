// tier: whole, because it makes random or hostile input
/** Servers that log a client in and send a message that is too short, or that the driver does not expect. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { DATASOURCE_FAILURES, DatasourceFailure } from '#src/datasource/failure.ts';
import { listeningWith } from './listening.ts';
import { ask, probeFixture } from './probe-fixture.ts';

function message(letter: string, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.from(`${letter}....`);
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

const loggedIn = message('R', Buffer.alloc(4));
const ready = message('Z', Buffer.from('I'));
const done = message('C', Buffer.from('SET\0'));

/**
 * When the message is sent: with the answer to the login, with the answer to the first statement,
 * or later.
 */
const MOMENTS: Readonly<Record<string, (sent: Buffer) => readonly [Buffer, Buffer, Buffer]>> = {
  'during the login': (sent) => [
    Buffer.concat([loggedIn, sent, ready]),
    Buffer.concat([done, ready]),
    Buffer.concat([done, ready]),
  ],
  'as the last message of the login': (sent) => [
    Buffer.concat([loggedIn, sent]),
    Buffer.alloc(0),
    Buffer.alloc(0),
  ],
  'during a statement': (sent) => [
    Buffer.concat([loggedIn, ready]),
    Buffer.concat([sent, done, ready]),
    Buffer.concat([done, ready]),
  ],
  'while the connection is idle': (sent) => [
    Buffer.concat([loggedIn, ready]),
    Buffer.concat([done, ready, sent]),
    Buffer.concat([done, ready]),
  ],
  'in the result of a cursor': (sent) => [
    Buffer.concat([loggedIn, ready]),
    Buffer.concat([done, ready]),
    Buffer.concat([sent, done, ready]),
  ],
};

const SSL_REQUEST = 80_877_103;

/** Serves one client, which may ask for TLS first. */
function serve(socket: Socket, answers: readonly Buffer[]): void {
  let at = 0;
  socket.on('data', (asked) => {
    if (at === 0 && asked.length === 8 && asked.readUInt32BE(4) === SSL_REQUEST) return socket.write('N');
    return socket.write(answers[Math.min(at++, answers.length - 1)]!);
  });
}

const LETTERS = 'RSKZETDCINAtV123snGHWdcfvX?';
const DEADLINE_MS = 150;

for (const [moment, answersWith] of Object.entries(MOMENTS)) {
  test(`a PostgreSQL server that sends an odd message ${moment} harms only its own connection`, async (t) => {
    const thrown: unknown[] = [];
    const note = (error: unknown) => void thrown.push(error);
    process.on('uncaughtException', note);
    t.after(() => process.off('uncaughtException', note));
    let answers: readonly Buffer[] = [];
    const port = await listeningWith(t, (socket) => serve(socket, answers));
    const { probe, open } = probeFixture(t);
    const connection = {
      kind: 'postgres',
      connection_string: `postgresql://a:b@127.0.0.1:${port}/c`,
      schema: 'public',
    };
    for (const letter of LETTERS) {
      for (const body of [Buffer.alloc(0), Buffer.from([0, 9]), Buffer.alloc(16), Buffer.alloc(16, 0xff)]) {
        answers = answersWith(message(letter, body));
        const { ok, message: said } = await probe(connection, DEADLINE_MS);
        assert(ok || Object.values<string>(DATASOURCE_FAILURES).includes(said), said);
        if (moment.includes('login')) continue;
        const signal = AbortSignal.timeout(DEADLINE_MS);
        await open(connection)
          .then((session) => ask(session, 'SELECT 1', { signal }))
          .catch((error: unknown) => assert(error instanceof DatasourceFailure));
      }
    }
    assert.deepEqual(thrown, []);
  });
}
