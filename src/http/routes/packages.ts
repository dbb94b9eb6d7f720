import { setTimeout as wait } from 'node:timers/promises';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import { auditContextOf } from '../handlers/audited-routes.ts';
import { accepted, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Packages'];
const DEFAULT_WAIT_S = 50;

/** The packages of a workspace. */
export function packageRoutes(packages: WorkspacePackages, audit: AuditTrail): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listPackages,
      summary: 'List the packages of the workspace, and the installation in progress',
      tags,
      access: { action: 'package.read' },
      handle: ({ principal }) => ok(packages.list(principal.workspaceId)),
    }),
    defineRoute({
      ...OPERATIONS.addPackages,
      summary: 'Add packages that all notebooks of the workspace have',
      description:
        'The packages are first installed, together with those that the workspace already has, and are ' +
        'added only if the installation succeeds. A package with the same name is replaced. Running kernels do not ' +
        'see the new packages. If the installation takes longer than `wait`, the response is 202; the ' +
        'installation continues, and `GET /packages` shows when it has ended. If the server ends during ' +
        'the installation, send the request again.',
      tags,
      access: { action: 'package.write' },
      errors: ['packages_disabled', 'packages_not_installed', 'installation_in_progress', 'quota_exceeded'],
      audited: true,
      async handle(request) {
        const { principal, body, query } = request;
        const adding = packages.add(principal, body.requirements, (changes) =>
          audit.note(auditContextOf(request), ...changes),
        );
        adding.catch(() => {}); // after the wait, the list reports a failure
        const timer = new AbortController();
        const over = wait((query.wait ?? DEFAULT_WAIT_S) * 1000, undefined, {
          signal: timer.signal,
          ref: false,
        });
        try {
          const added = await Promise.race([adding, over.catch(() => undefined)]);
          return added === undefined
            ? accepted(packages.list(principal.workspaceId), pathOf('listPackages', {}))
            : ok(added);
        } finally {
          timer.abort();
        }
      },
    }),
    defineRoute({
      ...OPERATIONS.removePackage,
      summary: 'Remove a package from the workspace',
      description: 'Kernels that run keep the package.',
      tags,
      access: { action: 'package.write' },
      handle({ principal, params }) {
        packages.remove(principal.workspaceId, params.name);
        return noContent();
      },
    }),
  ];
}
