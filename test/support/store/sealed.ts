/** The number of sealed connections that a killed rotation must preserve. */
export const SEALED = 250;

/** Returns the place of the n-th connection. */
export const sealedPlace = (n: number) => ({ workspaceId: 'ws', slug: `s${n}`, revision: 1 });

/** Returns the n-th connection. */
export const sealedText = (n: number) => ({
  kind: 'postgres',
  connection_string: `postgres://h/d${n}`,
  schema: 'public',
});
