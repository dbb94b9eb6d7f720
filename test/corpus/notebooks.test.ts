// tier: whole, because it runs many notebooks in two kernels
/** marimo's tutorials and our own notebooks. */
import { compareWithMarimo } from './comparison.ts';

await compareWithMarimo(/^(tutorials|own)\//, 30);
