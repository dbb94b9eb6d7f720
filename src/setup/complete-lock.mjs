// `npm run lock`: adds to package-lock.json the optional packages of other platforms that npm leaves out when the
// registry lacks them. `npm ci` rejects a lock file without them, on every platform.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OS = /\b(aix|android|darwin|freebsd|linux|netbsd|openbsd|sunos|win32)\b/;
const CPU = /\b(arm64|arm|x64|ia32|loong64|mips64el|ppc64|riscv64|s390x)\b/;

/** Returns the entries of optional packages that the lock file refers to but does not contain. */
export function missingEntries({ packages }) {
  const missing = {};
  for (const [at, { optionalDependencies = {}, dev, license }] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      if (packages[`node_modules/${name}`] ?? packages[`${at}/node_modules/${name}`]) continue;
      const [[, os] = [], [, cpu] = []] = [OS.exec(name) ?? [], CPU.exec(name) ?? []];
      missing[`node_modules/${name}`] = {
        version,
        ...(cpu !== undefined && { cpu: [cpu] }),
        ...(dev && { dev }),
        ...(name.endsWith('-musl') && { libc: ['musl'] }),
        license,
        optional: true,
        ...(os !== undefined && { os: [os] }),
      };
    }
  }
  return missing;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const path = join(root, 'package-lock.json');
  const lock = JSON.parse(readFileSync(path, 'utf8'));
  const entries = Object.entries({ ...lock.packages, ...missingEntries(lock) });
  lock.packages = Object.fromEntries(entries.sort(([a], [b]) => a.localeCompare(b, 'en')));
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
  // In this file npm has noted that the packages of the new lock file are installed, although it installed none.
  // Set-up would rely on that.
  rmSync(join(root, 'node_modules', '.package-lock.json'), { force: true });
}
