import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import {
  configOf,
  isCellId,
  normalizeSerialization,
  titleOf,
  withConfig,
} from '#src/notebook/saved/document.ts';

test('an empty serialization is an empty notebook', () => {
  const empty = { version: '1', app: { options: {} }, cells: [], valid: true, ui_values: {} };
  assert.deepEqual(
    [normalizeSerialization({}, true), normalizeSerialization({ app: {} }, true)],
    [empty, empty],
  );
});

test('a serialization keeps all its members except `valid`, which is computed', () => {
  const given = {
    version: '2',
    app: { options: { app_title: 'Costs', width: 'full' } },
    cells: [{ cell_id: 'a', code: 'x = 1', options: { hide_code: true, future: [1] } }],
    valid: false,
    ui_values: { slider: 3 },
  };
  assert.deepEqual(normalizeSerialization(given, true), { ...given, valid: true });
});

test('a cell without options keeps empty options', () => {
  const { cells } = normalizeSerialization({ cells: [{ cell_id: 'a', code: '' }] }, true);
  assert.deepEqual(cells, [{ cell_id: 'a', code: '', options: {} }]);
});

test('a repeated cell id is refused with its second place', () => {
  const cells = ['a', 'b', 'a'].map((cell_id) => ({ cell_id, code: '' }));
  assert.throws(
    () => normalizeSerialization({ cells }, true),
    (error) => {
      assert.ok(error instanceof AppError);
      assert.deepEqual(
        [error.code, error.extras.errors],
        [
          'duplicate_cell',
          [{ path: '/serialization/cells/2/cell_id', message: 'must be unique within the notebook' }],
        ],
      );
      return true;
    },
  );
});

test('each setting becomes the option of its name, and each option becomes the setting of its name', () => {
  const config = { disabled: true, hideCode: true, column: 2, name: 'load', expandOutput: true };
  const options = { disabled: true, hide_code: true, column: 2, name: 'load', expand_output: true };
  assert.deepEqual(withConfig({}, config), options);
  assert.deepEqual(configOf(options), config);
});

test('a default setting is not stored, and omitted settings and unknown options are kept', () => {
  const before = { disabled: true, hide_code: true, column: 0, name: 'load', future: 1 };
  const after = withConfig(before, { disabled: false, column: null, name: '', expandOutput: false });
  assert.deepEqual(after, { hide_code: true, future: 1 });
  assert.deepEqual(before, { disabled: true, hide_code: true, column: 0, name: 'load', future: 1 });
  assert.deepEqual(withConfig({}, { column: 0 }), { column: 0 });
});

test('options of a wrong type count as absent', () => {
  const defaults = { disabled: false, hideCode: false, column: null, name: '', expandOutput: false };
  const wrong = { disabled: 'yes', hide_code: 1, column: '2', name: 7, expand_output: null };
  assert.deepEqual([configOf({}), configOf(wrong)], [defaults, defaults]);
  for (const column of [1.5, 1e300]) assert.deepEqual(configOf({ column }), defaults, `${column}`);
});

test('the title is read from the app options if the option is a text', () => {
  const titles = ['Costs', 7, null, undefined].map((app_title) =>
    titleOf(normalizeSerialization({ app: { options: { app_title } } }, true)),
  );
  assert.deepEqual(titles, ['Costs', null, null, null]);
});

test("a cell may have any short name without control characters, except the scratchpad's", () => {
  const ids: Record<string, boolean> = {
    a: true,
    'Hbol 1': true,
    '😀': true,
    ['x'.repeat(128)]: true,
    ['x'.repeat(129)]: false,
    ['😀'.repeat(128)]: true,
    '': false,
    'a\nb': false,
    'a\u0000b': false,
    __scratch__: false,
    __scratch__2: true,
  };
  assert.deepEqual(Object.fromEntries(Object.keys(ids).map((id) => [id, isCellId(id)])), ids);
});
