import { AppError } from '#src/base/errors/errors.ts';
import type { Node, NodeInvitation, NodeList } from '#src/contract/wire/nodes.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { requireServerScope } from '../handlers/server-scope.ts';
import { noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const MANAGE = 'server:manage';
const OBSERVE = 'server:observe';

/**
 * The kernel nodes of the server, whichever process has their connections. A result is undefined when the server has no nodes, or
 * not the named node.
 */
export interface NodesControl {
  list(): Promise<NodeList>;
  invite(): Promise<NodeInvitation | undefined>;
  drain(name: string, draining: boolean): Promise<Node | undefined>;
  remove(name: string): Promise<boolean>;
}

const COMMON = { tags: ['Operations'], access: 'token' } as const;
const NEEDS = `This needs a token with the scope \`${MANAGE}\` that is not bound to a workspace.`;

/** The machines that run kernels for this server. They belong to the server, not to a workspace. */
export function nodeRoutes(nodes: NodesControl): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listNodes,
      summary: 'List the kernel nodes: the machines that run kernels for this server',
      description: `This needs a token with the scope \`${OBSERVE}\` or \`${MANAGE}\` that is not bound to a workspace.`,
      ...COMMON,
      errors: ['missing_scope'],
      whileDraining: true,
      async handle({ holder }) {
        requireServerScope(holder, [OBSERVE, MANAGE], 'manage kernel nodes');
        return ok(await nodes.list());
      },
    }),
    defineRoute({
      ...OPERATIONS.inviteNode,
      summary: 'Invite a machine to become a kernel node',
      description: `The invitation works once, for 15 minutes, until the server restarts. A node runs the code of all workspaces: invite only machines that you trust. ${NEEDS}`,
      ...COMMON,
      errors: ['missing_scope', 'nodes_disabled'],
      checkAccess: ({ holder }) => requireServerScope(holder, [MANAGE], 'manage kernel nodes'),
      async handle({ holder }) {
        requireServerScope(holder, [MANAGE], 'manage kernel nodes');
        const invitation = await nodes.invite();
        if (invitation === undefined)
          throw new AppError(
            'nodes_disabled',
            'This server runs kernels on its own machine: set TROUPE_KERNEL_NODES to `join` and restart it.',
          );
        return ok(invitation);
      },
    }),
    defineRoute({
      ...OPERATIONS.changeNode,
      summary: 'Drain a kernel node, or let a drained node take kernels again',
      description: `A draining node keeps its kernels and gets no new ones. ${NEEDS}`,
      ...COMMON,
      errors: ['missing_scope', 'not_found'],
      checkAccess: ({ holder }) => requireServerScope(holder, [MANAGE], 'manage kernel nodes'),
      async handle({ holder, params, body }) {
        requireServerScope(holder, [MANAGE], 'manage kernel nodes');
        const node = await nodes.drain(params.node, body.draining);
        if (node === undefined) throw unknownNode();
        return ok(node);
      },
    }),
    defineRoute({
      ...OPERATIONS.removeNode,
      summary: 'Remove a kernel node',
      description: `The kernels of the node end at once. The node can join again only with a new invitation. ${NEEDS}`,
      ...COMMON,
      errors: ['missing_scope', 'not_found'],
      checkAccess: ({ holder }) => requireServerScope(holder, [MANAGE], 'manage kernel nodes'),
      async handle({ holder, params }) {
        requireServerScope(holder, [MANAGE], 'manage kernel nodes');
        if (!(await nodes.remove(params.node))) throw unknownNode();
        return noContent();
      },
    }),
  ];
}

function unknownNode(): AppError {
  return new AppError('not_found', 'There is no kernel node with this name.');
}
