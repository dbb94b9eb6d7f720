import type { Log } from '#src/base/log/log.ts';
import type { ToolCallPart } from '#src/contract/wire/agent.ts';
import type { ToolDeclaration } from '../models/model-call.ts';
import { failed, shortened, type Tool, type ToolCall, type ToolOutcome } from './tool.ts';

/** The tools of one prompt. Calls that need the notebook to themselves wait for each other. */
export class Toolbox<Call extends ToolCall = ToolCall> {
  readonly #tools: ReadonlyMap<string, Tool<Call>>;
  readonly #log: Log;
  #line: Promise<unknown> = Promise.resolve();

  constructor(tools: readonly Tool<Call>[], log: Log) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#log = log;
  }

  get declarations(): ToolDeclaration[] {
    return [...this.#tools.values()].map(({ name, description, schema }) => ({ name, description, schema }));
  }

  knows(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Runs a tool. Never rejects. */
  async run({ name, input, callId }: ToolCallPart, call: Call): Promise<ToolOutcome> {
    const tool = this.#tools.get(name);
    if (tool === undefined) {
      return failed(`There is no tool ${name}. There are: ${[...this.#tools.keys()].join(', ') || 'none'}.`);
    }
    try {
      const outcome = tool.exclusive
        ? await this.#inLine(() => tool.run(input, call))
        : await tool.run(input, call);
      return shortened(outcome);
    } catch (error) {
      this.#log.error({ err: error, tool: name, callId }, 'a tool failed');
      return failed(`The tool ${name} failed, through a fault of the server.`);
    }
  }

  #inLine<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#line.then(work);
    this.#line = turn.catch(() => {}); // the caller of `#inLine` handles the error; the next call must run despite it
    return turn;
  }
}
