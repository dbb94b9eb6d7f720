/** Files of the folder `public` for tests. */
import type { TestServer } from './server-fixture.ts';

export const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
export const DRAWING =
  '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="20" height="20"/></svg>';

/** Stores pictures, a page with a script and a table in the folder `public` of the workspace. */
export async function putPublicFiles({ client }: Pick<TestServer, 'client'>): Promise<void> {
  await client.files.put('public/dot.png', PICTURE);
  await client.files.put('public/in a folder/dot.png', PICTURE);
  await client.files.put('public/in a folder/drawing.svg', Buffer.from(DRAWING));
  await client.files.put('public/page.html', Buffer.from('<script>alert(1)</script>'));
  await client.files.put('public/data.csv', Buffer.from('x,y\n1,2\n'));
}
