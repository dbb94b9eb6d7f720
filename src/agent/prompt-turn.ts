/**
 * One prompt while it is answered: asks the model, carries out its calls, and stores each as soon as it is complete. The chart of
 * its session decides the next step; this class carries it out. It lives until `end` is called, once.
 *
 * 1. A step is in the history before its calls are carried out, and on disk before any client learns that it is complete. 2. After
 * `end` every call has a result, so that any provider takes the history with the next prompt. 3. After `end`, or once a signal has
 * aborted, nothing more is written, even if more input arrives.
 */

import { createHash } from 'node:crypto';
import type { RunEnding } from '#machines/agent-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import { type AssetId, newId, type RunId } from '#src/base/ids.ts';
import { traceparentOf } from '#src/base/tracing/trace-context.ts';
import type { Attributes, Span } from '#src/base/tracing/tracer.ts';
import type { AgentEntry, PromptOutcome, ShownImage, ToolCallPart } from '#src/contract/wire/agent.ts';
import type { TokenUsage } from '#src/contract/wire/run.ts';
import type { BegunRun } from '#src/runtime/runs/run-repository.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { type Asset, readAsset } from '#storage/records/assets.ts';
import { compactEntries } from './compaction.ts';
import { openCalls } from './entry.ts';
import type { LiveConversation } from './live-conversation.ts';
import { messagesOf } from './messages.ts';
import type { ModelUse } from './model-use.ts';
import { CallMeter, type CallUsage, estimatedInput } from './models/call-meter.ts';
import { askModel, type ModelAnswer } from './models/model-call.ts';
import { ModelFailure } from './models/model-failure.ts';
import type { ChosenModel } from './models/models.ts';
import type { PromptCall } from './tools/notebook-access.ts';
import type { ToolImage, ToolOutcome } from './tools/tool.ts';
import type { Toolbox } from './tools/toolbox.ts';
import { type AssetPart, turnParts } from './turn-output.ts';
import { TurnWarnings } from './turn-warnings.ts';
import { withoutWithdrawn } from './withdrawn-prompts.ts';

export interface PromptTurnOptions {
  readonly run: Omit<BegunRun, 'json'>;
  /** The user who sent the prompt. The tokens of its calls are added to this user's sums. */
  readonly userId: string;
  readonly conversation: LiveConversation;
  readonly model: ChosenModel;
  readonly system: string;
  /** Called once, with the first step. */
  readonly openToolbox: () => Promise<Toolbox<PromptCall>>;
}

export type StepReport =
  | { readonly type: 'step.done'; readonly calls: number; readonly tokens: number }
  | {
      readonly type: 'step.failed';
      readonly failure: Failure;
      readonly retryMs: number | null;
      readonly tokens: number;
    };

/** The share of the model's window that the history may fill: the answer needs room, and the count of tokens is an estimate. */
const HISTORY_SHARE = 0.7;
const SQUEEZES = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
const MAX_TOUCHED_CELLS = 100;
const LIMITS: readonly string[] = ['agent_time_limit', 'agent_step_limit', 'agent_token_limit', 'timed_out'];

export class PromptTurn {
  readonly runId: RunId;
  readonly #context: RunPlaneContext;
  readonly #modelUse: ModelUse;
  readonly #options: PromptTurnOptions;
  readonly #entries: AgentEntry[] = [];
  readonly #warnings = new TurnWarnings();
  readonly #assets: AssetPart[] = [];
  /** Misspelled calls of the last step, by id. */
  #invalid: ReadonlyMap<string, string> = new Map();
  #usage: Required<TokenUsage> = NO_TOKENS;
  /** The tokens that no report has yet. */
  #unreported = 0;
  /** The call of the model in progress, until its tokens are counted. */
  #meter: CallMeter | undefined;
  #toolbox: Promise<Toolbox<PromptCall>> | undefined;
  #steps = 0;
  #failures = 0;
  #squeezes = 0;
  #isOver = false;

  constructor(context: RunPlaneContext, modelUse: ModelUse, options: PromptTurnOptions) {
    this.#context = context;
    this.#modelUse = modelUse;
    this.#options = options;
    this.runId = options.run.runId;
  }

  /** Stores the prompt. Called once, before all other methods. */
  ask(prompt: string): void {
    this.#append({ role: 'user', content: [{ type: 'text', text: prompt }] });
  }

