import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { anySignal } from '#src/base/async/any-signal.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, EXIT } from '../exit-code.ts';
import { FullScreen } from '../full-screen.ts';
import { Interruption } from '../run/interruption.ts';
import { type Style, styleOf } from '../style.ts';
import { printJson, printJsonLine } from '../terminal.ts';
import { type TopSample, topSample } from '../top/top-sample.ts';
import { topLines } from '../top/top-view.ts';

interface TopOptions {
  readonly interval: number;
  readonly once?: true;
}

const DEFAULT_INTERVAL_S = 2;
/** The pause between the two measurements of the first sample. */
const FIRST_MS = 600;
const UNBOUNDED = { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };

/** `troupe top`: the resources that the server and its kernels use, live. */
export const top: CommandGroup = (program, context) => {
  const command = program
    .command('top')
    .summary('show what the server and its kernels use, as it changes')
    .description(
      'show what the server and its kernels use, as it changes; q or Ctrl-C ends it. The command needs a token with the scope ' +
        'server:observe, such as the first token, and wakes no session.',
    )
    .option('--interval <seconds>', 'time between two measurements', interval, DEFAULT_INTERVAL_S)
    .option('--once', 'print the use once, and end')
    .action(async (options: TopOptions, cmd) => {
      const client = context.connect(cmd, { needsWorkspace: false });
      const json = context.wantsJson(cmd);
      const { terminal } = context;
      const style = styleOf(terminal.color);
      if (options.once === true) {
        const { value } = await samplesOf(client, 0).next();
        if (value === undefined) return;
        if (json) printJson(terminal, value);
        else terminal.out(textOf(value, style));
      } else if (json || context.screen === undefined) {
        for await (const sample of samplesOf(client, options.interval * 1000)) {
          if (json) printJsonLine(terminal, sample);
          else terminal.out(`${textOf(sample, style)}\n`);
        }
      } else await fill(context, client, options.interval * 1000, style);
    });
  examples(command, ['troupe top', 'troupe top --once', "troupe top --json | jq '.kernels[0]'"]);
};

/** Yields samples until the signal aborts: the first after `FIRST_MS`, then one in each interval. */
async function* samplesOf(
  client: Client,
  intervalMs: number,
  signal?: AbortSignal,
): AsyncGenerator<TopSample, undefined> {
  let before = await client.server({ signal });
  for (let pauseMs = FIRST_MS; ; ) {
    await sleep(pauseMs, undefined, signal === undefined ? {} : { signal });
    const now = await client.server({ signal });
    // Both states have the same measurement when a server with many kernels measures less often.
    const isSame = now.sampledAt === before.sampledAt;
    pauseMs = isSame ? FIRST_MS : intervalMs;
    if (isSame) continue;
    yield topSample(before, now);
    before = now;
  }
}

/** Fills the screen until the user ends it. */
async function fill(
  { screen: device, input }: CliContext,
  client: Client,
  intervalMs: number,
  style: Style,
): Promise<void> {
  if (device === undefined) return;
  const interruption = new Interruption(input);
  const quit = new AbortController();
  const keys = input.onKey?.((key) => {
    if (key === 'q' || key === '\u0004') quit.abort();
    if (key === '\u0003') quit.abort(new CommandEnd(EXIT.cancelled));
  });
  let latest: TopSample | undefined;
  const draw = () => {
    screen.draw(latest === undefined ? ['Reading …'] : topLines(latest, screen.size(), style));
  };
  const screen = new FullScreen(device, () => draw());
  try {
    draw();
    for await (const sample of samplesOf(client, intervalMs, anySignal(interruption.stop, quit.signal))) {
      latest = sample;
      draw();
    }
  } catch (error) {
    interruption.stop.throwIfAborted();
    if (!quit.signal.aborted) throw error;
    if (quit.signal.reason instanceof CommandEnd) throw quit.signal.reason;
  } finally {
    screen[Symbol.dispose]();
    keys?.[Symbol.dispose]();
    interruption[Symbol.dispose]();
  }
}

function textOf(sample: TopSample, style: Style): string {
  return topLines(sample, UNBOUNDED, style)
    .map((line) => `${line}\n`)
    .join('');
}

function interval(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 0.2 && seconds <= 3600))
    throw new InvalidArgumentError('It must be a number of seconds from 0.2 to 3600.');
  return seconds;
}
