/** The moments at which a call is left: before a request is sent, when it was sent, and when its response has come. */
export const MOMENTS = ['before', 'during', 'after'] as const;
export type Moment = (typeof MOMENTS)[number];

/**
 * A `fetch` for callers that leave. Once it is armed, its signal aborts at the request with this number, at a moment of it. At the number
 * 0 it only counts requests.
 */
export function leavingFetch() {
  const leaving = new AbortController();
  const leave = () => leaving.abort(new Error('left'));
  let requests = 0;
  let armed = { at: 0, moment: 'before' as Moment };
  const send: typeof fetch = async (input, init) => {
    const isAt = ++requests === armed.at;
    if (isAt && armed.moment === 'before') leave();
    const response = fetch(input, init);
    if (isAt && armed.moment === 'during') leave();
    await response;
    if (isAt && armed.moment === 'after') leave();
    return response;
  };
  const arm = (at: number, moment: Moment) => {
    requests = 0;
    armed = { at, moment };
  };
  return { send, signal: leaving.signal, arm, requests: () => requests };
}
