/**
 * `npm run pictures`: takes the pictures of the console that the documentation shows, in Chromium, from a server that works.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { NARROW, openBrowser, WIDE } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const FOLDER = join('docs', 'images');

const cleanUps: (() => Promise<void>)[] = [];
const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.push(cleanUp) };

mkdirSync(FOLDER, { recursive: true });
try {
  const server = await startServer(owner);
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
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
