/** Commands for one kernel, and its answers in a form in which the scripted kernel and a real one can be compared. */
import type { KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import { openKernel, type TestHost } from '#test/confined/kernel-fixture.ts';
import { EXIT, FAIL, HANG, print, sleep } from './cell-code.ts';

/** The answers to each command: one line for each message, and what each cell has printed. */
export type Dialogue = Readonly<Record<string, readonly string[]>>;

/** Gives all kinds of commands to one kernel of `host`. Resolves with its answers. */
export async function hold(host: TestHost): Promise<Dialogue> {
  const answers: Record<string, readonly string[]> = {};
  const kernel = await openKernel(host, { a: print('one'), b: print('two'), c: '' });
  answers['the opening'] = shown(kernel.messages);
  const note = async (what: string, give: () => number, meanwhile?: () => Promise<unknown>) => {
    const outcome = kernel.outcome(give);
    await meanwhile?.();
    answers[what] = shown((await outcome).messages);
  };
  const execute = (codes: Readonly<Record<string, string>>) => () =>
    kernel.kernel.execute({ cellIds: Object.keys(codes), codes: Object.values(codes), fresh: false });
  const interrupted = (text: string) => async () => {
    await kernel.printed(text);
    kernel.kernel.interrupt();
  };
  await note('a run of one cell', execute({ a: print('one') }));
  await note(
    'a run of several cells with new code',
    execute({ a: print('three'), b: `${print('four')}\n${sleep(5)}`, c: '' }),
  );
  await note('an edit', () =>
    kernel.kernel.edit({ codes: { b: print('five'), d: print('six') }, configs: {}, deleteIds: [] }),
  );
  await note('a run after an edit', execute({ b: print('five') }));
  await note('a check of structure', () =>
    kernel.kernel.findErrors({ cellIds: ['a'], codes: { a: print('seven') } }),
  );
  await note('settings', () => kernel.kernel.configure({ a: { hideCode: true } }));
  await note('a run of a cell that fails', execute({ a: `${print('eight')}\n${FAIL}`, b: print('nine') }));
  await note('a run after a failure', execute({ a: print('ten') }));
  await note(
    'an interrupted run',
    execute({ a: `${print('begun')}\n${HANG}`, b: print('never') }),
    interrupted('begun'),
  );
  await note('a run after an interrupt', execute({ b: print('eleven') }));
  // The interrupt comes before the first cell or within its beginning: a real kernel does either.
  const atOnce = kernel.outcome(execute({ a: HANG, b: print('never') }));
  kernel.kernel.interrupt();
  const { done, statuses } = await atOnce;
  const isEnded = statuses.a === 'interrupted' || statuses.a === 'cancelled';
  answers['a run that is interrupted at once'] = [`${done.interrupted} ${isEnded} ${statuses.b}`];
  await note('a run before a deletion', execute({ a: print('twelve'), b: print('thirteen') }));
  await note('a deletion', () => kernel.kernel.edit({ codes: {}, configs: {}, deleteIds: ['d'] }));
  kernel.outcome(execute({ a: EXIT })).catch(() => undefined); // the kernel ends instead
  const { cause, message } = await kernel.exited;
  answers['the end'] = [`${cause}: ${message}`];
  return answers;
}

function shown(messages: readonly KernelMessage[]): string[] {
  const printed = new Map<string, string>();
  for (const message of messages) {
    if (message.op !== 'cell-op') continue;
    for (const { channel, data } of message.console ?? [])
      if (channel === 'stdout')
        printed.set(message.cellId, `${printed.get(message.cellId) ?? ''}${String(data)}`);
  }
  return [
    ...withSortedSets(messages.flatMap(lineOf)),
    ...[...printed].map(([cellId, text]) => `${cellId} printed ${JSON.stringify(text)}`),
  ];
}

/** marimo makes cells stale in the order of a Python set, which is another one in each process. */
function withSortedSets(lines: readonly string[]): string[] {
  const isOfSet = (line: string) => / stale$/.test(line);
  return lines.reduce<string[]>((sorted, line) => {
    let at = sorted.length;
    while (isOfSet(line) && at > 0 && isOfSet(sorted[at - 1]!) && sorted[at - 1]! > line) at--;
    return sorted.toSpliced(at, 0, line);
  }, []);
}

/** Returns nothing for a message that the server does not read, and for text, which may come in any pieces. */
function lineOf(message: KernelMessage): string[] {
  switch (message.op) {
    case 'execution':
      return [`${message.cellId} is ${message.phase}`];
    case 'variables':
      return [`variables ${message.variables.map(({ name }) => name).join()}`];
    case 'bridge-judged':
      return [`judged ${[...message.errors.keys()].join()}`];
    case 'bridge-done': {
      const cells = [...message.cells].sort(([one], [other]) => (one < other ? -1 : 1));
      const verdicts = cells.map(
        ([id, { status, stale, errors }]) => `${id} ${status} ${stale ? 'stale' : 'fresh'} ${errors.length}`,
      );
      return [
        `done ${message.seq} ${message.type} ${message.error} ${message.interrupted}: ${verdicts.join(', ')}`,
      ];
    }
    case 'cell-op': {
      const { cellId, status, staleInputs, output } = message;
      const facts = [
        ...(status === null ? [] : [status]),
        ...(staleInputs === null ? [] : [staleInputs ? 'stale' : 'fresh']),
        ...(output === null ? [] : [`${output.channel} ${output.mimetype} ${errorsOf(output.data)}`]),
      ];
      return facts.length === 0 ? [] : [`${cellId} ${facts.join(', ')}`];
    }
    default:
      return [];
  }
}

function errorsOf(data: unknown): string {
  if (!Array.isArray(data)) return JSON.stringify(data);
  return data.map((error: { readonly type: string }) => error.type).join();
}
