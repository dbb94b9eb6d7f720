import type { PromptBudget } from '#machines/agent-session.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { prepareStrings } from '#src/base/json/prepared-strings.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { PromptRequest } from '#src/contract/wire/run.ts';
import type { RunQuery } from '#src/runtime/runs/run-lists.ts';
import type { Submission } from '#src/runtime/runs/submission.ts';
import type { PageRequest } from '#storage/lists/listing.ts';
import type { JsonPage } from '#storage/lists/sliced-listing.ts';
import type { ConversationRecord } from '#storage/records/conversations.ts';
import type { ConversationContext } from './conversation-context.ts';
import { openCalls } from './entry.ts';
import { systemPrompt } from './instructions.ts';
import type { LiveConversation } from './live-conversation.ts';
import type { ModelUse } from './model-use.ts';
import type { Models } from './models/models.ts';
import { PromptTurn } from './prompt-turn.ts';
import type { DatasourceQueries } from './tools/datasource-tools.ts';
import type { OpenNotebook, PromptCall } from './tools/notebook-access.ts';
import type { Toolbox } from './tools/toolbox.ts';

/** A conversation that takes a prompt, and the model that answers it. */
interface CheckedPrompt {
  readonly sessionId: string;
  readonly record: ConversationRecord;
  readonly model: ReturnType<Models['choose']>;
}

const CUT_OFF = 'The server ended before this call was finished. The effects of the call are not known.';

/** Prompts: each becomes a durable run of its conversation. */
export class AgentPrompts {
  readonly #context: ConversationContext;
  readonly #modelUse: ModelUse;
  readonly #datasources: DatasourceQueries | undefined;
  readonly #budget: PromptBudget;

  /** Without `datasources`, agents get no tools for datasources. */
  constructor(context: ConversationContext, modelUse: ModelUse, datasources: DatasourceQueries | undefined) {
    this.#context = context;
    this.#modelUse = modelUse;
    this.#datasources = datasources;
    const { agentMaxSteps, agentMaxTokens } = context.config;
    this.#budget = { maxSteps: agentMaxSteps, maxTokens: agentMaxTokens };
  }

  /**
   * Submits a prompt. Rejects with `not_found`, `conversation_read_only`, `session_busy`, `session_closed`, `no_model_configured`,
   * `model_not_configured`, `unknown_model` or `quota_exceeded`, and then has changed nothing.
   */
  async submit(
    caller: Principal,
    sessionId: string,
    request: PromptRequest,
    parent?: TraceContext,
  ): Promise<Submission> {
    const { access, conversations, notebooks } = this.#context;
    const { workspaceId } = caller;
    const { notebookSessionId } = access.usable(caller, sessionId);
    // Prepared once, because the run's record, the entry and an event all contain the prompt.
    using _prepared = await prepareStrings([request.prompt], workspaceId);
    await conversations.prepare({ workspaceId, id: sessionId });
    if (notebookSessionId !== null) await notebooks.prepare(workspaceId, sessionId);
    const checked = this.#check(caller, sessionId);
    const waiting = this.#context.runs.limits.admit(workspaceId, caller.userId);
    if (waiting === undefined) return this.#begin(caller, request, parent, checked);
    using _permit = await waiting;
    return this.#begin(caller, request, parent, this.#check(caller, sessionId));
  }

  /** Checks a prompt and returns its context. Throws the refusal. */
  #check(caller: Principal, sessionId: string): CheckedPrompt {
    const { access, agentActors, models } = this.#context;
    const { workspaceId } = caller;
    const record = access.usable(caller, sessionId);
    agentActors.check({ workspaceId, id: sessionId }, this.#budget);
    return { sessionId, record, model: models.choose(workspaceId, record.model) };
  }

