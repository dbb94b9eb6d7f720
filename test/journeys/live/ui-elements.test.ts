/** Values of UI elements, calls of their functions, and completions, by the API. */
import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import { addMember } from '#test/support/members.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { type RawAnswer, sendRaw } from '#test/support/raw-request.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl, owner } = server;
const { notebookSessions } = client;

const SLIDER = {
  imports: 'import marimo as mo',
  slider: 'n = mo.ui.slider(1, 50, value=5)\nn',
  square: 'print(n.value ** 2)\nn.value ** 2',
};

async function elementOf(notebook: OpenNotebook, name = 'n'): Promise<string> {
  const { stdout } = await callCode(client, notebook.id, `print(${name}._id)`);
  return stdout.trim();
}

async function openSlider(more = {}, options = {}): Promise<{ notebook: OpenNotebook; slider: string }> {
  const notebook = await openNotebook(server, { ...SLIDER, ...more }, options);
  await notebook.run([]);
  return { notebook, slider: 'slider-0' };
}

test('a new value of an element runs its dependent cells, which the answer names; their outputs are kept, and no run is recorded', async () => {
  const { notebook, slider } = await openSlider();
  assert.equal(await elementOf(notebook), slider);
  await using events = await notebook.events();
  const result = await notebookSessions.setUiValues(notebook.id, { values: { [slider]: 8 } });
  assert.deepEqual(result, {
    sessionId: notebook.id,
    status: 'completed',
    cells: [{ cellId: 'square', status: 'success' }],
    unknown: [],
    failures: [],
    error: null,
  });
  assert.equal((await callCode(client, notebook.id, 'print(n.value)')).stdout, '8\n');
  await events.until(
    ({ type, data }) => type === 'console-output' && data.cellId === 'square' && data.text.startsWith('64'),
  );
  assert.equal((await client.executions.list(notebook.id)).items.length, 1);
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
  const { bytes } = await client.notebooks.export(notebook.id, 'ipynb');
  assert.match(Buffer.from(bytes).toString(), /64/, 'the output is kept');
});

test('open pages show a value that a program has set, and pages that open later begin with this value', async () => {
  const { notebook, slider } = await openSlider();
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await notebookSessions.setUiValues(notebook.id, { values: { [slider]: 9 } });
  const told = await page.next(({ op }) => op === 'send-ui-element-message');
  assert.deepEqual([told.ui_element, Object(told.message).value], [slider, 9]);
  await using later = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.deepEqual((await later.follow()).ui_values, { [slider]: 9 });
  await notebook.run(['slider']);
  await using last = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.deepEqual((await last.follow()).ui_values, {}, 'a cell that runs makes its elements anew');
  await notebook.close();
});

test('the answer names unknown elements and dependent cells that failed, and all other values are set', async () => {
  const { notebook, slider } = await openSlider({ fails: 'assert n.value < 7' });
  const result = await notebookSessions.setUiValues(notebook.id, {
    values: { 'gone-0': 1, [slider]: 7 },
  });
  assert.equal(result.status, 'failed');
  assert.deepEqual(result.unknown, ['gone-0']);
  assert.deepEqual(result.cells.map(({ cellId, status }) => `${cellId} ${status}`).sort(), [
    'fails error',
    'square success',
  ]);
  await notebook.close();
});

