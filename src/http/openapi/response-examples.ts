/** An example response of each operation, by the name of its schema. The compiler checks them against the types of `src/wire`. */
import { AGENTS_EXAMPLES } from './examples/agents.ts';
import { DATASOURCES_EXAMPLES } from './examples/datasources.ts';
import { IDENTITY_EXAMPLES } from './examples/identity.ts';
import { NOTEBOOKS_EXAMPLES } from './examples/notebooks.ts';
import { OPERATIONS_EXAMPLES } from './examples/operations.ts';
import { PACKAGES_EXAMPLES } from './examples/packages.ts';

export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = {
  ...NOTEBOOKS_EXAMPLES,
  ...AGENTS_EXAMPLES,
  ...DATASOURCES_EXAMPLES,
  ...IDENTITY_EXAMPLES,
  ...OPERATIONS_EXAMPLES,
  ...PACKAGES_EXAMPLES,
};
