/** Commands of UI elements that wait for the kernel, and take in those that come meanwhile. */
import { isRecord } from '#src/confined/processes/json-shape.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import { charsOfValue } from '../open/held-chars.ts';

export interface WaitingCommand {
  /** Returns the command for the kernel. The call costs as much as all that waits, so it is made when the kernel takes the command. */
  command(): ElementCommand;
  /**
   * Returns how a later command is taken in; undefined when both are needed. The cost is that of the later command, however much
   * waits: a page sends one for each movement of a slider.
   */
  joining(later: ElementCommand): Joining | undefined;
}

export interface Joining {
  /** By how many characters the waiting command grows. */
  readonly chars: number;
  readonly apply: () => void;
  /** The values of elements that later values replace. */
  readonly replaced?: readonly unknown[];
}

/** Returns the waiting form of a command, and its characters. */
export function waitingCommand(command: ElementCommand): {
  readonly waiting: WaitingCommand;
  readonly chars: number;
} {
  const waiting = emptyFor(command);
  const first = waiting?.joining(command);
  if (waiting === undefined || first === undefined)
    return { waiting: new WholeCommand(command), chars: charsOfValue(command) };
  first.apply();
  return { waiting, chars: first.chars };
}

function emptyFor(command: ElementCommand): WaitingCommand | undefined {
  if (command.type === 'update-ui-element') return new WaitingValues();
  return command.type === 'model' ? new WaitingUpdate(command.modelId) : undefined;
}

/** A command that is replaced by a later one as a whole, or not at all. */
class WholeCommand implements WaitingCommand {
  #command: ElementCommand;

  constructor(command: ElementCommand) {
    this.#command = command;
  }

  command(): ElementCommand {
    return this.#command;
  }

  joining(later: ElementCommand): Joining | undefined {
    if (this.#command.type !== 'validate-sql' || later.type !== 'validate-sql') return undefined;
    return {
      chars: charsOfValue(later) - charsOfValue(this.#command),
      apply: () => {
        this.#command = later;
      },
    };
  }
}

interface Counted<T> {
  readonly value: T;
  readonly chars: number;
}

/** Values of elements: the last one of each element counts. */
class WaitingValues implements WaitingCommand {
  readonly #values = new Map<string, Counted<unknown>>();

  command(): ElementCommand {
    const values = Array.from(this.#values.values(), ({ value }) => value);
    return { type: 'update-ui-element', objectIds: [...this.#values.keys()], values };
  }

  joining(later: ElementCommand): Joining | undefined {
    if (later.type !== 'update-ui-element') return undefined;
    const last = new Map(later.objectIds.map((id, at) => [id, later.values[at]]));
    const counted = Array.from(last, ([id, value]) => [id, countedEntry(id, value)] as const);
    return {
      chars: counted.reduce((sum, [id, { chars }]) => sum + chars - (this.#values.get(id)?.chars ?? 0), 0),
      replaced: counted.flatMap(([id]) => this.#values.get(id)?.value ?? []),
      apply: () => {
        for (const [id, entry] of counted) this.#values.set(id, entry);
      },
    };
  }
}

/** Changes of a widget's traits. A new value of a trait takes the place of the earlier one and of its binary parts. */
class WaitingUpdate implements WaitingCommand {
  readonly #modelId: string;
  readonly #state = new Map<string, Counted<unknown>>();
  /** The binary parts of each trait. */
  readonly #parts = new Map<string, { readonly parts: Part[]; chars: number }>();

  constructor(modelId: string) {
    this.#modelId = modelId;
  }

  command(): ElementCommand {
    const state = Object.fromEntries(Array.from(this.#state, ([trait, { value }]) => [trait, value]));
    const parts = Array.from(this.#parts.values()).flatMap((one) => one.parts);
    return {
      type: 'model',
      modelId: this.#modelId,
      message: { method: 'update', state, bufferPaths: parts.map(([path]) => path) },
      buffers: parts.map(([, buffer]) => buffer),
    };
  }

  joining(later: ElementCommand): Joining | undefined {
    if (later.type !== 'model' || later.modelId !== this.#modelId) return undefined;
    const update = updateOf(later);
    if (update === undefined) return undefined;
    const state = Object.entries(update.state).map(
      ([trait, value]) => [trait, countedEntry(trait, value)] as const,
    );
    const parts = update.parts.map((part) => ({ part, chars: charsOfValue(part) }));
    const replaced = (trait: string) =>
      (this.#state.get(trait)?.chars ?? 0) + (this.#parts.get(trait)?.chars ?? 0);
    return {
      chars:
        state.reduce((sum, [trait, { chars }]) => sum + chars - replaced(trait), 0) +
        parts.reduce((sum, { chars }) => sum + chars, 0),
      apply: () => {
        for (const [trait, entry] of state) {
          this.#state.set(trait, entry);
          this.#parts.delete(trait);
        }
        for (const { part, chars } of parts) this.#addPart(part, chars);
      },
    };
  }

  #addPart(part: Part, chars: number): void {
    const trait = String(part[0][0]);
    const known = this.#parts.get(trait);
    if (known === undefined) this.#parts.set(trait, { parts: [part], chars });
    else {
      known.parts.push(part);
      known.chars += chars;
    }
  }
}

function countedEntry(name: string, value: unknown): Counted<unknown> {
  return { value, chars: charsOfValue([name, value]) };
}

/** A binary value, with its place in the state. */
type Part = readonly [path: readonly unknown[], buffer: string];

interface Update {
  readonly state: Readonly<Record<string, unknown>>;
  readonly parts: readonly Part[];
}

/** Returns the new state of a widget in a message to it; undefined when it has another form. */
function updateOf({
  message,
  buffers,
}: Extract<ElementCommand, { readonly type: 'model' }>): Update | undefined {
  const { method, state, bufferPaths = [] } = message;
  if (method !== 'update' || !isRecord(state) || !Array.isArray(bufferPaths)) return undefined;
  if (bufferPaths.length !== buffers.length || !bufferPaths.every(Array.isArray)) return undefined;
  return { state, parts: buffers.map((buffer, at) => [bufferPaths[at] ?? [], buffer]) };
}
