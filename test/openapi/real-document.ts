/** The OpenAPI document of a running server, for tests that look at all of it. */
import type { OpenApiDocument } from '#src/http/openapi/document.ts';
import type { TestServer } from '#test/support/server-fixture.ts';

/** Any JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** One operation of the document. */
export interface Operation {
  readonly path: string;
  readonly method: string;
  readonly operation: Json;
}

/** Resolves with the document that the server serves. */
export async function readDocument(server: TestServer): Promise<OpenApiDocument> {
  return (await server.request('GET', '/api/v3/openapi.json')).body as OpenApiDocument;
}

/** Returns all operations. */
export function operationsOf(document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

/** Calls `visit` with every object in a value, and with the JSON pointer to it. */
export function everyObject(
  value: unknown,
  visit: (object: Json, pointer: string) => void,
  pointer = '',
): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(asObject(value), pointer);
  for (const [name, member] of Object.entries(value)) everyObject(member, visit, `${pointer}/${name}`);
}

/** Returns the value as an object; one that is none as an empty object. */
export function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** Returns the schema of the JSON body of an operation, if it takes one. */
export function bodySchemaOf({ operation }: Operation): Json | undefined {
  const media = asObject(asObject(asObject(operation.requestBody).content)['application/json']);
  return operation.requestBody === undefined ? undefined : asObject(media.schema);
}

/** Returns the component that a reference names, or the schema itself. */
export function resolved(document: OpenApiDocument, schema: Json): Json {
  const name = String(schema.$ref ?? '').replace('#/components/schemas/', '');
  return name === '' ? schema : resolved(document, asObject(asObject(document.components.schemas)[name]));
}
