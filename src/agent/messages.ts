/**
 * Converts the entries of a conversation to the messages that the AI SDK sends. The messages are valid for every
 * vendor, even when damaged entries were left out: within an answer each call has a unique id, each call has exactly
 * one result, the results of an answer are one message, and user and model take turns, beginning with the user.
 */
import type { LanguageModelV3Message, SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { ShownImage, ToolResultPart } from '#src/contract/wire/agent.ts';
import { distinctIds, entryText, type ProviderData, ResultsOfAnswer, type StoredEntry } from './entry.ts';
import { asData } from './tools/as-data.ts';

type MessageOf<Role> = Extract<LanguageModelV3Message, { role: Role }>;
type ToolContent = Extract<MessageOf<'tool'>['content'][number], { type: 'tool-result' }>;
type AssistantPart = MessageOf<'assistant'>['content'][number];

/** The most pictures of a conversation that are sent: its last ones, with every request. */
export const MAX_SHOWN_IMAGES = 10;
/** How many pictures are left out at a time. */
const IMAGES_AT_ONCE = 5;
/** The limit for the total bytes of these pictures. Vendors accept requests of some 30 MB, and base64 adds a third. */
export const MAX_SHOWN_IMAGE_BYTES = 12 * 1024 * 1024;

export interface MessageOptions {
  /** The model that gets the messages: it cannot use data signed by another model's provider. */
  readonly modelId: string;
  readonly seesImages: boolean;
  readonly image: (runId: string, assetId: string) => Uint8Array | undefined;
}

/** The bytes of the pictures that are sent, by the member of a result that names the picture. */
type ShownImages = ReadonlyMap<ShownImage, Uint8Array>;

export function messagesOf(
  entries: readonly StoredEntry[],
  options: MessageOptions,
): LanguageModelV3Message[] {
  const messages: LanguageModelV3Message[] = [];
  const shown = lastImages(entries, options);
  for (const [i, kept] of entries.entries()) {
    const before = messages.at(-1);
    if (kept.entry.role === 'user') {
      const part = { type: 'text' as const, text: entryText(kept.entry) };
      if (before?.role === 'user') before.content.push(part);
      else messages.push({ role: 'user', content: [part] });
    } else if (kept.entry.role === 'assistant') {
      const { content, results } = answerOf(kept, entries, i, options, shown);
      if (content.length === 0) continue;
      if (before?.role !== 'user' && before?.role !== 'tool') messages.push(lostPrompt());
      messages.push({ role: 'assistant', content });
      if (results.length > 0) messages.push({ role: 'tool', content: results });
    }
  }
  for (const message of messages) if (message.role === 'user') message.content = [joined(message.content)];
  const last = messages.at(-1);
  // Everything up to this point is unchanged in the next step; Anthropic caches it on request.
  if (last !== undefined) last.providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  return messages;
}

/** Returns the last pictures of the conversation, as many as both limits allow. */
function lastImages(entries: readonly StoredEntry[], { seesImages, image }: MessageOptions): ShownImages {
  const shown = new Map<ShownImage, Uint8Array>();
  if (!seesImages) return shown;
  let bytes = 0;
  for (const { runId, named } of candidates(entries).toReversed()) {
    const found = image(runId, named.assetId);
    if (found === undefined) continue;
    bytes += found.byteLength;
    if (bytes > MAX_SHOWN_IMAGE_BYTES) break;
    shown.set(named, found);
  }
  return shown;
}

/**
 * Returns the last pictures in order, as many as may be sent. A provider's cache serves the part of a request that equals an
 * earlier one, and leaving out a picture changes that part, so five pictures are left out at a time. The pictures of the last
 * result are always kept.
 */
function candidates(entries: readonly StoredEntry[]) {
  const all: { readonly runId: string; readonly named: ShownImage }[] = [];
  let lastResult = 0;
  for (const { entry } of entries) {
    for (const part of entry.content) {
      // The result of a failed call is sent without its pictures.
      if (part.type !== 'tool-result' || part.status !== 'completed' || part.images.length === 0) continue;
      lastResult = all.length;
      for (const named of part.images) all.push({ runId: entry.runId ?? '', named });
    }
  }
  const excess = Math.max(0, all.length - MAX_SHOWN_IMAGES);
  const rounded = Math.ceil(excess / IMAGES_AT_ONCE) * IMAGES_AT_ONCE;
  return all.slice(Math.max(excess, Math.min(rounded, lastResult)));
}

const LOST_RESULT = 'The result of this call is lost.';
const lostPrompt = (): MessageOf<'user'> => ({
  role: 'user',
  content: [{ type: 'text', text: '[The prompt that was here is lost.]' }],
});

/** Returns the answer at `index` and one result for each of its calls. A result that belongs to no call is left out. */
function answerOf(
  kept: StoredEntry,
  entries: readonly StoredEntry[],
  index: number,
  options: MessageOptions,
  shown: ShownImages,
): { readonly content: AssistantPart[]; readonly results: ToolContent[] } {
  const found = new ResultsOfAnswer(entries, index);
  const distinct = distinctIds();
  const results: ToolContent[] = [];
  const content = assistantParts(kept, options.modelId).map((part) => {
    if (part.type !== 'tool-call') return part;
    const callId = distinct(part.toolCallId);
    const lost = { type: 'tool-result', name: part.toolName, status: 'failed', output: LOST_RESULT } as const;
    const result = found.take(part.toolCallId) ?? { ...lost, images: [] };
    results.push(toolContent({ ...result, callId }, options, shown));
    return { ...part, toolCallId: callId };
  });
  return { content, results };
}

/** Prompts without an answer between them. */
function joined(parts: MessageOf<'user'>['content']): MessageOf<'user'>['content'][number] {
  return { type: 'text', text: parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n\n') };
}

function assistantParts({ entry, model, provider }: StoredEntry, modelId: string): AssistantPart[] {
  const isOwn = model === modelId;
  return entry.content.flatMap((part, i): AssistantPart[] => {
    const data = provider[i] ?? null;
    const options = isOwn && data !== null ? { providerOptions: data as SharedV3ProviderOptions } : {};
    if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text, ...options }];
    // No provider accepts the reasoning again without its signature.
    if (part.type === 'reasoning')
      return isOwn && isSigned(data) ? [{ type: 'reasoning', text: part.text, ...options }] : [];
    if (part.type === 'tool-result') return [];
    const input = isObject(part.input) ? part.input : {};
    return [{ type: 'tool-call', toolCallId: part.callId, toolName: part.name, input, ...options }];
  });
}

function isSigned(data: ProviderData): boolean {
  return data !== null && ('anthropic' in data || 'openai' in data);
}

function toolContent(
  { callId, name, status, output, images }: ToolResultPart,
  { seesImages }: MessageOptions,
  shown: ShownImages,
): ToolContent {
  const text = asData(output);
  const common = { type: 'tool-result', toolCallId: callId, toolName: name } as const;
  if (status !== 'completed') return { ...common, output: { type: 'error-text', value: text } };
  const pictures = images.flatMap((named) => {
    const bytes = shown.get(named);
    if (bytes === undefined) return [];
    const data = Buffer.from(bytes).toString('base64');
    return [{ type: 'image-data' as const, data, mediaType: named.mimetype }];
  });
  const unseen = images.length - pictures.length;
  const why = seesImages ? 'left out to save room; call the tool again if needed' : 'that you cannot see';
  const note = unseen === 0 ? '' : `\n[${unseen} image${unseen === 1 ? '' : 's'} ${why}]`;
  if (pictures.length === 0) return { ...common, output: { type: 'text', value: text + note } };
  return {
    ...common,
    output: { type: 'content', value: [{ type: 'text', text: text + note }, ...pictures] },
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
