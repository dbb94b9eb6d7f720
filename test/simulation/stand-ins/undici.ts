/**
 * `undici` for the server of a simulation: its only host has a scripted model behind the protocol of OpenAI. The last message of a request
 * says how the model answers (`prompt-text.ts`). Bytes arrive after drawn times, until the server leaves.
 */
import { answerPieces, behaviourOf, CUT_ANSWER, type Prompt } from '../users/prompt-text.ts';
import { executionsOf, noteExecution } from '../world/executions.ts';
import { type World, world } from '../world/world.ts';

interface Handler {
  onConnect(abort: () => void): void;
  onHeaders(status: number, headers: Buffer[]): boolean;
  onData(chunk: Buffer): boolean;
  onComplete(trailers: null): void;
  onError(error: Error): void;
}

interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
}

const CONNECT_MS = 2;
const PIECE_MS = 15;
const SLOW_PIECE_MS = 300;
const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const TOOL = 'list_datasources';

export class Agent {
  dispatch({ body }: { readonly body: string }, handler: Handler): boolean {
    new Exchange(JSON.parse(body) as { messages: ChatMessage[] }, handler).begin();
    return true;
  }
}

/** One request to the model. */
class Exchange {
  readonly #world: World = world();
  readonly #life = world().life;
  readonly #handler: Handler;
  readonly #messages: readonly ChatMessage[];
  #isOver = false;

  constructor({ messages }: { readonly messages: readonly ChatMessage[] }, handler: Handler) {
    this.#messages = messages;
    this.#handler = handler;
  }

  begin(): void {
    this.#world.count('questions to models');
    const prompt = behaviourOf(
      this.#messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content)),
    );
    const hasResult = this.#messages.at(-1)?.role !== 'user';
    this.#after(CONNECT_MS, () => {
      this.#handler.onConnect(() => {
        this.#isOver = true;
      });
      if (prompt === undefined) {
        this.#refuse();
        return;
      }
      if (!hasResult) noteExecution(this.#world, prompt.token);
      this.#after(PIECE_MS, () => this.#answer(prompt, hasResult));
    });
  }

  #answer({ behaviour, token }: Prompt, hasResult: boolean): void {
    if (behaviour === 'refuse') {
      this.#refuse();
      return;
    }
    const head = ['content-type', 'text/event-stream'].map((text) => Buffer.from(text));
    this.#handler.onHeaders(200, head);
    if (behaviour === 'work' && !hasResult) {
      const call = {
        index: 0,
        id: `call_${token}`,
        type: 'function',
        function: { name: TOOL, arguments: '{}' },
      };
      this.#send([{ tool_calls: [call] }], 'tool_calls');
    } else if (behaviour === 'hang') this.#say([{ content: CUT_ANSWER }]);
    else if (behaviour === 'break') this.#send([{ content: CUT_ANSWER }], undefined);
    else {
      const pieces = answerPieces(token).map((content) => ({ content }));
      const isFirst = executionsOf(this.#world).get(token)?.times === 1;
      if (behaviour === 'falter' && isFirst) this.#send(pieces.slice(0, 2), undefined);
      else this.#send(pieces, 'stop');
    }
  }

  /** Sends the pieces of an answer, and its end; without `finish` the connection breaks. */
  #send(deltas: readonly object[], finish: string | undefined): void {
    const [first, ...rest] = deltas;
    if (first !== undefined) {
      this.#say([first]);
      const { ofKernels, nature } = this.#world;
      this.#after(ofKernels.is(nature.slowKernel) ? SLOW_PIECE_MS : PIECE_MS, () => this.#send(rest, finish));
      return;
    }
    if (finish === undefined) {
      this.#isOver = true;
      this.#handler.onError(new Error('other side closed'));
      return;
    }
    this.#say([{}], finish);
    this.#data({ ...envelope([]), usage: USAGE });
    this.#handler.onData(Buffer.from('data: [DONE]\n\n'));
    this.#isOver = true;
    this.#handler.onComplete(null);
  }

  #say(deltas: readonly object[], finish: string | null = null): void {
    this.#data(envelope(deltas.map((delta) => ({ index: 0, delta, finish_reason: finish }))));
  }

  #data(value: object): void {
    this.#handler.onData(Buffer.from(`data: ${JSON.stringify(value)}\n\n`));
  }

  #refuse(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onHeaders(
      500,
      ['content-type', 'application/json'].map((text) => Buffer.from(text)),
    );
    this.#handler.onData(Buffer.from('{"error":{"message":"no"}}'));
    this.#handler.onComplete(null);
  }

  #after(mostMs: number, act: () => void): void {
    const delayMs = 0.1 + this.#world.ofKernels.next() * mostMs;
    const unlessOver = () => {
      if (!this.#isOver) act();
    };
    this.#world.after(delayMs, unlessOver, this.#life);
  }
}

function envelope(choices: readonly object[]): object {
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as readonly { readonly text?: string }[]).map(({ text = '' }) => text).join('');
}

export default { Agent };
