import type { FrontEndFiles } from '#src/notebook/front-end-files.ts';
import { raw } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Where a page finds the front end of this marimo, below the server's address. */
export function frontEndPath(version: string): string {
  return `/marimo/${version}`;
}

export function frontEndRoutes(files: FrontEndFiles): readonly Route[] {
  const common = {
    method: 'GET',
    description:
      "A file of marimo's front end, for pages that were exported from a notebook. Those are opened from anywhere, a " +
      'disk included, so any page may load it.',
    tags: ['Front end'],
    access: 'public',
    responses: { 200: { description: 'The file. It never changes.', contentType: '*/*' } },
  } as const;
  return [
    defineRoute({
      ...common,
      path: '/marimo/:version/:file',
      operationId: 'getFrontEndFile',
      summary: 'Read a file of the front end',
      handle: ({ params }) => answer(files, params.version, params.file),
    }),
    defineRoute({
      ...common,
      path: '/marimo/:version/assets/:file',
      operationId: 'getFrontEndAsset',
      summary: 'Read an asset of the front end',
      handle: ({ params }) => answer(files, params.version, `assets/${params.file}`),
    }),
  ];
}

async function answer(files: FrontEndFiles, version: string, name: string) {
  const { contentType, bytes } = await files.read(version, name);
  return raw(contentType, bytes, {
    'cache-control': 'public, max-age=31536000, immutable',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  });
}
