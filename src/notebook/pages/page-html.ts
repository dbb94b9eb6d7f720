/** The document of a notebook's page: marimo's own, with the settings of this notebook, and the policy that confines it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PageAccess } from '#src/base/caller/page-access.ts';
import type { Installed } from './front-end-files.ts';
import { PAGE_CONFIG } from './page-config.ts';
import { connectionScript } from './page-connection.ts';
import { copyScript } from './page-copies.ts';
import { downloadScript } from './page-downloads.ts';
import { elementFileScript } from './page-element-files.ts';
import { installScript } from './page-installs.ts';
import { hiddenParts } from './page-parts.ts';
import { publicFileScript } from './page-public-files.ts';
import { refusalScript } from './page-refusals.ts';
import { restartScript } from './page-restarts.ts';

export interface PageOptions {
  readonly title: string;
  /** The address of the notebook's page, such as `https://troupe.example/n/nb_1/`. */
  readonly address: string;
  /** The address of the server, without a slash at its end. */
  readonly origin: string;
  readonly pageToken: string;
  /** The credential in the addresses of the notebook's public files. */
  readonly publicCode: string;
  /** The largest file that the page may send to an element. */
  readonly maxElementFileBytes: number;
  readonly access: PageAccess;
  /** Other hosts from which the page may load everything but scripts and style sheets. */
  readonly hosts: readonly string[];
  /** Whether the session runs the notebook as an app: outputs without code. */
  readonly isApp: boolean;
  readonly appOptions: Readonly<Record<string, unknown>>;
  readonly installed: Installed;
}

/**
 * The page has no origin, because outputs are scripts of whoever wrote the notebook: they reach no cookie, no storage and no other
 * page of this server, and the API takes no token of a page.
 */
const SANDBOX =
  'sandbox allow-scripts allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-downloads';

/**
 * Returns the content security policy of a page. The page can load from this server and send
 * requests to it, and to the hosts that the operator has named. Scripts come from this server only.
 */
function pagePolicy(origin: string, hosts: readonly string[]): string {
  const contentFrom = [origin, ...hosts, 'data:', 'blob:'].join(' ');
  return [
    SANDBOX,
    "default-src 'none'",
    // Allowed because charts compile expressions, and a widget is a module in a `data:` address.
    `script-src ${origin} 'unsafe-inline' 'unsafe-eval' data: blob:`,
    `style-src ${origin} 'unsafe-inline' data: blob:`,
    `connect-src ${contentFrom}`,
    `img-src ${contentFrom}`,
    `font-src ${contentFrom}`,
    `media-src ${contentFrom}`,
    `worker-src ${origin} data: blob:`,
    `frame-src ${contentFrom}`,
    `manifest-src ${origin}`,
    `base-uri ${origin}`,
    "form-action 'none'",
    // Only pages of this server may frame it. The pages of notebooks themselves have no origin.
    "frame-ancestors 'self'",
  ].join('; ');
}

/** A page, and the content security policy with which it must be served. */
export interface PageDocument {
  readonly html: string;
  readonly policy: string;
}

/** Resolves with the page. */
export async function pageDocument(options: PageOptions): Promise<PageDocument> {
  const { title, address, pageToken, publicCode, access, isApp, appOptions, installed } = options;
  const { maxElementFileBytes } = options;
  const { version, directory } = installed;
  const template = await readFile(join(directory, '_static', 'index.html'), 'utf8');
  const fileName = `${title}.py`;
  const mount = {
    filename: fileName,
    cwd: '',
    lspWorkspace: null,
    mode: isApp || access === 'interact' ? 'read' : 'edit',
    version,
    serverToken: 'unused',
    config: PAGE_CONFIG,
    configOverrides: {},
    appConfig: appOptions,
    layout: null,
    view: { showAppCode: !isApp },
    notebook: null,
    session: null,
    runtimeConfig: [{ url: address, lazy: false, authToken: pageToken }],
  };
  const values: Readonly<Record<string, string>> = {
    base_url: '',
    filename: escapeHtml(fileName),
    version,
    user_config: escapeHtml(JSON.stringify(PAGE_CONFIG)),
    server_token: 'unused',
    title: escapeHtml(title),
  };
  const html = template
    .replaceAll(/\{\{ (\w+) \}\}/g, (whole, name: string) => values[name] ?? whole)
    .replaceAll(/((?:href|src)=")\.\//g, `$1/marimo/${version}/`)
    .replace("'{{ mount_config }}'", () => scriptJson(mount))
    .replace('<head>', () => {
      const settings = scriptJson({ address, pageToken, publicCode, maxElementFileBytes });
      const scripts = [
        connectionScript,
        downloadScript,
        copyScript,
        installScript,
        refusalScript,
        restartScript,
        publicFileScript,
        elementFileScript,
      ]
        .map((script) => script(settings))
        .join('\n');
      return `<head><style>${hiddenParts(access)}</style><script>${scripts}</script>`;
    });
  return { html, policy: pagePolicy(options.origin, options.hosts) };
}

/** Returns JSON that is safe within a script element. */
function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
