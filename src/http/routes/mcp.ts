import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { McpEndpoint } from '#src/mcp/endpoint.ts';
import type { InnerRequests } from '../inner/inner-requests.ts';
import { webReply } from '../reply/send-web.ts';
import { defineRoute, type Route } from '../route.ts';

/** The endpoint of the Model Context Protocol. Its tools work through the API, in the name of the caller. */
export function mcpRoutes(endpoint: McpEndpoint, inner: InnerRequests): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.callMcp,
      summary: 'Talk to the server by the Model Context Protocol',
      description:
        'The body is one JSON-RPC message. A tool call needs the same rights as the API requests that it makes.',
      tags: ['Server'],
      access: { action: 'mcp.call' },
      isUndocumented: true,
      sameOrigin: true,
      tokensOnly: true, // requests to the API contain only the caller's headers
      audited: true,
      ignoresKeys: true,
      whileFull: true, // requests of the tools are refused individually
      whileReadOnly: true, // for the same reason
      home: 'any',
      bodyLimitBytes: 4 * 1024 * 1024,
      async handle({ principal, headers, body, signal, trace, remoteAddress }) {
        const { authorization, 'service-workspace-id': workspace, ...ofProtocol } = headers;
        const caller = { authorization, 'service-workspace-id': workspace };
        const response = await endpoint.serve({
          principal,
          fetch: inner.fetchFor({ address: remoteAddress, headers: caller }),
          headers: ofProtocol,
          body,
          signal,
          trace,
        });
        return webReply(response);
      },
    }),
  ];
}
