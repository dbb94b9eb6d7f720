#!/usr/bin/env node
// The `troupe` command. It runs the built programs; only a checkout that was never built is set up first.
import { existsSync } from 'node:fs';

const program = new URL('../../dist/server/cli.js', import.meta.url);
if (!existsSync(program)) {
  const [{ reporting }, { setUp }] = await Promise.all([import('./console.mjs'), import('./setup.mjs')]);
  await reporting(setUp);
}
await import(program.href);
