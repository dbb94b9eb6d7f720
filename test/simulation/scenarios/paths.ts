/** Paths that scenarios use. */

export const SESSIONS = '/api/v3/notebook-sessions';
export const ENVIRONMENTS = '/api/v3/execution-environments';
