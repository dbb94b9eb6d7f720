/**
 * llama.cpp itself, with a model file that the test makes. Outside of CI it is skipped without the package that `troupe models
 * add-local` installs.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { askModel } from '#src/agent/models/model-call.ts';
import { openLog } from '#src/base/log/log.ts';
import { LocalModelProcess } from '#src/confined/processes/children/local-model.ts';
import { ConnectedModel } from '#src/confined/processes/children/local-model-connection.ts';
import { descendants } from '#test/support/processes.ts';
import { tinyGguf } from '#test/support/stand-ins/tiny-gguf.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { startTestHost } from './kernel-fixture.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const INSTALLED = join(ROOT, '.venv-local-model', 'bin', 'python');
const skip =
  existsSync(INSTALLED) || process.env.CI === 'true'
    ? false
    : 'run `troupe models add-local` to test llama.cpp itself';

interface Tiny {
  readonly model: LocalModelProcess;
  /** Resolves when the end of the process was noticed. */
  readonly ended: Promise<void>;
}

async function tinyModel(t: TestContext, content: Buffer = tinyGguf()): Promise<Tiny> {
  const host = await startTestHost();
  t.after(() => host[Symbol.asyncDispose]());
  let tellEnd = () => {};
  const ended = new Promise<void>((resolve) => {
    tellEnd = resolve;
  });
  const directory = temporaryDirectory(t);
  const path = join(directory, 'tiny.gguf');
  writeFileSync(path, content);
  const model = new LocalModelProcess({
    host: host.host,
    path,
    script: join(ROOT, 'src', 'confined', 'python', 'local_model.py'),
    contextTokens: 4_096,
    memoryBytes: null,
    log: openLog({
      level: 'info',
      destination: { write: (line) => void (line.includes('has ended') && tellEnd()) },
    }),
  });
  t.after(() => model[Symbol.dispose]());
  assert.equal(model.lacks(), undefined);
  return { model, ended };
}

interface Ask {
  readonly maxOutputTokens?: number;
  readonly signal?: AbortSignal;
  /** Called with the whole output so far, each time there is more. */
  readonly onText?: (heard: string) => void;
}

async function ask(model: LocalModelProcess, { maxOutputTokens = 8, signal, onText = () => {} }: Ask = {}) {
  let heard = '';
  let pieces = 0;
  const connection = await new ConnectedModel(model, () => model.start()).connect();
  const answer = await askModel({
    target: { provider: 'local', name: model.name, baseUrl: 'http://local/v1', ...connection },
    id: 'local/tiny',
    system: 'Say words.',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Go on.' }] }],
    tools: [{ name: 'look', description: 'Look.', schema: { type: 'object', properties: {} } }],
    maxOutputTokens,
    silenceMs: 30_000,
    signal: signal ?? new AbortController().signal,
    onText: (text) => {
      heard += text;
      pieces++;
      onText(heard);
    },
    onReasoning: () => {},
  });
  return { heard, pieces, answer };
}

const THOUSANDS = 3_000;

test('llama.cpp loads a file, streams its answer and reports its use of tokens', { skip }, async (t) => {
  const { heard, pieces, answer } = await ask((await tinyModel(t)).model);
  assert.match(heard, /^( ?[a-z]+)+$/);
  assert.ok(pieces > 1, `${pieces} pieces`);
  assert.deepEqual([answer.finish, answer.usage.outputTokens], ['length', 8]);
  assert.ok(answer.usage.inputTokens > 0);
});

test('an abort ends the answer of llama.cpp, and the next question is answered', { skip }, async (t) => {
  const { model } = await tinyModel(t);
  const abort = new AbortController();
  const talk = ask(model, { maxOutputTokens: THOUSANDS, signal: abort.signal, onText: () => abort.abort() });
  await assert.rejects(talk, { name: 'AbortError' });
  assert.equal((await ask(model)).answer.finish, 'length');
});

test('when llama.cpp is killed during an answer, the answer breaks off, and the next question starts it again', {
  skip,
}, async (t) => {
  const { model, ended } = await tinyModel(t);
  let isKilled = false;
  const talk = ask(model, {
    maxOutputTokens: THOUSANDS,
    onText: () => {
      if (isKilled) return;
      isKilled = true;
      for (const { pid } of descendants(process.pid)) {
        if (readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('local_model.py'))
          process.kill(pid, 'SIGKILL');
      }
    },
  });
  await assert.rejects(talk, { name: 'ModelFailure', message: 'The answer of local/tiny broke off.' });
  await ended;
  assert.equal((await ask(model)).answer.finish, 'length');
});

test('a file that is not a model is refused in one line', { skip }, async (t) => {
  const message = /^llama\.cpp does not take .*tiny\.gguf: it is no GGUF file/;
  const { model } = await tinyModel(t, Buffer.from('no model'));
  await assert.rejects(model.start(), { message });
});