  /** Begins the run of a prompt that was checked in this turn. */
  #begin(
    caller: Principal,
    request: PromptRequest,
    parent: TraceContext | undefined,
    { sessionId, record, model }: CheckedPrompt,
  ): Submission {
    const { agentActors, conversations, runs } = this.#context;
    const { workspaceId } = caller;
    const session = { workspaceId, id: sessionId };
    const conversation = conversations.of(session);
    const { openToolbox, system } = this.#equip(caller, sessionId, record);
    const { lastEventId } = conversation.stream;
    const environmentId = agentActors.actors.peek(session)?.snapshot.context.environmentId ?? null;
    const { metadata, ...input } = request;
    const { runId, json, trace } = runs.begin({
      workspaceId,
      sessionId: sessionId as SessionId,
      kind: 'agent',
      input,
      environmentId,
      parent,
      createdBy: caller.userId,
      metadata,
    });
    mend(conversation, runId);
    const turn = new PromptTurn(this.#context, this.#modelUse, {
      run: { runId, trace },
      userId: caller.userId,
      conversation,
      model,
      system,
      openToolbox,
    });
    turn.ask(request.prompt);
    agentActors.start(session, turn, this.#budget, { timeoutS: request.timeoutS, by: caller.userId });
    return { runId, lastEventId, json };
  }

  /** Resolves with the prompts of a conversation as runs. Rejects with `not_found` or `invalid_cursor`. */
  async list(
    caller: Principal,
    sessionId: string,
    page: PageRequest & Pick<RunQuery, 'include' | 'metadata'>,
  ): Promise<JsonPage> {
    this.#context.access.readable(caller, sessionId);
    return this.#context.runs.reader.list(caller.workspaceId, { ...page, sessionId, kind: 'agent' });
  }

  /** Cancels a prompt: the call to the provider is closed and tools are interrupted. */
  cancel(workspaceId: WorkspaceId, sessionId: string, runId: RunId): void {
    const { actors } = this.#context.agentActors;
    actors.tell({ workspaceId, id: sessionId }, { type: 'cancel', runId });
  }

  #equip(caller: Principal, sessionId: string, { notebookSessionId, ...record }: ConversationRecord) {
    const { notebooks, log } = this.#context;
    const datasources = this.#datasources;
    const { workspaceId } = caller;
    const { instructions, datasourceSlugs, datasourcesChosenBy = record.createdBy } = record;
    const isBound = notebookSessionId !== null;
    const selected = isBound ? notebooks.datasourceSlugs(workspaceId, sessionId) : [];
    const slugs = [...new Set([...datasourceSlugs, ...selected])];
    const isEditable = isBound && notebooks.isEditable(workspaceId, sessionId);
    const hasDatasources = datasources !== undefined;
    // A caller must not reach a datasource through the rights of another user.
    const isAllowed = (slug: string) =>
      selected.includes(slug) || datasources?.isKeptFrom(workspaceId, datasourcesChosenBy, slug) === false;
    const usable = {
      caller,
      slugs: async () => slugs,
      refusal(asked: string) {
        if (!slugs.includes(asked)) {
          const known = slugs.join(', ') || 'none';
          return `This conversation has no datasource ${asked}. Its datasources: ${known}.`;
        }
        if (isAllowed(asked)) return undefined;
        return (
          `The member who chose the datasource ${asked} for this conversation may not read it. The owner of the ` +
          'conversation can choose it again.'
        );
      },
    };
    const by = caller.userId;
    const notebookOf = (call: PromptCall): OpenNotebook => ({
      cellIds: () => notebooks.cellIds(workspaceId, sessionId),
      cells: (cellIds) => notebooks.cells(workspaceId, sessionId, cellIds),
      runPython: (code) => notebooks.runPython(workspaceId, sessionId, code, { ...call, by }),
      runCells: (cellIds) => notebooks.runCells(workspaceId, sessionId, cellIds, { ...call, by }),
    });
    // Loaded with the first prompt, so that the start of the server does not wait for it.
    const openToolbox = async (): Promise<Toolbox<PromptCall>> => {
      const [box, forNotebooks, forDatasources] = await Promise.all([
        import('./tools/toolbox.ts'),
        import('./tools/notebook-tools.ts'),
        import('./tools/datasource-tools.ts'),
      ]);
      const tools = [
        ...(isBound ? forNotebooks.notebookTools({ notebookOf, isEditable }) : []),
        ...(hasDatasources ? forDatasources.datasourceTools(datasources, () => usable) : []),
      ];
      return new box.Toolbox<PromptCall>(tools, log);
    };
    const system = systemPrompt({ isBound, isEditable, hasDatasources, instructions });
    return { openToolbox, system };
  }
}

/**
 * Completes the history that an ended server left: notes that the prompt has no answer, and adds a result to each open call, so
 * that people see how the call ended. Models do not depend on it: `messagesOf` adds missing results.
 */
function mend(conversation: LiveConversation, runId: string): void {
  const prompt = conversation.entries.findLast(({ entry }) => entry.role === 'user')?.entry;
  // Stored now, because after the run is deleted no other record shows that the prompt was not answered.
  if (prompt?.outcome === 'stale' && prompt.runId !== null) conversation.settlePrompt(prompt.runId, 'stale');
  for (const { callId, name } of openCalls(conversation.entries)) {
    const result = { type: 'tool-result', callId, name, status: 'cancelled', output: CUT_OFF } as const;
    const lastRun = conversation.entries.at(-1)?.entry.runId ?? runId;
    conversation.append({ role: 'tool', runId: lastRun, content: [{ ...result, images: [] }] });
  }
}
