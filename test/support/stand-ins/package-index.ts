/** A package index (PEP 503) on loopback, with small packages that it makes itself. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Owner } from '../server-fixture.ts';

/** A package with one module of its name. */
export interface TestPackage {
  readonly name: string;
  readonly version: string;
  /** The code of its module. */
  readonly code: string;
  readonly requires?: readonly string[];
  /** The files of an archive of sources, which has to be built, in place of a wheel. */
  readonly sources?: Readonly<Record<string, string>>;
}

/** The index. */
export interface PackageIndex {
  readonly url: string;
  /** The names of the files that were downloaded, in order. */
  readonly downloads: readonly string[];
  add(one: TestPackage): void;
  /** Stops answering, without a refusal, until the function that it returns is called. */
  hold(): () => void;
  close(): Promise<void>;
}

const MAKE_WHEEL = `
import base64, hashlib, io, json, sys, zipfile
p = json.load(sys.stdin)
stem, info = f"{p['name']}-{p['version']}", f"{p['name']}-{p['version']}.dist-info"
requires = "".join(f"Requires-Dist: {one}\\n" for one in p.get("requires", []))
files = {
    f"{p['name']}.py": p["code"],
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {p['name']}\\nVersion: {p['version']}\\n{requires}",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = "".join(f"{n},sha256={digest(t)},{len(t.encode())}\\n" for n, t in files.items()) + f"{info}/RECORD,,\\n"
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    for name, text in {**files, f"{info}/RECORD": record}.items():
        archive.writestr(name, text)
sys.stdout.buffer.write(out.getvalue())
`;

const MAKE_SOURCES = `
import io, json, sys, tarfile
p = json.load(sys.stdin)
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w:gz") as archive:
    for name, text in p["sources"].items():
        member = tarfile.TarInfo(f"{p['name']}-{p['version']}/{name}")
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))
sys.stdout.buffer.write(out.getvalue())
`;

/** Starts an index with these packages, which ends with the owner. */
export async function startPackageIndex(
  owner: Owner,
  packages: readonly TestPackage[],
): Promise<PackageIndex> {
  const files = new Map<string, { readonly project: string; readonly bytes: Buffer }>();
  const add = (one: TestPackage) => {
    const isWheel = one.sources === undefined;
    const name = `${one.name}-${one.version}${isWheel ? '-py3-none-any.whl' : '.tar.gz'}`;
    const input = JSON.stringify(one);
    const bytes = execFileSync('python3', ['-c', isWheel ? MAKE_WHEEL : MAKE_SOURCES], { input });
    files.set(name, { project: one.name, bytes });
  };
  packages.forEach(add);
  const downloads: string[] = [];
  let gate: Promise<void> = Promise.resolve();
  const server = createServer(async ({ url = '' }, response) => {
    await gate;
    const [, kind = '', name = ''] = url.split('/');
    const file = files.get(name);
    if (kind === 'files' && file !== undefined) {
      downloads.push(name);
      // as of PyPI, whose files never change
      response.setHeader('cache-control', 'max-age=365000000, immutable, public');
      response.end(file.bytes);
      return;
    }
    const links = [...files]
      .filter(([, { project }]) => project === name)
      .map(([path, { bytes }]) => {
        const sha256 = createHash('sha256').update(bytes).digest('hex');
        return `<a href="/files/${path}#sha256=${sha256}">${path}</a>`;
      });
    response.writeHead(links.length > 0 ? 200 : 404, { 'content-type': 'text/html' });
    response.end(`<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The index has no port.');
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  owner.after(close);
  return {
    url: `http://127.0.0.1:${address.port}/simple`,
    downloads,
    add,
    hold() {
      let release = () => {};
      gate = new Promise((resolve) => {
        release = resolve;
      });
      return () => release();
    },
    close,
  };
}
