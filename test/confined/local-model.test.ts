import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { askModel } from '#src/agent/models/model-call.ts';
import { openLog } from '#src/base/log/log.ts';
import { LocalModelProcess } from '#src/confined/processes/children/local-model.ts';
import { ConnectedModel } from '#src/confined/processes/children/local-model-connection.ts';
import { descendants } from '#test/support/processes.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { PYTHON, startTestHost } from './kernel-fixture.ts';

const STAND_IN = fileURLToPath(new URL('../../../test/confined/local_model_stand_in.py', import.meta.url));

async function localModel(t: TestContext, file = 'tiny.gguf') {
  const directory = temporaryDirectory(t);
  const host = await startTestHost();
  t.after(() => host[Symbol.asyncDispose]());
  const path = join(directory, file);
  writeFileSync(path, '');
  const ends: unknown[] = [];
  const onEnd: (() => void)[] = [];
  const model = new LocalModelProcess({
    host: host.host,
    path,
    python: PYTHON,
    script: STAND_IN,
    contextTokens: 512,
    memoryBytes: null,
    log: openLog({
      level: 'info',
      destination: {
        write: (line) => {
          if (!line.includes('has ended')) return;
          ends.push(JSON.parse(line));
          for (const tell of onEnd) tell();
        },
      },
    }),
  });
  t.after(() => model[Symbol.dispose]());
  const ended = () => new Promise<void>((resolve) => (ends.length > 0 ? resolve() : onEnd.push(resolve)));
  return { model, runDir: host.runDir, ended };
}

async function ask(model: LocalModelProcess, content: string, signal = new AbortController().signal) {
  let heard = '';
  const connection = await new ConnectedModel(model, () => model.start()).connect();
  const answer = await askModel({
    target: { provider: 'local', name: model.name, baseUrl: 'http://local/v1', ...connection },
    id: `local/${model.name}`,
    system: '',
    messages: [{ role: 'user', content: [{ type: 'text', text: content }] }],
    tools: [],
    maxOutputTokens: 10,
    silenceMs: 10_000,
    signal,
    onText: (text) => {
      heard += text;
    },
    onReasoning: () => {},
  });
  return { heard, finish: answer.finish };
}

const commandOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'latin1');

/**
 * The folders of running models. Sockets of other children are files, which are removed once the children are
 * connected.
 */
const sockets = (runDir: string) => readdirSync(runDir);

test('a local model has the name of its file, starts on first use, and is asked over its socket', async (t) => {
  const { model, runDir } = await localModel(t);
  assert.equal(model.name, 'tiny');
  assert.deepEqual(sockets(runDir), []);
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
  assert.equal(sockets(runDir).length, 1);
  const [first, second] = await Promise.all([model.start(), model.start()]);
  assert.equal(first, second);
});

test('after an abort the model answers the next question', async (t) => {
  const { model } = await localModel(t);
  const abort = new AbortController();
  await model.start();
  const talk = ask(model, 'forever', abort.signal);
  setImmediate(() => abort.abort());
  await assert.rejects(talk, { name: 'AbortError' });
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
});

test('when a model dies its answer breaks off, and the next question starts it again', async (t) => {
  const { model, runDir, ended } = await localModel(t);
  await assert.rejects(ask(model, 'die'), {
    name: 'ModelFailure',
    message: 'The answer of local/tiny broke off.',
  });
  await ended();
  assert.deepEqual(sockets(runDir), []);
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
});

test('each request to a file that is not a model gets the reason why it cannot be loaded', async (t) => {
  const { model } = await localModel(t, 'broken.gguf');
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(model.start(), { message: 'not a GGUF file' });
  }
});

test('the error for a missing part of the local model names the part and gives advice', (t) => {
  const directory = temporaryDirectory(t);
  const of = (path: string) =>
    new LocalModelProcess({
      host: { startChild: () => assert.fail('it was started'), newSocketPath: () => '' },
      path,
      python: join(directory, 'python'),
      script: STAND_IN,
      contextTokens: 512,
      memoryBytes: null,
      log: openLog({ level: 'silent' }),
    }).lacks();
  const path = join(directory, 'tiny.gguf');
  assert.equal(of(path), `there is no file ${path}.`);
  writeFileSync(path, '');
  assert.equal(of(path), 'run `troupe models add-local` once.');
});

test('a local model reads its file; it writes nothing, has no network, and shows its key to nobody', async (t) => {
  const { model, runDir } = await localModel(t);
  const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  const tried = async (expression: string) => (await ask(model, `try ${expression}`)).heard;
  assert.equal(await tried('open(path).read()'), "''");
  const refused = /^(PermissionError|FileNotFoundError|OSError|ConnectionRefusedError)$/;
  for (const expression of [
    `open(path, "a")`,
    `open(address + "x", "w")`,
    `open("/var/tmp/made-by-a-model", "w").write("x")`,
    `os.listdir(${JSON.stringify(dirname(runDir))})`,
    `os.mkdir(address + "x")`,
    `socket.create_connection(("127.0.0.1", ${port}), 2)`,
  ])
    assert.match(await tried(expression), refused, expression);
  const { apiKey } = await model.start();
  const [process] = descendants(globalThis.process.pid).filter(({ pid }) =>
    commandOf(pid).includes('stand_in'),
  );
  for (const file of ['environ', 'cmdline'])
    assert.ok(!readFileSync(`/proc/${process!.pid}/${file}`, 'latin1').includes(apiKey), file);
  assert.match(readFileSync(`/proc/${process!.pid}/status`, 'latin1'), /^Seccomp:\t2$/m);
});

test('disposing of a local model ends its process', async (t) => {
  const { model, ended } = await localModel(t);
  await ask(model, 'Hello');
  model[Symbol.dispose]();
  await ended();
  await assert.rejects(model.start(), { message: 'The server is stopping.' });
});