test('when an element refuses its value, the answer names the element and the reason, and the other values are set', async () => {
  const choice = "d = mo.ui.dropdown(['low', 'high'], value='low')\nd";
  const handled = 'def fail(value): raise RuntimeError("r" * 5000)\nh = mo.ui.text(on_change=fail)\nh';
  const group = "g = mo.ui.array([mo.ui.dropdown(['a', 'b'])])\ng";
  const { notebook, slider } = await openSlider({ choice, handled, group });
  const set = (values: Record<string, unknown>) => notebookSessions.setUiValues(notebook.id, { values });
  assert.equal((await set({ 'choice-0': ['high'] })).status, 'completed');
  const result = await set({ 'choice-0': ['none'], [slider]: 8, 'handled-0': 'x' });
  assert.equal(result.status, 'failed');
  const [choiceFailure, handlerFailure, ...others] = result.failures;
  assert.deepEqual([choiceFailure?.elementId, choiceFailure?.isSet, others], ['choice-0', false, []]);
  assert.match(choiceFailure?.reason ?? '', /^ValueError: .*none.*low/s);
  assert.deepEqual([handlerFailure?.elementId, handlerFailure?.isSet], ['handled-0', true]);
  assert.match(handlerFailure?.reason ?? '', /^RuntimeError: r{400,}/);
  assert.ok((handlerFailure?.reason.length ?? 0) <= 500);
  assert.ok(result.cells.some(({ cellId, status }) => cellId === 'square' && status === 'success'));
  const values = await callCode(client, notebook.id, 'print(n.value, d.value, h.value)');
  assert.equal(values.stdout, '8 high x\n');
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.deepEqual((await page.follow()).ui_values, { 'choice-0': ['high'], [slider]: 8, 'handled-0': 'x' });

  const text = await set({ [slider]: 'many' });
  assert.deepEqual([text.status, text.failures.map(({ elementId }) => elementId)], ['failed', [slider]]);
  const inner = await elementOf(notebook, 'g[0]');
  for (const _ of ['first', 'again']) {
    const { status, failures } = await set({ [inner]: ['c'] });
    assert.deepEqual([status, failures.map(({ elementId }) => elementId)], ['failed', [inner]]);
  }
  await notebook.close();
});

test('values of elements wait for a run in progress, and are applied in the order of arrival', async () => {
  const wait = "import os, time\nwhile not os.path.exists('run-may-end'): time.sleep(0.01)";
  const { notebook, slider } = await openSlider();
  await using events = await notebook.events();
  await notebookSessions.change(notebook.id, {
    changes: [{ type: 'create-cell', cellId: 'wait', code: wait }],
  });
  const runId = await notebook.submit(['wait']);
  await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'wait' && data.status === 'running',
  );
  const waiting = [10, 11, 12].map((value) =>
    notebookSessions.setUiValues(notebook.id, { values: { [slider]: value } }),
  );
  const health = await notebookSessions.complete(notebook.id, {
    code: 'import math\nmath.sq',
    cellId: 'imports',
  });
  assert.ok(
    health.options.some(({ name }) => name === 'sqrt'),
    'code is completed while the session is busy',
  );
  writeFileSync(join(server.filesDir, 'run-may-end'), '');
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 'completed');
  assert.equal((await callCode(client, notebook.id, 'print(n.value)')).stdout, '12\n');
  await notebook.close();
});

test('a hundred requests may wait for a busy session, one more is refused, and all waiting requests are carried out afterwards', async () => {
  const wait = "import os, time\nwhile not os.path.exists('hundred-may-go'): time.sleep(0.01)";
  const { notebook, slider } = await openSlider();
  await notebookSessions.change(notebook.id, {
    changes: [{ type: 'create-cell', cellId: 'wait', code: wait }],
  });
  const runId = await notebook.submit(['wait']);
  const path = `/api/v3/notebook-sessions/${notebook.id}/ui-values`;
  let refuse = (_: RawAnswer) => {};
  const refused = new Promise<RawAnswer>((resolve) => {
    refuse = resolve;
  });
  const requests = Array.from({ length: 101 }, async (_, at) => {
    const body = { values: { [slider]: (at % 50) + 1 } };
    const answer = await sendRaw(baseUrl, 'POST', path, owner, { body });
    if (answer.status !== 200) refuse(answer);
    return answer.status;
  });
  const { status, headers } = await refused;
  assert.deepEqual([status, headers['retry-after']], [429, '1']);
  writeFileSync(join(server.filesDir, 'hundred-may-go'), '');
  const statuses = await Promise.all(requests);
  assert.deepEqual(statuses.sort(), [...Array.from({ length: 100 }, () => 200), 429]);
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  await notebook.close();
});

