import { defineRecord } from '#storage/codec.ts';

export const PAIRS = 40;

/** Key: workspace id, number of the record. */
export const pairRecords = defineRecord<number>('pair', 1);
