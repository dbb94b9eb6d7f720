/**
 * From the entries of a conversation to the messages that the AI SDK sends. Valid for every vendor: each call has one result,
 * the results of a step are one message, and a person never speaks twice in a row.
 */
import type { LanguageModelV3Message, SharedV3ProviderOptions } from '@ai-sdk/provider';
import { type ProviderData, type StoredEntry, type ToolResultPart, textOf } from './entry.ts';

type MessageOf<Role> = Extract<LanguageModelV3Message, { role: Role }>;
type ToolContent = Extract<MessageOf<'tool'>['content'][number], { type: 'tool-result' }>;
type AssistantPart = MessageOf<'assistant'>['content'][number];

export interface MessageOptions {
  /** The model that reads them: what another model's provider signed is of no use to it. */
  readonly modelId: string;
  readonly seesImages: boolean;
  readonly image: (runId: string, assetId: string) => Uint8Array | undefined;
}

export function messagesOf(
  entries: readonly StoredEntry[],
  options: MessageOptions,
): LanguageModelV3Message[] {
  const messages: LanguageModelV3Message[] = [];
  for (const kept of entries) {
    const message = messageOf(kept, options);
    const before = messages.at(-1);
    if (message?.role === 'tool' && before?.role === 'tool') before.content.push(...message.content);
    else if (message?.role === 'user' && before?.role === 'user') before.content.push(...message.content);
    else if (message !== undefined) messages.push(message);
  }
  for (const message of messages) if (message.role === 'user') message.content = [joined(message.content)];
  const last = messages.at(-1);
  // Everything up to here is the same in the next step: Anthropic keeps it if it is asked to.
  if (last !== undefined) last.providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  return messages;
}

function messageOf(kept: StoredEntry, options: MessageOptions): LanguageModelV3Message | undefined {
  const { entry } = kept;
  if (entry.role === 'user') return { role: 'user', content: [{ type: 'text', text: textOf(entry) }] };
  if (entry.role === 'assistant') {
    const content = assistantParts(kept, options.modelId);
    return content.length === 0 ? undefined : { role: 'assistant', content };
  }
  const results = entry.content.filter((part) => part.type === 'tool-result');
  return { role: 'tool', content: results.map((part) => toolContent(part, entry.runId ?? '', options)) };
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
    // Without its signature no provider takes it back.
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
  runId: string,
  { seesImages, image }: MessageOptions,
): ToolContent {
  const text = asData(output);
  const common = { type: 'tool-result', toolCallId: callId, toolName: name } as const;
  if (status !== 'completed') return { ...common, output: { type: 'error-text', value: text } };
  const shown = images.flatMap(({ assetId, mimetype }) => {
    const bytes = seesImages ? image(runId, assetId) : undefined;
    if (bytes === undefined) return [];
    return [
      { type: 'image-data' as const, data: Buffer.from(bytes).toString('base64'), mediaType: mimetype },
    ];
  });
  const unseen = images.length - shown.length;
  const note = unseen === 0 ? '' : `\n[${unseen} image${unseen === 1 ? '' : 's'} that you cannot see]`;
  if (shown.length === 0) return { ...common, output: { type: 'text', value: text + note } };
  return {
    ...common,
    output: { type: 'content', value: [{ type: 'text', text: text + note }, ...shown] },
  };
}

const TAG = 'untrusted-data';

/** Marks what came out of data or outputs, so that instructions inside it are not taken for the person's. */
function asData(text: string): string {
  return `<${TAG}>\n${text.replaceAll(TAG, 'untrusted data')}\n</${TAG}>`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
