/** The forty mutants, in the order of their numbers, which begin with 1. */
import type { Mutant } from './mutant.ts';
import { MUTANTS_OF_ACCESS } from './mutants-of-access.ts';
import { MUTANTS_OF_DATA } from './mutants-of-data.ts';

export const MUTANTS: readonly Mutant[] = [...MUTANTS_OF_DATA, ...MUTANTS_OF_ACCESS];
