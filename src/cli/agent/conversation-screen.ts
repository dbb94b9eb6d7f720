/** Shows an agent at work: what it says as it says it, what it does in one line each. */
import type { AgentEntry, AgentSession } from '#src/client/agent-sessions.ts';
import type { AgentStreamEvent } from '#src/client/events.ts';
import type { Run } from '#src/client/runs.ts';
import { type Style, styleOf } from '../style.ts';
import type { Terminal } from '../terminal.ts';

const SHOWN_INPUT = 100;

export class ConversationScreen {
  readonly #terminal: Terminal;
  readonly #style: Style;
  readonly #names = new Map<string, string>();
  #isInLine = false;
  /** The entry whose text was streamed, so that it is not shown again. */
  #streamed = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#style = styleOf(terminal.color);
  }

  /** Takes an event of the run that is shown. */
  take(event: AgentStreamEvent): void {
    if (event.type === 'text-delta') {
      if (this.#streamed !== event.data.entryId) this.#endLine();
      this.#streamed = event.data.entryId;
      this.#say(event.data.text);
    } else if (event.type === 'agent-entry') {
      const { id, role } = event.data;
      if (role === 'assistant' && id !== this.#streamed) this.#say(textOf(event.data));
      this.#endLine();
    } else if (event.type === 'tool-call') {
      const { callId, name, input } = event.data;
      this.#names.set(callId, name);
      this.#note(`▸ ${name} ${oneLine(JSON.stringify(input) ?? '')}`);
    } else if (event.type === 'tool-result' && event.data.status !== 'completed') {
      const { callId, output, status } = event.data;
      this.#note(`  ${this.#names.get(callId) ?? callId} ${status}: ${oneLine(String(output))}`);
    } else if (event.type === 'session.status' && event.data.reason !== undefined) {
      this.#note(`  waiting for the model: ${event.data.reason}`);
    }
  }

  /** What the end of the run adds to what was seen of it. */
  finish({ status, error, output, stale }: Run): void {
    this.#endLine();
    for (const part of output?.parts ?? []) {
      if (part.type === 'warning') this.#terminal.err(`${this.#style.yellow('warning')} ${part.message}\n`);
    }
    if (stale === true) this.#terminal.err('the server died while this ran\n');
    else if (status !== 'completed') {
      const why = error === null ? '' : ` ${error.code}: ${error.message}`;
      this.#terminal.err(`${this.#style.red(status)}${why}\n`);
    }
  }

  #say(text: string): void {
    const clean = visible(text);
    if (clean === '') return;
    this.#terminal.out(clean);
    this.#isInLine = !clean.endsWith('\n');
  }

  #note(text: string): void {
    this.#endLine();
    this.#terminal.err(`${this.#style.dim(text)}\n`);
  }

  #endLine(): void {
    if (this.#isInLine) this.#terminal.out('\n');
    this.#isInLine = false;
  }
}

/** A whole conversation, as it is kept. */
export function conversationText(session: AgentSession, color: boolean): string {
  const style = styleOf(color);
  const lines = session.entries.flatMap((entry) => {
    if (entry.role === 'user') return ['', style.bold(`> ${visible(textOf(entry))}`)];
    return entry.content.flatMap((part) => {
      if (part.type === 'text') return part.text === '' ? [] : ['', visible(part.text)];
      if (part.type === 'tool-call') {
        return [style.dim(`▸ ${part.name} ${oneLine(JSON.stringify(part.input) ?? '')}`)];
      }
      if (part.type === 'tool-result' && part.status !== 'completed') {
        return [style.dim(`  ${part.name} ${part.status}: ${oneLine(part.output)}`)];
      }
      return [];
    });
  });
  const { sessionId, status, config, environmentId } = session;
  const head = `${sessionId}  ${status}  ${config.model ?? 'no model'}  ${environmentId ?? ''}`;
  return `${style.dim(head.trimEnd())}\n${lines.join('\n')}\n`;
}

function textOf({ content }: AgentEntry): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** A model can write anything: none of it may move the cursor. */
function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g, '');
}

function oneLine(text: string): string {
  const line = visible(text.replace(/\s+/g, ' '));
  return line.length > SHOWN_INPUT ? `${line.slice(0, SHOWN_INPUT)}…` : line;
}
