import Type from 'typebox';
import type { Environments } from '#src/sessions/environments.ts';
import { created, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { EnvironmentSchema } from '../schemas/session.ts';

export function executionEnvironmentRoutes(environments: Environments): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/execution-environments',
      operationId: 'createExecutionEnvironment',
      summary: 'Create an execution environment',
      description: 'The body is an empty object. An environment holds at most one active notebook session.',
      tags: ['Execution environments'],
      access: { action: 'environment.write' },
      body: Type.Object({}, { additionalProperties: false }),
      responses: {
        201: {
          description: 'Created.',
          schema: EnvironmentSchema,
          headers: { location: 'The environment.' },
        },
      },
      handle({ principal }) {
        const record = environments.create(principal.workspaceId);
        return created(record, `/api/v3/execution-environments/${record.environmentId}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/execution-environments/:environmentId',
      operationId: 'getExecutionEnvironment',
      summary: 'Read an execution environment',
      description: 'A closed one still answers.',
      tags: ['Execution environments'],
      access: { action: 'environment.read' },
      responses: { 200: { description: 'Its state.', schema: EnvironmentSchema } },
      handle: ({ principal, params }) => ok(environments.record(principal.workspaceId, params.environmentId)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/execution-environments/:environmentId',
      operationId: 'closeExecutionEnvironment',
      summary: 'Close an execution environment',
      description: 'Refused while sessions are attached. Workspace files are never deleted.',
      tags: ['Execution environments'],
      access: { action: 'environment.write' },
      responses: { 200: { description: 'The closed environment.', schema: EnvironmentSchema } },
      errors: ['environment_in_use', 'environment_closed'],
      handle: ({ principal, params }) => ok(environments.close(principal.workspaceId, params.environmentId)),
    }),
  ];
}
