import Type from 'typebox';
import { createOpenApi, type OpenApiOptions } from '../openapi.ts';
import { encodedJson } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** All routes and one more: the description of them all, itself included. Made on the first request for it. */
export function withOpenApi(routes: readonly Route[], options: OpenApiOptions): readonly Route[] {
  let bytes: Buffer | undefined;
  const all: readonly Route[] = [
    ...routes,
    defineRoute({
      method: 'GET',
      path: '/api/v3/openapi.json',
      operationId: 'getOpenApi',
      summary: 'This interface as an OpenAPI 3.1 document',
      tags: ['Server'],
      access: 'public',
      responses: {
        200: {
          description: 'The document.',
          schema: Type.Unsafe<object>({ type: 'object', required: ['openapi', 'paths'] }),
        },
      },
      handle() {
        bytes ??= Buffer.from(JSON.stringify(createOpenApi(all, options)));
        return encodedJson(bytes);
      },
    }),
  ];
  return all;
}
