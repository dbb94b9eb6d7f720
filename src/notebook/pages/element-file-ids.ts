import { isRecord } from '#src/confined/processes/json-shape.ts';

const NAMED = /^upload:([0-9a-f]{32})$/;

/** Returns the ids of the files that values of elements name: see `page-element-files.ts`. */
export function elementFilesIn(values: unknown): Set<string> {
  const ids = new Set<string>();
  const open: unknown[] = [values];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string') {
      const id = NAMED.exec(value)?.[1];
      if (id !== undefined) ids.add(id);
    } else if (Array.isArray(value)) for (const one of value) open.push(one);
    else if (isRecord(value)) for (const one of Object.values(value)) open.push(one);
  }
  return ids;
}
