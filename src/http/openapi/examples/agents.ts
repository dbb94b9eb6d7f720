/** Examples of conversations and models. */
import type { AgentSession, AgentSessionGrant, AgentSessionSummary } from '#src/contract/wire/agent.ts';
import type { AgentStreamEvent } from '#src/contract/wire/events.ts';
import type { ModelKey, ModelList, ModelTest } from '#src/contract/wire/models.ts';
import { AT, COLLEAGUE, CONVERSATION_ID, ENVIRONMENT, RUN, times, USER } from './example-values.ts';

const conversation: AgentSessionSummary = {
  sessionId: CONVERSATION_ID,
  environmentId: ENVIRONMENT,
  notebookSessionId: null,
  ownerId: USER,
  createdBy: USER,
  status: 'ready',
  config: { model: 'anthropic/claude-sonnet-4-5', instructions: null },
  context: { datasourceSlugs: ['sales'] },
  currentRunId: null,
  ...times,
};
const entry = {
  id: 'ent_01k6gq0000ffffffffffffffff',
  role: 'user',
  content: [{ type: 'text', text: 'Plot the sales of last month.' }],
  runId: RUN,
  createdAt: AT,
} as const;
const agentSession: AgentSession = { ...conversation, entries: [entry] };
const agentSessionGrant: AgentSessionGrant = {
  userId: COLLEAGUE,
  createdBy: USER,
  createdAt: AT,
};
const models: ModelList = {
  defaultModel: 'anthropic/claude-sonnet-4-5',
  items: [
    { provider: 'anthropic', usable: true, source: 'workspace', models: ['anthropic/claude-sonnet-4-5'] },
  ],
};
const modelTest: ModelTest = {
  ok: true,
  model: 'anthropic/claude-sonnet-4-5',
  message: 'It answered.',
  elapsedMs: 640,
};
const modelKey: ModelKey = { provider: 'anthropic', updatedBy: USER, updatedAt: AT };
const agentEvent: AgentStreamEvent = {
  type: 'text-delta',
  sessionId: CONVERSATION_ID,
  runId: RUN,
  time: AT,
  data: { entryId: entry.id, text: 'The sales ' },
};

export const AGENTS_EXAMPLES = {
  AgentEntry: entry,
  AgentSession: agentSession,
  AgentSessionGrant: agentSessionGrant,
  AgentSessionSummary: conversation,
  AgentStreamEvent: agentEvent,
  ModelKey: modelKey,
  ModelList: models,
  ModelTest: modelTest,
};
