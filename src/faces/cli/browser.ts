/**
 * Shows an address in the browser of the person at this machine. The address is a secret, and everybody on the machine can read
 * the arguments of a program. So the browser gets a file that redirects to the address and that only the user can read.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A program that still runs after this time counts as successful, because some of these programs are the browser itself. */
const MAX_START_MS = 5_000;
/** Older files are removed. The addresses in them are valid for a minute. */
const MAX_FILE_AGE_MS = 5 * 60_000;

export interface BrowserOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder for the files. */
  readonly folder: string;
}

/** Returns the program that shows addresses; undefined when this machine has no display. */
function browserProgram(env: BrowserOptions['env'], platform = process.platform): string | undefined {
  if (platform === 'darwin') return env.SSH_CONNECTION === undefined ? 'open' : undefined;
  return [env.DISPLAY, env.WAYLAND_DISPLAY].some(Boolean) ? 'xdg-open' : undefined;
}

/** Shows an address. Resolves with undefined, or with the reason why the address cannot be shown. */
export async function showInBrowser(
  url: string,
  { env, folder }: BrowserOptions,
): Promise<string | undefined> {
  const program = browserProgram(env);
  if (program === undefined) return 'this machine has no display';
  let page: string;
  try {
    page = pageLeadingTo(url, folder);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return started(program, pathToFileURL(page).href, env);
}

/** Writes a page that redirects to the address, and removes old pages. */
function pageLeadingTo(url: string, folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const { mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}; // another command may have removed it
    if (Date.now() - mtimeMs > MAX_FILE_AGE_MS) rmSync(path, { force: true });
  }
  const page = join(folder, `${randomBytes(12).toString('hex')}.html`);
  const address = url.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
  const html = `<!doctype html>\n<meta charset="utf-8">\n<meta name="referrer" content="no-referrer">\n<meta http-equiv="refresh" content="0; url=${address}">\n<title>Troupe</title>\n<a href="${address}">Open the notebook</a>\n`;
  writeFileSync(page, html, { mode: 0o600, flag: 'wx' });
  return page;
}

/** Starts a program. Resolves with undefined, or with the reason why the program could not be started or has failed. */
function started(program: string, operand: string, env: BrowserOptions['env']): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, [operand], { env: { ...env }, stdio: 'ignore', detached: true });
    child.unref();
    const timer = setTimeout(() => resolve(undefined), MAX_START_MS);
    const end = (reason: string | undefined) => {
      clearTimeout(timer);
      resolve(reason);
    };
    child.once('error', ({ message }) => end(message));
    child.once('exit', (code) => end(code === 0 ? undefined : `${program} has failed`));
  });
}
