import type { RunRepository } from '#src/runs/run-repository.ts';
import { CONTENT_HEADERS, contentReply } from '../content-reply.ts';
import { describeForeign } from '../media-type.ts';
import { defineRoute, type Route } from '../route.ts';
import type { GuardRun } from './runs.ts';

export function runAssetRoutes(runs: RunRepository, guard: GuardRun): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/runs/:runId/assets/:assetId',
      operationId: 'getRunAsset',
      summary: 'Read an asset of a run',
      description:
        'An output that is too large to stand in the run, as bytes. Its type is what notebook code said it is: only ' +
        'plain images and text are sent to be shown in place.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      headers: CONTENT_HEADERS,
      responses: {
        200: { description: 'All of it.', contentType: '*/*', headers: HEADERS },
        206: {
          description: 'The range that was asked for.',
          contentType: '*/*',
          headers: { ...HEADERS, 'content-range': 'Which bytes these are, and of how many.' },
        },
        304: { description: 'The caller has it.', headers: HEADERS },
      },
      errors: ['range_not_satisfiable'],
      handle({ principal, params, headers, headOnly }) {
        guard(principal, params.runId, 'read');
        const { mimetype, sha256, bytes } = runs.asset(principal.workspaceId, params.runId, params.assetId);
        const { contentType, disposition } = describeForeign(mimetype);
        const content = {
          bytes,
          sha256,
          contentType,
          headers: {
            'content-disposition': disposition,
            'content-security-policy': "sandbox; default-src 'none'",
            // An asset never changes, but whether the caller may read it does.
            'cache-control': 'private, no-cache',
          },
        };
        return contentReply(content, headers, headOnly);
      },
    }),
  ];
}

const HEADERS = {
  etag: 'SHA-256 of the asset.',
  'content-disposition': '`inline` for plain images and text, else `attachment`.',
};
