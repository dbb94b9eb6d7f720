/** How many sealed connections a killed rotation must preserve. */
export const SEALED = 250;

export const sealedPlace = (n: number) => ({ workspaceId: 'ws', slug: `s${n}`, revision: 1 });

export const sealedText = (n: number) => ({
  kind: 'postgres',
  connection_string: `postgres://h/d${n}`,
  schema: 'public',
});
