/** Shows an agent at work: its text as it arrives, and each tool call as one line. */

import { cutText } from '#src/base/text/cut-text.ts';
import type { AgentEntry, AgentSession } from '#src/contract/wire/agent.ts';
import type { AgentStreamEvent } from '#src/contract/wire/events.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { safeLine, safeText } from '../safe-text.ts';
import { type Style, styleOf } from '../style.ts';
import type { Terminal } from '../terminal.ts';

const MAX_INPUT_LENGTH = 100;

/** How a prompt ended that did not complete, in words. */
const OUTCOMES: Readonly<Record<NonNullable<AgentEntry['outcome']>, string>> = {
  cancelled: 'cancelled',
  failed: 'failed',
  limit: 'stopped at a limit',
  stale: 'cut off when the server stopped',
};

/** The output for one prompt. */
export class ConversationScreen {
  readonly #terminal: Terminal;
  readonly #style: Style;
  readonly #names = new Map<string, string>();
  #isInLine = false;
  /** The id of the entry whose text was streamed. The text of that entry is not shown again. */
  #streamed = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#style = styleOf(terminal.color);
  }

  /** Shows an event of the run. */
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
      this.note(`▸ ${name} ${oneLine(JSON.stringify(input) ?? '')}`);
    } else if (event.type === 'tool-result' && event.data.status !== 'completed') {
      const { callId, output, status } = event.data;
      this.note(`  ${this.#names.get(callId) ?? callId} ${status}: ${oneLine(String(output))}`);
    } else if (event.type === 'session.status' && event.data.reason !== undefined) {
      this.note(`  waiting for the model: ${event.data.reason}`);
    }
  }

  /** Shows the parts that only the finished run contains: its warnings, and the reason why it failed. */
  finish({ status, error, output, stale }: Run): void {
    this.#endLine();
    for (const part of output?.parts ?? []) {
      if (part.type === 'warning') this.#terminal.err(`${this.#style.yellow('warning')} ${part.message}\n`);
    }
    if (stale === true) this.#terminal.err('the server stopped unexpectedly during this run\n');
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

  /** Shows a line about the work, which is not part of the answer. */
  note(text: string): void {
    this.#endLine();
    this.#terminal.err(`${this.#style.dim(text)}\n`);
  }

  #endLine(): void {
    if (this.#isInLine) this.#terminal.out('\n');
    this.#isInLine = false;
  }
}

/** Returns a whole stored conversation as text. */
export function conversationText(session: AgentSession, color: boolean): string {
  const style = styleOf(color);
  const lines = session.entries.flatMap((entry) => {
    if (entry.role === 'user') {
      const prompt = ['', style.bold(`> ${visible(textOf(entry))}`)];
      return entry.outcome === undefined ? prompt : [...prompt, style.red(OUTCOMES[entry.outcome])];
    }
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

/** Returns the text without colours, because a model can write anything. */
function visible(text: string): string {
  return safeText(text, { colors: false });
}

function oneLine(text: string): string {
  const line = safeLine(text.replace(/\s+/g, ' '));
  return line.length > MAX_INPUT_LENGTH ? `${cutText(line, 0, MAX_INPUT_LENGTH)}…` : line;
}
