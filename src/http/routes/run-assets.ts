import type { RunRepository } from '#src/runs/run-repository.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { describeUntrusted } from '../reply/content-headers.ts';
import { contentReply } from '../reply/content-reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { GuardRun } from './run-waiting.ts';

/** The assets of runs. */
export function runAssetRoutes(runs: RunRepository, guard: GuardRun): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getRunAsset,
      summary: 'Read an asset of a run',
      description:
        'An asset is an output that is too large for the run record. Its media type was chosen by notebook code, so only ' +
        'plain images and plain text are marked to be shown in the browser; everything else is marked as a download.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      errors: ['range_not_satisfiable'],
      handle({ principal, params, headers, headOnly }) {
        guard(principal, params.runId, 'read');
        const { mimetype, sha256, bytes } = runs.reader.asset(
          principal.workspaceId,
          params.runId,
          params.assetId,
        );
        const { contentType, disposition } = describeUntrusted(mimetype);
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
