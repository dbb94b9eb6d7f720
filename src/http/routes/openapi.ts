import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { createOpenApi, type OpenApiOptions } from '../openapi/document.ts';
import { sharedDocument } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/**
 * Returns the routes together with one that serves their OpenAPI document. The document is made on
 * first request.
 */
export function withOpenApi(routes: readonly Route[], options: OpenApiOptions): readonly Route[] {
  let bytes: Buffer | undefined;
  const shared = {};
  const all: readonly Route[] = [
    ...routes,
    defineRoute({
      ...OPERATIONS.getOpenApi,
      summary: 'Read the OpenAPI 3.1 document of this API',
      description: 'The document describes this version of the server. Generators can make clients from it.',
      tags: ['Server'],
      access: 'public',
      handle() {
        bytes ??= Buffer.from(JSON.stringify(createOpenApi(all, options)));
        return sharedDocument('application/json', bytes, shared);
      },
    }),
  ];
  return all;
}
