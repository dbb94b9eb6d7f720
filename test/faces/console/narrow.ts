import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { NARROW } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Stage } from './stage.ts';

const VIEWS = [
  ...['overview', 'actors', 'sessions', 'kernels', 'runs', 'streams', 'agents', 'files', 'datasources'],
  ...['people', 'people/tokens', 'keys', 'audit'],
];

export async function narrow(t: TestContext, { server, browser }: Stage): Promise<void> {
  const notebook = await openNotebook(server, { wide: "print('x' * 2000)\n'y' * 2000" });
  const run = await notebook.run([]);
  const { page, complaints } = await browser.signIn(server);
  await page.setViewportSize(NARROW);

  await t.test('no view is wider than the screen', async () => {
    const own = [`actors/notebook-session/${notebook.id}`, `sessions/${notebook.id}`, `runs/${run.id}`];
    for (const view of [...VIEWS, ...own]) {
      await page.evaluate(`location.hash = '#/ws_home/${view}'`);
      await page.locator('main h1').waitFor();
      await page.locator('.loading').waitFor({ state: 'detached' });
      const width = await page.evaluate<number>(
        "Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth)",
      );
      assert.ok(width <= NARROW.width, `${view}: ${width} px`);
    }
  });

  await t.test('on a narrow screen the views are in a menu, which a choice closes', async () => {
    const views = page.getByRole('navigation', { name: 'Views' });
    assert.equal(await views.isVisible(), false);
    await page.getByRole('button', { name: 'Views' }).click();
    await views.getByRole('link', { name: 'Kernels' }).click();
    await page.getByRole('heading', { level: 1, name: 'Kernels' }).waitFor();
    assert.equal(await views.isVisible(), false);
  });

  assert.deepEqual(complaints, []);
  await Promise.all([notebook.close(), page.close()]);
}
