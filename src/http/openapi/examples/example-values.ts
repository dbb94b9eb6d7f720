/** Values that the examples share: ids and times. */

export const NOTEBOOK_ID = 'nb_01k6gq0000aaaaaaaaaaaaaaaa';
export const ENVIRONMENT = 'env_01k6gq0000bbbbbbbbbbbbbbbb';
export const RUN = 'run_01k6gq0000cccccccccccccccc';
/** The id of the last event before a run. */
export const EVENT = '0f3c1a9b2e-41';
export const WORKSPACE_ID = 'ws_01k6gq0000dddddddddddddddd';
export const CONVERSATION_ID = 'conv_01k6gq0000eeeeeeeeeeeeeeee';
export const [USER, COLLEAGUE] = ['ada@example.com', 'grace@example.com'];
export const AT = '2026-01-31T12:00:00.000Z';
export const LATER = '2026-01-31T12:00:01.250Z';
export const times = { createdAt: AT, updatedAt: LATER };
