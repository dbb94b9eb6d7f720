// own process: it counts what the whole process records
import assert from 'node:assert/strict';
import test from 'node:test';
import { Trail } from '#src/runtime/actors/trail.ts';

const MOVES = 200_000;
/** The smallest object takes 12 bytes. */
const BYTES_OF_OBJECTS = MOVES * 12;
const ROUNDS = 50;
const NEEDED = 3;

test('a transition that nobody watches allocates no object for the trail', () => {
  const trail = new Trail();
  const states = ['empty', { live: 'ready' }];
  trail.begin(states[0]);
  const grownBytes = () => {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < MOVES; i++) trail.move('touch', states[i % 2]);
    return process.memoryUsage().heapUsed - before;
  };
  // Until V8 has compiled the code, numbers are objects, and a garbage collection during the loop
  // hides their memory.
  let flat = 0;
  for (let round = 0; round < ROUNDS && flat < NEEDED; round++) {
    const bytes = grownBytes();
    flat = bytes >= 0 && bytes < BYTES_OF_OBJECTS / 20 ? flat + 1 : 0;
  }
  assert.equal(flat, NEEDED);
  assert.equal(trail.list().length, 32);
});
