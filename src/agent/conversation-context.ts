import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { AgentActors } from './agent-session-actors.ts';
import type { ConversationAccess } from './conversation-access.ts';
import type { OutcomeOf } from './live-conversation.ts';
import type { LiveConversations } from './live-conversations.ts';
import type { Models } from './models/models.ts';
import type { Notebooks } from './tools/notebook-access.ts';

/** The kind of the removals of conversations. */
export const CONVERSATION = 'conversation';

/** The conversations of this process, with the parts that every request to one uses. */
export interface ConversationContext extends RunPlaneContext {
  readonly access: ConversationAccess;
  readonly agentActors: AgentActors;
  readonly conversations: LiveConversations;
  readonly models: Models;
  readonly notebooks: Notebooks;
  readonly outcomeOf: OutcomeOf;
}
