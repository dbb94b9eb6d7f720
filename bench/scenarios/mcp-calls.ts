import { connect } from 'node:net';
import type { Api } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { atLeast, median } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const SESSIONS = 8;
const ROUNDS = 3;
const VERSION = '2026-07-28';
/** The end of a body that is sent in chunks. */
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');

const unit: UnitOfWork = {
  name: 'call',
  count: 400,
  async prepare({ api }) {
    const { id } = await api.session(['x = 1']);
    return {
      async perform(count: number) {
        let left = count;
        await callByMcp(api, id, () => left-- > 0);
      },
    };
  },
};

/** Compares calls of `run_python` by MCP with calls of the code endpoint. */
export const mcpCalls: Scenario = {
  name: 'mcp-calls',
  title: '8 sessions that run `1+1` without a pause, by the code endpoint and by `run_python` of MCP in turn',
  limitS: 90,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const sessions: string[] = [];
    for (let i = 0; i < SESSIONS; i++) sessions.push((await api.session(['x = 1'])).id);
    const forMs = stage.quick ? 1_000 : 4_000;
    await together(sessions, 500, (id, goesOn) => callByRest(api, id, goesOn));
    await together(sessions, 500, (id, goesOn) => callByMcp(api, id, goesOn));
    const rest: number[] = [];
    const mcp: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      rest.push(await together(sessions, forMs, (id, goesOn) => callByRest(api, id, goesOn)));
      mcp.push(await together(sessions, forMs, (id, goesOn) => callByMcp(api, id, goesOn)));
    }
    const shares = rest.map((perSecond, round) => (100 * mcp[round]!) / perSecond);
    return [
      atLeast('calls of the code endpoint', median(rest), '/s'),
      atLeast('calls by MCP', median(mcp), '/s'),
      atLeast('calls by MCP, of those of the code endpoint', median(shares), '%', 45),
    ];
  },
};

/** Calls in all sessions at once, and returns how many calls there were in a second. */
async function together(
  sessions: readonly string[],
  forMs: number,
  call: (sessionId: string, goesOn: () => boolean) => Promise<void>,
): Promise<number> {
  let count = 0;
  const startedAt = performance.now();
  const goesOn = () => {
    count++;
    return performance.now() - startedAt < forMs;
  };
  await Promise.all(sessions.map((id) => call(id, goesOn)));
  return ((count - sessions.length) * 1000) / (performance.now() - startedAt);
}

async function callByRest(api: Api, sessionId: string, goesOn: () => boolean): Promise<void> {
  const wire = await api.wire();
  const request = api.codeBytes(sessionId, '1+1');
  while (goesOn()) expected(await wire.send(request), 200);
  wire.close();
}

async function callByMcp(api: Api, notebookId: string, goesOn: () => boolean): Promise<void> {
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'run_python',
      arguments: { notebookId, code: '1+1' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': VERSION,
        'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const headers =
    `accept: application/json, text/event-stream\r\nmcp-protocol-version: ${VERSION}\r\n` +
    'mcp-method: tools/call\r\nmcp-name: run_python\r\n';
  const request = api.bytes('POST', '/mcp', message, headers);
  const socket = connect(api.endpoint.port, '127.0.0.1').setNoDelay();
  try {
    while (goesOn()) {
      socket.write(request);
      const answer = await answerOf(socket);
      if (!answer.includes('"success":true')) throw new Error(answer);
    }
  } finally {
    socket.destroy();
  }
}

/** Resolves with a response whose body comes in chunks. */
function answerOf(socket: ReturnType<typeof connect>): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    const onData = (piece: Buffer) => {
      pieces.push(piece);
      const bytes = pieces.length === 1 ? piece : Buffer.concat(pieces);
      const isWhole = bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
      if (!isWhole && !bytes.includes('\r\ncontent-length:')) return;
      socket.off('data', onData).off('error', reject);
      resolve(bytes.toString());
    };
    socket.on('data', onData).once('error', reject);
  });
}