test('work that a new value of an element causes is interrupted at its deadline, and by an interrupt of the session', async () => {
  const slow = 'import time\nif n.value > 5:\n    for _ in range(6000): time.sleep(0.01)';
  const { notebook, slider } = await openSlider({ slow });
  const late = await notebookSessions.setUiValues(notebook.id, { values: { [slider]: 6 }, timeoutS: 1 });
  assert.deepEqual([late.status, late.error?.code], ['failed', 'timed_out']);
  assert.deepEqual(
    late.cells.find(({ cellId }) => cellId === 'slow'),
    { cellId: 'slow', status: 'interrupted' },
  );
  await using events = await notebook.events();
  const running = notebookSessions.setUiValues(notebook.id, { values: { [slider]: 7 } });
  await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'slow' && data.status === 'running',
  );
  assert.equal(await refusalOf(notebook.submit([])), '409 session_busy');
  await notebookSessions.interrupt(notebook.id);
  assert.equal((await running).status, 'cancelled');
  await notebook.close();
});

const FUNCTIONS = `
import asyncio, dataclasses, time
import marimo as mo
from marimo._runtime.context import get_context
from marimo._runtime.functions import Function
element = mo.ui.text()
@dataclasses.dataclass
class Args:
    n: int = 0
def add(args): return {"sum": args.n + 1}
def fail(args): raise ValueError("not today")
def large(args): return "x" * args.n
def slow(args):
    # It says that it has begun only at a point where it already notices an interrupt.
    try:
        open("began", "w").close()
        for _ in range(6000): time.sleep(0.01)
    except KeyboardInterrupt:
        open("interrupted", "w").close()
        raise
async def slow_coroutine(args):
    for _ in range(6000): await asyncio.sleep(0.01)
def die(args):
    import os
    os._exit(3)
for one in (add, fail, large, slow, slow_coroutine, die):
    get_context().function_registry.register(element._id, Function(one.__name__, Args, one))
element`;

test('a function of an element is called and its value returned; errors of the function and of the kernel are results with success false', async () => {
  const notebook = await openNotebook(server, { a: FUNCTIONS });
  await notebook.run([]);
  const namespace = await elementOf(notebook, 'element');
  const call = (functionName: string, n = 0, timeoutS?: number) =>
    notebookSessions.callFunction(notebook.id, {
      namespace,
      functionName,
      args: { n },
      ...(timeoutS === undefined ? {} : { timeoutS }),
    });
  assert.deepEqual(await call('add', 41), { success: true, value: { sum: 42 }, error: null });
  const failed = await call('fail');
  assert.deepEqual([failed.success, failed.value, failed.error?.type], [false, null, 'function_failed']);
  assert.match(failed.error?.message ?? '', /not today/);
  assert.equal((await call('nothing')).error?.type, 'function_not_found');
  const largest = 4 * 2 ** 20 - 2; // with its quotes
  assert.equal(String((await call('large', largest - 1000)).value).length, largest - 1000);
  assert.equal((await call('large', largest + 1000)).error?.type, 'result_too_large');
  assert.equal((await call('large', 70 * 2 ** 20)).error?.type, 'result_too_large');
  const pid = () => callCode(client, notebook.id, 'import os\nprint(os.getpid())');
  const { stdout: kernel } = await pid();
  for (const slow of ['slow', 'slow_coroutine'])
    assert.equal((await call(slow, 0, 1)).error?.type, 'timed_out', slow);
  assert.equal((await pid()).stdout, kernel, 'the kernel goes on');
  assert.equal((await client.executions.list(notebook.id)).items.length, 1);
  assert.equal((await call('die')).error?.type, 'kernel_exited');
  await notebookSessions.waitUntilReady(notebook.id);
  assert.equal(
    (await call('add')).error?.type,
    'function_not_found',
    'its cell has not run in the new kernel',
  );
  await notebook.close();
});

test('a function is interrupted when its caller leaves', async () => {
  const notebook = await openNotebook(server, { a: FUNCTIONS });
  await notebook.run([]);
  const namespace = await elementOf(notebook, 'element');
  rmSync(join(server.filesDir, 'began'), { force: true });
  const abort = new AbortController();
  const call = { namespace, functionName: 'slow', args: {} };
  const left = notebookSessions.callFunction(notebook.id, call, { signal: abort.signal });
  await eventually('the function runs', () => existsSync(join(server.filesDir, 'began')));
  rmSync(join(server.filesDir, 'interrupted'), { force: true });
  abort.abort();
  await assert.rejects(left);
  await eventually('the function ends', () => existsSync(join(server.filesDir, 'interrupted')));
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  await notebook.close();
});

