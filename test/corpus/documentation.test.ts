// tier: whole, because it runs many notebooks in two kernels
/**
 * Documentation of ipywidgets, bokeh and statsmodels, with these libraries installed: notebooks as our converter reads them, and
 * examples in docstrings, chosen at random.
 */
import test from 'node:test';
import { pythonWithLibraries } from '#test/support/python-with-libraries.ts';
import { compareWithMarimo } from './comparison.ts';
import { findDocumentation } from './corpus.ts';

const { python, absence } = pythonWithLibraries();
if (absence) test('as in marimo: documentation', { skip: absence }, () => undefined);
else
  await compareWithMarimo(/^(documentation|docstrings)\//, 14, {
    python,
    notebooks: findDocumentation(python),
  });
