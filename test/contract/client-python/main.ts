/** `npm run python-client` writes the generated files of the Python client: the models and the synchronous client. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDocument } from '#test/openapi/real-document.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { PACKAGE, writeModels, writeSync } from './python.ts';

const cleanUps: (() => Promise<void>)[] = [];
const folder = mkdtempSync(join(tmpdir(), 'troupe-python-'));
try {
  const server = await startServer({ after: (cleanUp) => void cleanUps.push(cleanUp) });
  await writeModels(await readDocument(server), join(PACKAGE, 'troupe_client/models.py'), folder);
  await writeSync(join(PACKAGE, 'troupe_client/_sync'));
} finally {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  rmSync(folder, { recursive: true, force: true });
}
