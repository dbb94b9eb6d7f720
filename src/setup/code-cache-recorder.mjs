// Loaded before a bundled program (code-cache.mjs). When the program ends, this module writes the program's code, as
// V8 has compiled it, next to the bundle.
import { createHash } from 'node:crypto';
import { chmodSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';

// A program may set flags of V8 while it runs. V8 uses compiled code only under the flags under which it was written.
// The next start reads this code before it sets any flag.
v8.setFlagsFromString = () => {};

vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    process.once('exit', () => this.#write(options.filename));
  }

  #write(url) {
    const bundle = fileURLToPath(url);
    const cache = `${bundle}.cache`;
    const code = this.createCachedData();
    const digest = createHash('sha256').update(url).update(code).digest();
    writeFileSync(`${cache}.new`, Buffer.concat([digest, code]));
    chmodSync(`${cache}.new`, statSync(bundle).mode); // with the server's umask, only one user could read the file
    renameSync(`${cache}.new`, cache);
  }
};
