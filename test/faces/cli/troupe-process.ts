/** Runs the `troupe` program in its own process, as a shell does; in a lane, most commands run in the process of the tests. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runProgram } from '#src/faces/cli/program.ts';
import { LANE } from '#test/runner/lane-state.ts';
import type { Owner, TestServer } from '#test/support/server-fixture.ts';
import { pythonOfTests } from '#test/support/server-fixture.ts';

/** The program, as it is bundled. */
export const MAIN = fileURLToPath(new URL('../../../server/cli.js', import.meta.url));

/** Commands that are a server, or that open a store, which a process must not open twice. */
const APART = new Set(['serve', 'mcp', 'node', 'doctor', 'backup', 'keys', 'init']);

/** The exit code and the output of an ended process. */
export interface Ended {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

/** Environment and input of a process. */
export interface Options {
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; empty when absent. */
  readonly input?: string;
  /** The working directory; that of the shell when absent. */
  readonly cwd?: string;
}

/** One run of the program. */
export class TroupeProcess {
  /** Resolves when the process has ended. */
  readonly ended: Promise<Ended>;
  /** The arguments, as other users of the machine can read them. */
  readonly commandLine: string;
  readonly #child: ReturnType<typeof spawn>;
  #out = '';
  #err = '';
  #onText = new Set<() => void>();

  constructor(args: readonly string[], { env, cwd, input = '' }: Options & { cwd: string }) {
    const { PATH = '', HOME = '' } = process.env;
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd,
      env: { PATH, HOME, ...pythonOfTests(), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.commandLine = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8');
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#hear(text, ''));
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.#hear('', text));
    child.stdin.on('error', () => {}); // the process may end without reading its input
    child.stdin.end(input);
    this.ended = new Promise((resolve) => {
      child.once('close', (exitCode) => {
        this.#hear('', '');
        resolve({ exitCode, out: this.#out, err: this.#err });
      });
    });
  }

  /** Resolves when the output contains `text`. Rejects when the process ends before that. */
  async until(text: string): Promise<void> {
    await Promise.race([
      this.ended.then(({ out, err }) => assert.ok((out + err).includes(text), `${out}\n${err}`)),
      new Promise<void>((resolve) => {
        const look = () => {
          if ((this.#out + this.#err).includes(text)) resolve();
        };
        this.#onText.add(look);
        look();
      }),
    ]);
  }

  /** The output so far, of both streams. */
  get output(): string {
    return this.#out + this.#err;
  }

  interrupt(): void {
    this.#child.kill('SIGINT');
  }

  /** Acts as Ctrl-\ on its terminal. */
  quit(): void {
    this.#child.kill('SIGQUIT');
  }

  /** Acts as the end of its terminal. */
  hangUp(): void {
    this.#child.kill('SIGHUP');
  }

  /** Acts as a reader such as `head` that has read enough. */
  stopReading(): void {
    this.#child.stdout?.destroy();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #hear(out: string, err: string): void {
    this.#out += out;
    this.#err += err;
    for (const look of this.#onText) look();
  }
}

/** Runs command lines in one directory, as the owner of `server`. */
export class Shell {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #owner: Owner;

  constructor(owner: Owner, server?: Pick<TestServer, 'baseUrl' | 'owner'>) {
    this.#owner = owner;
    this.cwd = mkdtempSync(join(tmpdir(), 'troupe-shell-'));
    owner.after(async () => rmSync(this.cwd, { recursive: true, force: true }));
    this.env =
      server === undefined
        ? {}
        : {
            SERVICE_BASE_URL: server.baseUrl,
            SERVICE_ACCESS_TOKEN: server.owner.token,
            SERVICE_WORKSPACE_ID: server.owner.workspaceId,
            XDG_STATE_HOME: this.#folder(),
          };
  }

  /** Returns a new folder for the state that the program keeps. */
  #folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'troupe-state-'));
    this.#owner.after(async () => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  /** Starts `troupe` with these arguments. */
  start(args: readonly string[], { env, input = '', cwd = this.cwd }: Options = {}): TroupeProcess {
    const child = new TroupeProcess(args, { env: { ...this.env, ...env }, input, cwd });
    this.#owner.after(async () => child.kill());
    return child;
  }

  /** Runs `troupe` and returns when it has ended. */
  readonly troupe = (args: readonly string[], options: Options = {}): Promise<Ended> =>
    LANE === undefined || APART.has(args[0]!) || args.includes('--output-dir')
      ? this.start(args, options).ended
      : this.#here(args, options);

  /** Runs `troupe` in this process, as a shell whose output nobody sees as it comes. Saves the start of a process. */
  async #here(args: readonly string[], { env, input = '', cwd = this.cwd }: Options): Promise<Ended> {
    const { PATH = '', HOME = '' } = process.env;
    const out: Uint8Array[] = [];
    const err: string[] = [];
    const unused = () => ({ [Symbol.dispose]: () => {} });
    const umask = process.umask();
    const exitCode = await runProgram(args, {
      terminal: {
        out: (text) => void out.push(Buffer.from(text)),
        err: (text) => void err.push(text),
        bytes: async (piece) => void out.push(Buffer.from(piece)),
        color: false,
      },
      input: {
        read: async () => input,
        async *lines() {
          yield* createInterface({ input: Readable.from([input]) });
        },
        isTerminal: false,
        onInterrupt: unused,
        onQuit: unused,
      },
      env: { PATH, HOME, ...pythonOfTests(), ...this.env, ...env },
      cwd,
    });
    process.umask(umask); // commands that write backups change the umask of their process
    return { exitCode, out: Buffer.concat(out).toString('utf8'), err: err.join('') };
  }

  /** Returns the value that a successful command prints with `--json`. */
  readonly json = async <T>(args: readonly string[], options: Options = {}): Promise<T> => {
    const { exitCode, out, err } = await this.troupe([...args, '--json'], options);
    assert.equal(exitCode, 0, err);
    return JSON.parse(out) as T;
  };

  /** Returns the output of a successful command, without the last line break. */
  readonly text = async (args: readonly string[], options: Options = {}): Promise<string> => {
    const { exitCode, out, err } = await this.troupe(args, options);
    assert.equal(exitCode, 0, err);
    return out.replace(/\n$/, '');
  };
}
