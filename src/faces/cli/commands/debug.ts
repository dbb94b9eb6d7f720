import { writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { Secret } from '#src/base/caller/secret.ts';
import { effectiveSettings } from '#src/base/config/report.ts';
import { VERSION } from '#src/base/install/version.ts';
import { scrubbedValue } from '#src/base/log/log-fields.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Actor } from '#src/contract/wire/actor.ts';
import { commandConfig, resolveAccess } from '../access.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure } from '../exit-code.ts';
import { plainPath } from '../plain-path.ts';
import { LiveLine } from '../run/live-line.ts';
import type { ServerFinding } from '../server-check.ts';
import { printJson } from '../terminal.ts';
import { findingsOf } from './doctor.ts';

const MAX_ACTORS = 1_000;

/** `troupe debug`: collects information about a problem. */
export const debug: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson, cwd, env } = context;
  const group = program.command('debug').description('collect the facts that a report of a problem needs');
  const bundle = group
    .command('bundle')
    .summary('write one file to attach to a report')
    .description(
      'write one file to attach to a report: settings without secrets, the findings of doctor, the state of the server, ' +
        'actors, metrics, and the last lines of the log. The file has ids of users, workspaces and notebooks, addresses and paths, but no code, no ' +
        'outputs and no credentials. Read the file before you give it away.',
    )
    .option('-o, --output <file>', 'file to write (default: troupe-debug-<time>.json); it must not exist')
    .action(async (options: { output?: string }, cmd) => {
      const { workspace } = cmd.optsWithGlobals();
      const workspaceId = typeof workspace === 'string' ? workspace : undefined;
      const line = new LiveLine(terminal, () => 'collecting');
      try {
        const collected = await collect(context, () => connect(cmd), workspaceId);
        const name =
          options.output ?? `troupe-debug-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.json`;
        const file = plainPath(name, cwd);
        writeNew(file, `${JSON.stringify(scrubbedValue(collected, secretsOf(env, cwd)), null, 1)}\n`);
        if (wantsJson(cmd)) printJson(terminal, { file });
        else line.terminal.out(`${file}\n`);
      } finally {
        line[Symbol.dispose]();
      }
    });
  examples(bundle, ['troupe debug bundle', 'troupe debug bundle -o report.json']);
};

/** Collects all parts. A part that cannot be read is replaced by the reason. */
async function collect(context: CliContext, connect: () => Client, workspaceId: string | undefined) {
  const { env, cwd } = context;
  const part = async <T>(read: () => T | Promise<T>): Promise<T | { readonly unavailable: string }> => {
    try {
      return await read();
    } catch (error) {
      return { unavailable: error instanceof Error ? error.message : String(error) };
    }
  };
  return {
    createdAt: new Date().toISOString(),
    versions: {
      troupe: VERSION,
      node: process.version,
      system: `${process.platform} ${process.arch} ${release()}`,
    },
    settings: await part(() => effectiveSettings(commandConfig({ env, cwd }))),
    doctor: await part(async () => {
      const findings: ServerFinding[] = [];
      for await (const finding of findingsOf(context, workspaceId, false)) findings.push(finding);
      return findings;
    }),
    server: await part(() => connect().server()),
    actors: await part(() => actorsOf(connect())),
    metrics: await part(async () => (await connect().metrics()).split('\n')),
    log: await part(async () => (await connect().serverLog()).items.map(lineOf)),
  };
}

/** Returns the first actors of the workspace, including those that ended lately. */
async function actorsOf(client: Client): Promise<Actor[]> {
  const actors: Actor[] = [];
  for await (const actor of client.eachActor({ ended: true, limit: 100 })) {
    actors.push(actor);
    if (actors.length === MAX_ACTORS) break;
  }
  return actors;
}

function lineOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line; // a line that is not JSON is shown unchanged
  }
}

/** Returns every secret that is known here, so that it can be hidden wherever it occurs. */
function secretsOf(env: CliContext['env'], cwd: string): readonly Secret[] {
  const secrets: Secret[] = [];
  try {
    const { config } = commandConfig({ env, cwd });
    for (const value of Object.values(config)) if (value instanceof Secret) secrets.push(value);
    secrets.push(resolveAccess({ env, cwd, needsWorkspace: false }).accessToken);
  } catch {
    // Without settings or credentials there are no further secrets to hide.
  }
  return secrets;
}

function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`The file could not be written: ${why}`);
  }
}
