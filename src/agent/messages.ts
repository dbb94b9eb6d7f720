/** From the entries of a conversation to the messages that the AI SDK sends. Valid for every vendor: each call has one result. */
import type { AssistantModelMessage, JSONValue, ModelMessage, ToolModelMessage } from 'ai';
import { type KeptEntry, type ProviderData, type ToolResultPart, textOf } from './entry.ts';

type ToolContent = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>;
type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number];
type ProviderOptions = Record<string, Record<string, JSONValue>>;

export interface MessageOptions {
  /** The model that reads them: what another model's provider signed is of no use to it. */
  readonly modelId: string;
  readonly seesImages: boolean;
  readonly image: (runId: string, assetId: string) => Uint8Array | undefined;
}

export function messagesOf(entries: readonly KeptEntry[], options: MessageOptions): ModelMessage[] {
  const messages = entries.flatMap((kept) => messagesOfEntry(kept, options));
  const last = messages.at(-1);
  // Everything up to here is the same in the next step: Anthropic keeps it if it is asked to.
  if (last !== undefined) last.providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  return messages;
}

function messagesOfEntry(kept: KeptEntry, options: MessageOptions): ModelMessage[] {
  const { entry } = kept;
  if (entry.role === 'user') return [{ role: 'user', content: textOf(entry) }];
  if (entry.role === 'assistant') {
    const content = assistantParts(kept, options.modelId);
    return content.length === 0 ? [] : [{ role: 'assistant', content }];
  }
  const results = entry.content.filter((part) => part.type === 'tool-result');
  return [{ role: 'tool', content: results.map((part) => toolContent(part, entry.runId ?? '', options)) }];
}

function assistantParts({ entry, model, provider }: KeptEntry, modelId: string): AssistantPart[] {
  const isOwn = model === modelId;
  return entry.content.flatMap((part, i): AssistantPart[] => {
    const data = provider[i] ?? null;
    const options = isOwn && data !== null ? { providerOptions: data as ProviderOptions } : {};
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
export function asData(text: string): string {
  return `<${TAG}>\n${text.replaceAll(TAG, 'untrusted data')}\n</${TAG}>`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
