/**
 * The scripts that plots of bokeh load from its CDN. The package of bokeh in the notebook's environment has the same files, so the
 * kernel sends them, and nothing is fetched from the CDN.
 */
import { gunzipSync } from 'node:zlib';
import type { Client } from '#src/contract/client/client.ts';

/** The most bytes of all scripts together. The scripts of bokeh 3.9 take 4 MB. */
export const MAX_SCRIPT_BYTES = 8 * 2 ** 20;
const TIMEOUT_S = 30;
const CDN = 'https://cdn.bokeh.org/bokeh/release/';
const SCRIPT = /https:\/\/cdn\.bokeh\.org\/bokeh\/release\/(bokeh(?:-[a-z]+)?-\d[\w.]*)\.min\.js/g;

/** The notebook, and the page that shows its plots. */
export interface BokehRequest {
  readonly client: Client;
  readonly notebookId: string;
  readonly html: string;
  readonly signal: AbortSignal;
}

/** Scripts by their addresses at the CDN, and the reason why some are absent. */
export interface BokehScripts {
  readonly scripts: ReadonlyMap<string, string>;
  readonly fault?: string;
}

/**
 * Code that runs in the kernel. It sends the scripts of the installed package as compressed JSON, because an output of this type
 * is neither formatted nor shortened. Scripts of another version are left out.
 */
const READ = `def _scripts(names, most):
    import base64, gzip, json, pathlib
    try:
        import bokeh
    except ImportError:
        names = []
    found = {}
    for name in names:
        part, _, version = name.rpartition("-")
        file = pathlib.Path(bokeh.__file__).parent / "server" / "static" / "js" / f"{part}.min.js"
        if version == bokeh.__version__ and file.is_file():
            most -= file.stat().st_size
            if most < 0:
                raise ValueError("they are too large")
            found[name] = file.read_text(encoding="utf-8")
    data = base64.b64encode(gzip.compress(json.dumps(found, ensure_ascii=False).encode(), 6)).decode()
    return type("Scripts", (), {"_mime_": lambda self: ("application/gzip", data)})()
`;

/** Resolves with the scripts that the page names and that the notebook's environment has. Rejects only when `signal` aborts. */
export async function readBokehScripts(request: BokehRequest): Promise<BokehScripts> {
  const { client, notebookId, html, signal } = request;
  const names = [...new Set([...html.matchAll(SCRIPT)].map(([, name = '']) => name))];
  if (names.length === 0) return { scripts: new Map() };
  try {
    const code = `${READ}_scripts(${JSON.stringify(names)}, ${MAX_SCRIPT_BYTES})`;
    const { output, errors } = await client.code.execute(notebookId, code, { timeoutS: TIMEOUT_S, signal });
    if (errors[0] !== undefined) throw new Error(errors[0].message);
    const found = unpacked(output?.data);
    const scripts = new Map(
      names.flatMap((name) => {
        const script = Object.hasOwn(found, name) ? found[name] : undefined;
        return typeof script === 'string' ? [[`${CDN}${name}.min.js`, script] as const] : [];
      }),
    );
    const absent = names.find((name) => !scripts.has(`${CDN}${name}.min.js`));
    if (absent === undefined) return { scripts };
    return { scripts, fault: `the notebook's environment does not have ${absent}.min.js` };
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    return { scripts: new Map(), fault: `the scripts of bokeh could not be read (${why})` };
  }
}

/** Returns the names and texts of scripts. The kernel runs code of users, so everything that it sends is checked. */
function unpacked(data: unknown): Readonly<Record<string, unknown>> {
  // JSON needs more bytes than the scripts themselves, because it escapes line feeds and quotes.
  const limit = { maxOutputLength: 2 * MAX_SCRIPT_BYTES };
  return Object(JSON.parse(gunzipSync(Buffer.from(String(data), 'base64'), limit).toString()));
}
