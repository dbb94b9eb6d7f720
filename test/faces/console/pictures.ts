/**
 * `npm run pictures`: takes the pictures of the console, of the list of notebooks and of a notebook's page that the documentation shows,
 * in Chromium, from a server that works.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { NARROW, notebookIn, openBrowser, WIDE } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const FOLDER = join('docs', 'images');

const cleanUps: (() => Promise<void>)[] = [];
const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.push(cleanUp) };

mkdirSync(FOLDER, { recursive: true });
try {
  const model = await startScriptedModel(owner);
  const server = await startServer(owner, {
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  });
  const sales = await openNotebook(
    server,
    {
      load: "import pandas as pd\nsales = pd.DataFrame({'region': ['north', 'south', 'east', 'west'], 'amount': [120.5, 98.0, 143.2, 77.9]})\nsales",
      total: "print('adding', len(sales), 'regions')\nsales.amount.sum()",
      plot: 'import matplotlib.pyplot as plt\nfig, ax = plt.subplots(figsize=(6, 2.4))\nax.bar(sales.region, sales.amount)\nfig',
    },
    { title: 'Sales of the quarter' },
  );
  await sales.run([]);
  const training = await openNotebook(
    server,
    { train: "import time\nweights = b'w' * 400_000_000\nfor epoch in range(100_000):\n    time.sleep(0.1)" },
    { title: 'Training' },
  );
  const broken = await openNotebook(server, { ratio: '1 / 0' }, { title: 'Ratios' });
  await broken.run([]);
  await training.submit([]);

  const browser = await openBrowser(owner);
  const { page } = await browser.signIn(server);
  const take = async (name: string, path: string, shown: string) => {
    await page.evaluate(`location.hash = '#/ws_home/${path}'`);
    await page.getByText(shown).first().waitFor();
    // A processor time needs two readings, and a line three.
    await page.waitForTimeout(7_000);
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  };
  await page.getByText('Nothing was refused').waitFor();
  await training.submit([]).catch(() => {});
  await take('console-overview', 'overview', 'Running longest');
  await page.setViewportSize({ ...WIDE, height: 1_500 });
  await take('console-actor', `actors/notebook-session/${training.id}`, 'session_busy');
  await page.setViewportSize({ ...WIDE, height: 1_000 });
  await take('console-session', `sessions/${sales.id}`, 'amount');
  await page.setViewportSize(NARROW);
  await page.emulateMedia({ colorScheme: 'dark' });
  await take('console-phone', 'overview', 'Running longest');
  await page.close();

  const north = await openNotebook(
    server,
    {
      imports: 'import marimo as mo\nimport numpy as np\nimport pandas as pd\nimport altair as alt',
      days: 'days = mo.ui.slider(7, 90, value=30, label="days")\ndays',
      data: 'noise = np.random.default_rng(7).normal(0, 8, days.value).cumsum()\nsales = pd.DataFrame({"day": range(days.value), "sales": (200 + noise).round(1)})\nsales.tail(3)',
      chart:
        'alt.Chart(sales).mark_area(opacity=0.5, line=True).encode(x="day", y="sales").properties(width=700, height=140)',
    },
    { title: 'Sales of the north' },
  );
  await north.run({ type: 'all' });
  const [ada, ben] = [await addMember(server, 'ada', 'editor'), await addMember(server, 'ben', 'viewer')];
  await server.client.members.update('ada', { name: 'Ada' });
  await server.client.members.update('ben', { name: 'Ben' });
  for (const { client } of [ada, ben]) {
    const page = await NotebookPageClient.open(client, server.baseUrl, north.id);
    await page.follow();
    cleanUps.push(() => page[Symbol.asyncDispose]());
  }
  await ada.client.agentSessions.open({ environmentId: north.environmentId, notebookSessionId: north.id });
  const { url } = await server.client.notebookSessions.page(north.id);
  const { page: notebook } = await browser.openPath(server, url);
  await notebook.setViewportSize({ ...WIDE, height: 940 });
  await notebook.emulateMedia({ colorScheme: 'light' });
  await notebookIn(notebook).locator('#output-chart canvas, #output-chart svg').first().waitFor();
  const thumb = notebookIn(notebook).locator('#output-days [role="slider"]');
  await thumb.focus();
  for (let i = 0; i < 5; i++) await thumb.press('ArrowRight');
  await notebookIn(notebook).locator('#output-data').getByText('34', { exact: true }).first().waitFor();
  await notebook.waitForTimeout(2_000); // the chart moves to its new size
  await notebook.screenshot({ path: join(FOLDER, 'notebook.png') });
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