  /** Asks the model for one step. Rejects only on an internal error, or when the signal has aborted. */
  async think(signal: AbortSignal): Promise<StepReport> {
    const { conversation, model } = this.#options;
    const { store } = this.#context;
    // The prompt must be on disk before the model is asked, because a client repeats a prompt that a crash
    // has undone.
    await store.durable();
    signal.throwIfAborted();
    this.#toolbox ??= this.#options.openToolbox();
    const tools = (await this.#toolbox).declarations;
    signal.throwIfAborted();
    const messages = this.#messages();
    const entryId = conversation.beginDraft(this.runId);
    const { system } = this.#options;
    const meter = new CallMeter(() => estimatedInput({ system, messages, tools }));
    this.#meter = meter;
    let answer: ModelAnswer;
    const startedAtMs = performance.now();
    const span = this.#startSpan(`chat ${model.id}`, 'client', {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': model.id,
    });
    try {
      answer = await askModel({
        traceparent: span?.traceparent ?? this.#traceparent,
        target: await model.target(),
        id: model.id,
        system,
        messages,
        tools,
        maxOutputTokens: model.maxOutputTokens,
        silenceMs: this.#context.config.modelSilenceS * 1000,
        signal,
        meter,
        onText: (text) => this.#hear(signal, 'text-delta', text),
        onReasoning: (text) => this.#hear(signal, 'reasoning-delta', text),
      });
    } catch (error) {
      const type = errorTypeOf(error, signal);
      span?.end({ error: type });
      this.#timeCall(startedAtMs, type);
      signal.throwIfAborted(); // `end` has counted the call
      this.#charge(meter.soFar);
      if (error instanceof ModelFailure) return this.#failed(error);
      throw error;
    }
    span?.end({
      attributes: {
        'gen_ai.usage.input_tokens': answer.usage.inputTokens,
        'gen_ai.usage.output_tokens': answer.usage.outputTokens,
      },
    });
    this.#timeCall(startedAtMs, '');
    signal.throwIfAborted();
    return this.#take(entryId, answer);
  }

  /** Carries out the calls of the last step. Resolves when all calls have a result, including aborted ones. */
  async act(signal: AbortSignal): Promise<void> {
    const { conversation } = this.#options;
    const { store } = this.#context;
    await store.durable();
    const toolbox = await this.#toolbox;
    invariant(toolbox !== undefined, 'Tools are called after the first step of the model.');
    await Promise.all(
      openCalls(conversation.entries).map(async (call) => {
        const wrong = this.#invalid.get(call.callId);
        faultPoint('tool.called');
        const startedAtMs = performance.now();
        const tool = wrong === undefined && toolbox.knows(call.name) ? call.name : 'other';
        const span = this.#startSpan(`execute_tool ${tool}`, 'internal', { 'gen_ai.tool.name': tool });
        const outcome: ToolOutcome =
          wrong === undefined
            ? await toolbox.run(call, {
                callId: call.callId,
                runId: this.runId,
                signal,
                trace: span?.context ?? this.#options.run.trace,
              })
            : { status: 'failed', text: `The call of ${call.name} was not carried out: ${wrong}.` };
        faultPoint('tool.ran');
        span?.end({ error: outcome.status === 'completed' ? undefined : outcome.status });
        this.#context.metrics.toolCalls
          .of(tool, outcome.status)
          .observe((performance.now() - startedAtMs) / 1000);
        this.#addResult(call, outcome);
      }),
    );
  }

  /** Ends the run in this turn of the event loop: history and record are complete then. Idempotent. */
  end({ status, failure }: RunEnding): void {
    if (this.#isOver) return;
    const { conversation, model } = this.#options;
    const { runs } = this.#context;
    this.#charge(this.#meter?.soFar);
    const { draft } = conversation;
    if (draft !== undefined && draft.text !== '') {
      this.#append({ id: draft.entryId, role: 'assistant', content: [{ type: 'text', text: draft.text }] });
    }
    conversation.dropDraft();
    const why =
      failure === null ? 'Cancelled before it was finished.' : `Not carried out: ${failure.message}`;
    for (const call of openCalls(conversation.entries)) {
      this.#addResult(call, { status: 'cancelled', text: why });
    }
    this.#isOver = true;
    if (status !== 'completed') conversation.settlePrompt(this.runId, outcomeOf(status, failure));
    const parts = turnParts(this.#entries, status === 'completed', this.#warnings.all, this.#assets);
    const output = { stored: true, parts, model: model.id, steps: this.#steps, usage: this.#usage };
    // The assets were saved with the entries that show them.
    runs.finish(conversation.workspaceId, this.runId, {
      status,
      error: failure,
      output,
      assets: new Map(),
    });
  }

  get #traceparent(): string | undefined {
    const { trace } = this.#options.run;
    return trace && traceparentOf(trace);
  }

  #startSpan(name: string, kind: 'client' | 'internal', attributes: Attributes): Span | undefined {
    const { trace: parent } = this.#options.run;
    const { tracer } = this.#context;
    return parent === undefined ? undefined : tracer?.start(name, { kind, parent, attributes });
  }

  #timeCall(startedAtMs: number, errorType: string): void {
    const { model } = this.#options;
    const { metrics } = this.#context;
    const [provider = ''] = model.id.split('/', 1);
    metrics.modelCalls.of('chat', provider, errorType).observe((performance.now() - startedAtMs) / 1000);
  }

  /** Counts the present call once, in this turn's commit. `usage` is undefined when the call has cost nothing. */
  #charge(usage: CallUsage | undefined): void {
    const isCounted = this.#meter === undefined;
    this.#meter = undefined;
    if (isCounted || usage === undefined) return;
    const { model, conversation, userId } = this.#options;
    const { metrics } = this.#context;
    const sum = this.#usage;
    this.#usage = {
      inputTokens: sum.inputTokens + usage.inputTokens,
      cachedInputTokens: sum.cachedInputTokens + usage.cachedInputTokens,
      cacheWriteInputTokens: sum.cacheWriteInputTokens + usage.cacheWriteInputTokens,
      outputTokens: sum.outputTokens + usage.outputTokens,
      reasoningTokens: sum.reasoningTokens + usage.reasoningTokens,
      estimatedCalls: sum.estimatedCalls + (usage.isEstimated ? 1 : 0),
    };
    this.#unreported += usage.inputTokens + usage.outputTokens;
    this.#modelUse.add(conversation.workspaceId, userId, model.id, usage);
    const [provider = ''] = model.id.split('/', 1);
    metrics.modelTokens.of('chat', provider, 'input').observe(usage.inputTokens);
    metrics.modelTokens.of('chat', provider, 'output').observe(usage.outputTokens);
  }

  #messages() {
    const { conversation, model } = this.#options;
    const { store } = this.#context;
    const budget = (model.windowTokens * HISTORY_SHARE) / 2 ** this.#squeezes;
    const { entries, outputs, prompts } = compactEntries(withoutWithdrawn(conversation.entries), budget);
    this.#warnings.addCompaction(outputs, prompts);
    const { workspaceId } = conversation;
    return messagesOf(entries, {
      modelId: model.id,
      seesImages: model.seesImages,
      image: (runId, assetId) => readAsset(store, workspaceId, runId, assetId)?.bytes,
    });
  }

  #hear(signal: AbortSignal, kind: 'text-delta' | 'reasoning-delta', text: string): void {
    if (!signal.aborted) this.#options.conversation.addDelta(kind, text);
  }

  #take(entryId: AgentEntry['id'], { parts, provider, invalid, usage, finish }: ModelAnswer): StepReport {
    const { model } = this.#options;
    this.#steps++;
    this.#failures = 0;
    this.#charge(usage);
    this.#invalid = invalid;
    const content = parts.length === 0 ? [{ type: 'text' as const, text: '' }] : parts;
    this.#append({ id: entryId, role: 'assistant', content, model: model.id, provider });
    const calls = parts.filter(({ type }) => type === 'tool-call').length;
    if (finish === 'content-filter') {
      return { type: 'step.failed', failure: REFUSED, retryMs: null, tokens: this.#report() };
    }
    if (finish === 'length')
      this.#warnings.add('answer_cut', 'The answer was cut off at the longest answer that the model gives.');
    const isSilent = calls === 0 && !parts.some((part) => part.type === 'text' && part.text !== '');
    if (isSilent) this.#warnings.add('empty_answer', 'The model ended without an answer.');
    return { type: 'step.done', calls, tokens: this.#report() };
  }

  #failed({ failure, retryMs }: ModelFailure): StepReport {
    if (failure.code === 'model_context_exceeded' && this.#squeezes < SQUEEZES) {
      this.#squeezes++;
      return { type: 'step.failed', failure, retryMs: 0, tokens: this.#report() };
    }
    const backOff = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, MAX_PAUSE_MS);
    this.#failures++;
    return {
      type: 'step.failed',
      failure,
      retryMs: retryMs === undefined ? backOff : retryMs,
      tokens: this.#report(),
    };
  }

  /** Returns the tokens since the last report. */
  #report(): number {
    const tokens = this.#unreported;
    this.#unreported = 0;
    return tokens;
  }

  #addResult({ callId, name }: ToolCallPart, outcome: ToolOutcome): void {
    if (this.#isOver) return;
    const { status, text, images = [], touchedCells = [] } = outcome;
    const assets = new Map<AssetId, Asset>();
    const shown = images.map((image) => this.#shelve(image, assets));
    const touched =
      touchedCells.length === 0 ? {} : { touchedCells: touchedCells.slice(0, MAX_TOUCHED_CELLS) };
    const result = { type: 'tool-result', callId, name, status, output: text, images: shown } as const;
    this.#append({ role: 'tool', content: [{ ...result, ...touched }], assets });
  }

  #shelve({ mimetype, bytes }: ToolImage, assets: Map<AssetId, Asset>): ShownImage {
    const assetId = newId<AssetId>('asset');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    assets.set(assetId, { mimetype, bytes, sha256 });
    this.#assets.push({ type: 'asset', assetId, mimetype, bytes: bytes.byteLength, sha256 });
    return { mimetype, assetId };
  }

  #append(entry: Omit<Parameters<LiveConversation['append']>[0], 'runId'>): void {
    this.#entries.push(this.#options.conversation.append({ ...entry, runId: this.runId }));
  }
}

const NO_TOKENS: Required<TokenUsage> = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimatedCalls: 0,
};

function outcomeOf(status: 'cancelled' | 'failed', failure: Failure | null): PromptOutcome {
  return failure !== null && LIMITS.includes(failure.code) ? 'limit' : status;
}

/** Returns the kind of a failure, from a short fixed list. */
function errorTypeOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'cancelled';
  return error instanceof ModelFailure ? error.failure.code : '_OTHER';
}

const REFUSED: Failure = { code: 'model_refused', message: 'The model refused to answer.' };
