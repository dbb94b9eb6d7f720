/** Prints a page as PDF with a browser on this machine, which is confined, because the page comes from a notebook. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { confine, confinementFault, findBrowser } from './confined-browser.ts';

const TIMEOUT_MS = 120_000;

const FLAGS = ['--no-pdf-header-footer', '--print-to-pdf=/page/report.pdf', 'file:///page/report.html'];

/** Returns the path of a browser that can print. Throws `CommandFailure`, with advice, when this machine has none. */
export function requireBrowser(path?: string): string {
  const browser = findBrowser(path);
  if (browser !== undefined) return browser;
  throw new CommandFailure(
    'A PDF is printed by Chromium, Chrome or Edge, but this machine has none of these browsers. Install one, or write an .html file and print that from a browser.',
    EXIT.usage,
  );
}

/**
 * Resolves with the page as PDF. Rejects with `CommandFailure` when printing fails or the browser cannot be confined here, and with
 * the reason of `signal` when it aborts.
 */
export async function printPdf(browser: string, page: string, signal?: AbortSignal): Promise<Uint8Array> {
  using confined = confine(browser);
  try {
    writeFileSync(join(confined.folder, 'report.html'), page);
    await promisify(execFile)(confined.program, confined.arguments(FLAGS), {
      env: confined.env,
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      ...(signal === undefined ? {} : { signal }),
    });
    return readFileSync(join(confined.folder, 'report.pdf'));
  } catch (error) {
    const { stderr = '', killed = false } = Object(error) as { stderr?: string; killed?: boolean };
    const why = killed
      ? `${browser} did not end within ${TIMEOUT_MS / 1000} seconds`
      : (confinementFault(stderr) ?? `${browser} did not print it`);
    throw new CommandFailure(
      `The PDF was not made: ${why}. Write an .html file and print it from a browser.`,
    );
  }
}
