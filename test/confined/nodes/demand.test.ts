import assert from 'node:assert/strict';
import test from 'node:test';
import { type Load, machinesWanted, RecentMost } from '#src/confined/nodes/demand.ts';

const bounds = { min: 0, max: 10 };
const load: Load = { live: 0, waiting: 0, capacity: 20, usable: 0, starting: 0 };

test('the server requests one machine more than all kernels need', () => {
  for (const [live, machines] of [
    [1, 2],
    [20, 2],
    [21, 3],
    [41, 4],
  ] as const)
    assert.equal(machinesWanted({ ...load, live }, bounds), machines, `${live} kernels`);
  assert.equal(machinesWanted({ ...load, waiting: 21 }, bounds), 3);
  assert.equal(machinesWanted({ ...load, waiting: 3, capacity: Infinity }, bounds), 2);
});

test('without kernels no machine is requested, unless the settings require machines', () => {
  assert.equal(machinesWanted(load, bounds), 0);
  assert.equal(machinesWanted(load, { min: 3, max: 10 }), 3);
});

test('the number of machines stays within the bounds', () => {
  assert.equal(machinesWanted({ ...load, live: 1000 }, bounds), 10);
  assert.equal(machinesWanted({ ...load, live: 1 }, { min: 5, max: 10 }), 5);
});

test('a kernel that waits below the capacity of all machines raises the number of machines, once for each machine that starts', () => {
  const full = { ...load, live: 4, waiting: 1, usable: 2 };
  assert.equal(machinesWanted(full, bounds), 3);
  assert.equal(machinesWanted({ ...full, usable: 3, starting: 1 }, bounds), 2);
});

test('the largest number of requested machines of the last minutes counts', () => {
  const most = new RecentMost(100);
  assert.equal(most.note(3, 0), 3);
  assert.equal(most.note(1, 50), 3);
  assert.equal(most.note(2, 100), 3);
  assert.equal(most.note(1, 101), 2);
  assert.equal(most.note(1, 201), 1);
  assert.equal(most.note(5, 202), 5);
});
