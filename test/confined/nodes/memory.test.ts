// tier: whole, because it measures memory
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { freeMemory } from '#src/confined/nodes/host/memory.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

test('in a container a node counts the free memory of the container, with files that the system gives up', (t) => {
  const group = temporaryDirectory(t);
  const write = (name: string, text: string) => writeFileSync(join(group, name), `${text}\n`);
  write('memory.max', '1000');
  write('memory.current', '700');
  write('memory.stat', 'anon 300\ninactive_file 250\nactive_file 150');
  assert.equal(freeMemory(group), 550);
  write('memory.current', '2000');
  assert.equal(freeMemory(group), 0);
});

test('without a limit a node counts the free memory of the machine', (t) => {
  const group = temporaryDirectory(t);
  const isOfMachine = (bytes: number) => bytes > 2 ** 20 && bytes <= totalmem();
  assert(isOfMachine(freeMemory(group)), 'without control groups');
  writeFileSync(join(group, 'memory.max'), 'max\n');
  assert(isOfMachine(freeMemory(group)));
});
