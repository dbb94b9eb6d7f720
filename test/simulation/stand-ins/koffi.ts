/** The native calls of a machine that has none: the server has an answer to that for each of them. */
export default {
  load(): never {
    throw new Error('A simulated machine has no native calls.');
  },
};
