import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { askModel } from '#src/agent/models/model-call.ts';
import { openLog } from '#src/core/log.ts';
import { LocalModelProcess } from '#src/kernel/local-model.ts';
import { temporaryDirectory } from '#test/support/temporary-store.ts';

const STAND_IN = fileURLToPath(new URL('../../../test/kernel/local_model_stand_in.py', import.meta.url));

function localModel(t: TestContext, file = 'tiny.gguf') {
  const directory = temporaryDirectory(t);
  const path = join(directory, file);
  writeFileSync(path, '');
  const ends: unknown[] = [];
  const onEnd: (() => void)[] = [];
  const model = new LocalModelProcess({
    path,
    python: 'python3',
    script: STAND_IN,
    runDir: directory,
    contextTokens: 512,
    environment: process.env,
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
  return { model, directory, ended };
}

async function ask(model: LocalModelProcess, content: string, signal = new AbortController().signal) {
  let heard = '';
  const connection = await model.connect();
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

const sockets = (directory: string) => readdirSync(directory).filter((name) => name.endsWith('.sock'));

test('a local model is named for its file, started when it is first asked, and asked over its socket', async (t) => {
  const { model, directory } = localModel(t);
  assert.equal(model.name, 'tiny');
  assert.deepEqual(sockets(directory), []);
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
  assert.equal(sockets(directory).length, 1);
  const [first, second] = await Promise.all([model.connect(), model.connect()]);
  assert.equal(first, second);
});

test('an abort leaves the model to the next question', async (t) => {
  const { model } = localModel(t);
  const abort = new AbortController();
  await model.connect();
  const talk = ask(model, 'forever', abort.signal);
  setImmediate(() => abort.abort());
  await assert.rejects(talk, { name: 'AbortError' });
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
});

test('a model that dies breaks its answer off, and the next question starts it again', async (t) => {
  const { model, directory, ended } = localModel(t);
  await assert.rejects(ask(model, 'die'), {
    name: 'ModelFailure',
    message: 'The answer of local/tiny broke off.',
  });
  await ended();
  assert.deepEqual(sockets(directory), []);
  assert.deepEqual(await ask(model, 'Hello'), { heard: '64 at tiny.gguf', finish: 'stop' });
});

test('a file that is no model says why it cannot be loaded, each time it is asked', async (t) => {
  const { model } = localModel(t, 'broken.gguf');
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(model.connect(), { message: 'not a GGUF file' });
  }
});

test('what is missing is said with what to do about it', (t) => {
  const directory = temporaryDirectory(t);
  const of = (path: string) =>
    new LocalModelProcess({
      path,
      python: join(directory, 'python'),
      script: STAND_IN,
      runDir: directory,
      contextTokens: 512,
      environment: {},
      log: openLog({ level: 'silent' }),
    }).lacks();
  const path = join(directory, 'tiny.gguf');
  assert.equal(of(path), `there is no file ${path}.`);
  writeFileSync(path, '');
  assert.equal(of(path), 'run `troupe models add-local` once.');
});

test('disposing ends the process', async (t) => {
  const { model, ended } = localModel(t);
  await ask(model, 'Hello');
  model[Symbol.dispose]();
  await ended();
  await assert.rejects(model.connect(), { message: 'The server is stopping.' });
});
