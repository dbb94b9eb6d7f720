/** Widgets of anywidget in the page of a live session: each message of the page to a widget ends, and its new state is in all pages. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { pythonWithLibraries } from '#test/support/python-with-libraries.ts';
import { startServer } from '#test/support/server-fixture.ts';

const { python, absence } = pythonWithLibraries();
const server = await startServer(test, { ...(absence ? {} : { TROUPE_PYTHON: python }) });
const { client, baseUrl } = server;

const CELLS = {
  make: `import anywidget, traitlets, marimo as mo
class Counter(anywidget.AnyWidget):
    _esm = """
    function render({ model, el }) {
      const button = document.createElement("button");
      const show = () => { button.textContent = "clicked " + model.get("count") + " times"; };
      button.onclick = () => { model.set("count", model.get("count") + 1); model.save_changes(); };
      model.on("change:count", show);
      show();
      el.append(button);
    }
    export default { render };
    """
    count = traitlets.Int(3).tag(sync=True)
    picture = traitlets.Bytes(b"abc").tag(sync=True)
    def __init__(self):
        super().__init__()
        self.on_msg(lambda widget, content, buffers: self.send({"heard": content}))
w = mo.ui.anywidget(Counter())
w`,
  value: 'print("value", w.value["count"], w.picture)',
};

/** Opens the notebook, and resolves once its cells have run. */
async function openCounter(): Promise<OpenNotebook> {
  const notebook = await openNotebook(server, CELLS);
  const { runId } = await client.executions.submit(notebook.id, { type: 'all' });
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  return notebook;
}

const becomesReady = (notebook: OpenNotebook) =>
  eventually('the session is ready', async () => (await notebook.record()).status === 'ready');

const hasPrinted = (text: string) => (message: Readonly<Record<string, unknown>>) =>
  message.op === 'cell-op' && JSON.stringify(message.console ?? null).includes(text);

test('a change of a widget runs its dependent cells, and present and later pages get the state of the widget', {
  skip: absence,
}, async () => {
  const notebook = await openCounter();
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using other = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await other.follow();
  const opened = await page.next(({ message }) => Object(Object(message).state).count === 3);
  const modelId = opened.model_id;
  await page.do('kernel/set_model_value', {
    modelId,
    message: { method: 'update', state: { count: 4, picture: null }, bufferPaths: [['picture']] },
    buffers: [Buffer.from('xyz').toString('base64')],
  });
  await page.next(hasPrinted("value 4 b'xyz'"));
  await becomesReady(notebook);
  const told = await other.next(
    ({ op, message }) => op === 'model-lifecycle' && Object(message).method === 'update',
  );
  assert.deepEqual([told.model_id, Object(told.message).state], [modelId, { count: 4, picture: null }]);
  assert.ok(!page.messages.some(({ message }) => Object(message).method === 'update'), 'not its own change');
  await page.do('kernel/set_model_value', {
    modelId,
    message: { method: 'custom', content: 'hello' },
    buffers: [],
  });
  const heard = ({ message }: Readonly<Record<string, unknown>>) =>
    Object(Object(message).content).heard === 'hello';
  await page.next(heard);
  await becomesReady(notebook);
  await using later = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await later.follow();
  const state = await later.next(({ op, model_id }) => op === 'model-lifecycle' && model_id === modelId);
  const { method, state: shown, buffers } = Object(state.message);
  assert.deepEqual([method, shown.count, buffers], ['open', 4, [Buffer.from('xyz').toString('base64')]]);
  await notebook.close();
});

test('work for a message to a missing widget, or for a malformed message, ends like any other work', {
  skip: absence,
}, async () => {
  const notebook = await openCounter();
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  const messages = [
    { method: 'update', state: { count: 1 }, bufferPaths: [[]] },
    { method: 'update', state: {}, bufferPaths: [] },
    { method: 'custom', content: null },
    { method: 'nonsense' },
  ];
  for (const message of messages)
    await page.do('kernel/set_model_value', { modelId: 'gone', message, buffers: [] });
  await page.do('kernel/run', { cellIds: ['value'], codes: ['print("after", w.count)'] });
  await page.next(hasPrinted('after 3'));
  await becomesReady(notebook);
  await notebook.close();
});

test('in a browser a click in a widget counts, the dependent cell shows the count, and a reload keeps the count', {
  skip: absence || withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openCounter();
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  const cell = (id: string) => notebookIn(page).locator(`#cell-${id}`);
  const button = notebookIn(page).getByRole('button', { name: /clicked \d+ times/ });
  await button.click();
  await cell('value').getByText('value 4').first().waitFor();
  await button.click();
  await cell('value').getByText('value 5').first().waitFor();
  await becomesReady(notebook);
  await page.reload();
  await button.getByText('clicked 5 times').waitFor();
  await notebook.close();
});
