// Starts a bundled program. `main.js`, `cli.js` and `node.js` in `dist/server` are this file, with the name of the bundle in it.
//
// Reading and compiling a bundle takes longer than running it once, so the code that V8 compiled in an earlier run
// lies next to the bundle (code-cache.mjs). When that code is missing, damaged, or of another version or other flags
// of V8, the bundle is compiled. V8 does not compare the source text. So the name of a bundle contains the hash of
// its text, and the code of another bundle is never used.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import vm from 'node:vm';

const DIGEST_BYTES = 32;

const bundle = new URL('./BUNDLE', import.meta.url);
// A script, because Node.js gives V8 no compiled code for ECMAScript modules. Its value is a function.
const script = new vm.Script(readFileSync(bundle, 'latin1'), {
  filename: bundle.href,
  cachedData: compiledCode(),
});

export const program = { exports: {} };
/** A script of V8 cannot import. Bundles need imports for `src/setup`, which is not bundled. */
const importModule = (url) => import(url);
script.runInThisContext()(
  createRequire(import.meta.url),
  program,
  program.exports,
  import.meta.url,
  importModule,
);
await program.exports.ended;

/**
 * V8 itself checks version, flags and length. It would still run code that a disk has damaged, and errors would show
 * the paths of the machine that compiled the code.
 */
function compiledCode() {
  try {
    const file = readFileSync(new URL(`${bundle.href}.cache`));
    const code = file.subarray(DIGEST_BYTES);
    const digest = createHash('sha256').update(bundle.href).update(code).digest();
    return digest.equals(file.subarray(0, DIGEST_BYTES)) ? code : undefined;
  } catch {
    return undefined;
  }
}
