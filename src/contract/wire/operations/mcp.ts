import Type from 'typebox';
import { declareOperations } from './operation.ts';

/** The Model Context Protocol, whose messages its own SDK checks. */
export const MCP_OPERATIONS = declareOperations({
  callMcp: {
    headers: {
      authorization: 'The access token.',
      'service-workspace-id': 'The workspace.',
      accept: 'JSON and event streams.',
      'content-type': 'JSON.',
      'mcp-protocol-version': 'The version of the protocol.',
      'mcp-method': 'The method of the message.',
      'mcp-name': 'The tool or the resource that the message names.',
      'mcp-session-id': 'The session id of MCP, as the response to `initialize` gave it.',
    },
    body: Type.Unknown(),
    responses: {
      200: {
        description: 'The answer, as JSON or as a stream of messages.',
        contentType: 'application/json',
      },
      202: { description: 'The notification was taken.' },
    },
  },
});
