import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import { sharedDocument } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Returns the path below the server's address at which the front end of this marimo version is served. */
export function frontEndPath(version: string): string {
  return `/marimo/${version}`;
}

/** The files of marimo's front end. */
export function frontEndRoutes(files: FrontEndFiles): readonly Route[] {
  const common = {
    description:
      "A file of marimo's front end, for HTML pages that were exported from notebooks. Such pages can be opened from " +
      'anywhere, including from a local file, so pages of any origin may load this file.',
    tags: ['Front end'],
    access: 'public',
    isUndocumented: true,
  } as const;
  return [
    defineRoute({
      ...OPERATIONS.getFrontEndFile,
      ...common,
      summary: 'Read a file of the front end',
      handle: ({ params }) => answer(files, params.version, params.file),
    }),
    defineRoute({
      ...OPERATIONS.getFrontEndAsset,
      ...common,
      summary: 'Read an asset of the front end',
      handle: ({ params }) => answer(files, params.version, `assets/${params.file}`),
    }),
  ];
}

async function answer(files: FrontEndFiles, version: string, name: string) {
  const { contentType, bytes, shared } = await files.read(version, name);
  return sharedDocument(contentType, bytes, shared, {
    'cache-control': 'public, max-age=31536000, immutable',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  });
}
