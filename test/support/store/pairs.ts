import { defineRecord } from '#storage/codec.ts';

/** How many records are written in each turn. */
export const PAIRS = 40;

/** Keyed by workspace id and number of the record. */
export const pairRecords = defineRecord<number>('pair', 1);
