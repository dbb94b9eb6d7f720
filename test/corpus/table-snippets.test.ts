// tier: whole, because it runs many notebooks in two kernels
/** marimo's snippets about tables in memory. */
import { compareWithMarimo } from './comparison.ts';

await compareWithMarimo(/^snippets\/(pandas|polars)-/, 45);