test('completions of code know the values of the notebook, and twenty simultaneous requests are all answered', async () => {
  const notebook = await openNotebook(server, { a: 'import math\nwidth_of_the_page = 3' });
  await notebook.run([]);
  const complete = (code: string) => notebookSessions.complete(notebook.id, { code, cellId: 'b' });
  const { options, prefixLength, isIncomplete } = await complete('x = width_of');
  assert.deepEqual(
    [options.map(({ name }) => name), prefixLength, isIncomplete],
    [['width_of_the_page'], 8, false],
  );
  assert.deepEqual(await complete(''), { prefixLength: 0, options: [], isIncomplete: false });
  const answers = await Promise.all(Array.from({ length: 20 }, () => complete('math.sqr')));
  for (const answer of answers)
    assert.deepEqual(
      answer.options.map(({ name }) => name),
      ['sqrt'],
    );
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
});

test('requests of viewers and requests for closed or unknown sessions are refused; a session in run mode accepts requests', async () => {
  const viewer = await addMember(server, 'vera', 'viewer');
  const { notebook, slider } = await openSlider({}, { mode: 'run' });
  const calls = (id: string, { notebookSessions: sessions } = client) => [
    sessions.setUiValues(id, { values: { [slider]: 3 } }),
    sessions.callFunction(id, { namespace: slider, functionName: 'f', args: {} }),
    sessions.complete(id, { code: 'n' }),
  ];
  assert.deepEqual(await tally(calls(notebook.id, viewer.client)), { '403 role_too_low': 3 });
  assert.deepEqual(await tally(calls('nb_00000000000000000000000000')), { '404 not_found': 3 });
  assert.deepEqual(await tally(calls(notebook.id)), { ok: 3 });
  await notebook.close();
  assert.deepEqual(await tally(calls(notebook.id)), { '409 session_closed': 3 });
});

test('malformed requests and requests beyond the limits are refused with a reason', async () => {
  const { notebook, slider } = await openSlider();
  const values = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`e-${at}`, 1]));
  const send = async (path: string, body: unknown) =>
    (await sendRaw(baseUrl, 'POST', `/api/v3/notebook-sessions/${notebook.id}/${path}`, owner, { body }))
      .status;
  for (const body of [
    {},
    { values: [] },
    { values: values(1001) },
    { values: { ['x'.repeat(501)]: 1 } },
    { values: {}, timeoutS: 0 },
  ])
    assert.equal(await send('ui-values', body), 400, JSON.stringify(body).slice(0, 80));
  assert.equal(
    (await notebookSessions.setUiValues(notebook.id, { values: values(1000) })).unknown.length,
    1000,
  );
  const call = { namespace: slider, functionName: 'f', args: {} };
  for (const body of [
    {},
    { ...call, args: [] },
    { ...call, timeoutS: 3601 },
    { ...call, functionName: '' },
    { ...call, more: 1 },
  ])
    assert.equal(await send('function-calls', body), 400, JSON.stringify(body));
  for (const body of [{}, { code: 1 }, { code: 'x'.repeat(500_001) }])
    assert.equal(await send('completions', body), 400, JSON.stringify(body).slice(0, 80));
  assert.equal(await send('completions', { code: '#'.repeat(500_000) }), 200);
  assert.equal(await send('ui-values', { values: { [slider]: 'x'.repeat(1024 * 1024) } }), 413);
  await notebook.close();
});

test('a request that is repeated with its key sets values once, and calls a function once', async () => {
  const { notebook, slider } = await openSlider({ count: 'print(n.value)\nopen("runs", "a").write("x")' });
  const set = () =>
    notebookSessions.setUiValues(notebook.id, { values: { [slider]: 4 } }, { idempotencyKey: 'set-once' });
  const first = await set();
  await notebookSessions.setUiValues(notebook.id, { values: { [slider]: 5 } });
  assert.deepEqual(await set(), first);
  assert.equal((await callCode(client, notebook.id, 'print(n.value)')).stdout, '5\n');
  await notebook.close();
});
