/** Paths by state value. The cache is safe because values never change, and useful because idle actors are counted often. */
const known = new WeakMap<object, string>();

/** Returns the state of a chart as a path, such as `open.vacant`; the paths of parallel regions are separated by a space. */
export function statePath(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  let path = known.get(value);
  if (path === undefined) {
    path = pathOf(value);
    known.set(value, path);
  }
  return path;
}

function pathOf(value: object): string {
  return Object.entries(value)
    .flatMap(([name, below]) =>
      statePath(below)
        .split(' ')
        .map((path) => (path === '' ? name : `${name}.${path}`)),
    )
    .join(' ');
}

/** Returns whether a path lies in a state: `live.busy.running` lies in `live`, in `live.busy` and in itself. */
export function liesIn(path: string, state: string): boolean {
  return path.split(' ').some((region) => region === state || region.startsWith(`${state}.`));
}
