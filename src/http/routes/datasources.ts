import type { ConnectionTest } from '#src/contract/wire/datasource.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { MAX_WHOLE_LIST } from '#src/contract/wire/shape.ts';
import type { Datasources, Saved } from '#src/datasource/datasources.ts';
import type { DatasourceGrants } from '#src/datasource/grants.ts';
import { auditContextOf } from '../handlers/audited-routes.ts';
import { requireState, tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import { created, encodedJson, type JsonReply, json, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The body limit of every route that takes a connection. */
const DATASOURCE_BODY_LIMIT_BYTES = 512 * 1024;

/** Datasources. */
export function datasourceRoutes(datasources: Datasources): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listDatasources,
      summary: 'List the datasources you can use, by slug',
      description:
        'Returns all datasources, unless `limit` requests a page. If there are more than 10,000, the first ' +
        '10,000 are returned, with a `nextCursor` for the rest.',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query: { after, limit = MAX_WHOLE_LIST }, signal }) =>
        encodedJson(await datasources.list(principal, { after, limit, signal })),
    }),
    defineRoute({
      ...OPERATIONS.createDatasource,
      summary: 'Create a datasource',
      description: 'The connection is stored encrypted and is never returned.',
      tags: ['Datasources'],
      access: { action: 'datasource.create' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      errors: ['already_exists'],
      async handle(request) {
        const saved = await datasources.create(auditContextOf(request), request.body);
        return savedReply(saved, (metadata) =>
          created(metadata, pathOf('getDatasource', { slug: metadata.slug })),
        );
      },
    }),
    defineRoute({
      ...OPERATIONS.getDatasource,
      summary: 'Read the metadata of a datasource',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      readsStoreOnly: true,
      handle({ principal, params, headers }) {
        const metadata = datasources.get(principal, params.slug);
        return unlessKnown(ok(metadata), tagOf(metadata), headers);
      },
    }),
    defineRoute({
      ...OPERATIONS.replaceDatasource,
      summary: "Replace a datasource's connection",
      description:
        'The new connection must be complete and may be of another kind. An omitted name is kept; null ' +
        'removes it. Credentials at the database are not changed.',
      tags: ['Datasources'],
      access: { action: 'datasource.write' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      errors: ['datasource_changed', 'precondition_failed'],
      async handle(request) {
        const { params, body, headers } = request;
        const saved = await datasources.replace(auditContextOf(request), params.slug, body, (current) =>
          requireState(headers, () => tagOf(current)),
        );
        return savedReply(saved, (metadata) => ok(metadata));
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteDatasource,
      summary: 'Delete a datasource',
      description: 'Deletes its connection and its grants. Files of embedded databases stay.',
      tags: ['Datasources'],
      access: { action: 'datasource.delete' },
      audited: true,
      sameOrigin: true,
      errors: ['precondition_failed'],
      handle(request) {
        const { slug } = request.params;
        datasources.delete(auditContextOf(request), slug, (current) =>
          requireState(request.headers, () => tagOf(current)),
        );
        return ok({ slug, deleted: true });
      },
    }),
    defineRoute({
      ...OPERATIONS.testDatasource,
      summary: 'Test a saved connection',
      tags: ['Datasources'],
      access: { action: 'datasource.test' },
      audited: true,
      sameOrigin: true,
      errors: ['datasource_changed'],
      checkAccess: ({ principal, params }) => {
        datasources.readable(principal, params.slug);
      },
      handle: async (request) =>
        probeReply(await datasources.test(auditContextOf(request), request.params.slug)),
    }),
  ];
}

/** A slug may be used again after a deletion, so the revision alone does not name a state. */
function tagOf({ id, revision }: { readonly id: string; readonly revision: number }): string {
  return versionTag(`${id}.${revision}`);
}

/** Returns 200 for a test that succeeded and 400 for a test that failed, with the same body. */
function probeReply(probe: ConnectionTest): JsonReply<ConnectionTest> {
  return json(probe.ok ? 200 : 400, probe);
}

function savedReply<Value>(
  saved: Saved,
  reply: (metadata: Extract<Saved, { saved: true }>['metadata']) => JsonReply<Value>,
): JsonReply<Value | ConnectionTest> {
  return saved.saved ? tagged(reply(saved.metadata), tagOf(saved.metadata)) : probeReply(saved.probe);
}

/** The grants of datasources. */
export function datasourceGrantRoutes(grants: DatasourceGrants): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listDatasourceGrants,
      summary: 'List the subjects a datasource is shared with',
      description:
        'The creator of the datasource and the owners of the workspace can also use it, without being listed.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok({ items: grants.list({ principal }, params.slug) }),
    }),
    defineRoute({
      ...OPERATIONS.grantDatasource,
      summary: 'Share a datasource',
      description: 'The member can then query, test, replace and delete the datasource.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      checkAccess: ({ principal, params }) => grants.checkSharing(principal, params.slug),
      handle(request) {
        const { slug } = request.params;
        const grant = grants.add(auditContextOf(request), slug, request.body.subject);
        return created(grant, pathOf('revokeDatasourceGrant', { slug, subject: grant.subject }));
      },
    }),
    defineRoute({
      ...OPERATIONS.revokeDatasourceGrant,
      summary: 'Stop sharing a datasource',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      handle(request) {
        grants.remove(auditContextOf(request), request.params.slug, request.params.subject);
        return noContent();
      },
    }),
  ];
}

/** Connections that are not saved. `schema` is the JSON Schema of every kind of connection. */
export function datasourceConnectionRoutes(datasources: Datasources, schema: object): readonly Route[] {
  const document = JSON.stringify(schema);
  return [
    defineRoute({
      ...OPERATIONS.getConnectionSchema,
      summary: 'Read the JSON Schema of connections',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      readsStoreOnly: true,
      handle: () => encodedJson(document),
    }),
    defineRoute({
      ...OPERATIONS.testConnection,
      summary: 'Test a connection without saving it',
      tags: ['Datasources'],
      access: { action: 'datasource.test' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      handle: async (request) =>
        probeReply(await datasources.testUnsaved(auditContextOf(request), request.body.connection)),
    }),
  ];
}
