/** The clocks and timers of the real process, from before the world has replaced them (`globals.ts`). */
export const real = {
  Date,
  setImmediate,
  setTimeout,
  now: performance.now.bind(performance),
};
