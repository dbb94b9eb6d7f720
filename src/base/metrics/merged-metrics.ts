/** One exposition of the metrics of several workers, in the OpenMetrics format. */

/** The text of the metrics of one worker, as `Registry.text` returns it. */
export interface WorkerMetrics {
  readonly worker: number;
  readonly text: string;
}

/** The lines of a family of metrics: its description, and its series. */
interface FamilyText {
  readonly described: string[];
  readonly series: string[];
}

/**
 * Returns the metrics of all workers. Each family appears once, with the series of each worker,
 * which have the label `worker`. `silent` is the number of workers that have not answered, which is
 * a metric too.
 */
export function mergeMetrics(parts: readonly WorkerMetrics[], silent: number): string {
  const families = new Map<string, FamilyText>();
  for (const { worker, text } of parts) addPart(families, worker, text);
  const lines = [
    '# TYPE troupe_workers gauge',
    '# HELP troupe_workers Workers of the server, by whether their metrics are here.',
    `troupe_workers{state="answered"} ${parts.length}`,
    `troupe_workers{state="silent"} ${silent}`,
  ];
  for (const { described, series } of families.values()) lines.push(...described, ...series);
  lines.push('# EOF', '');
  return lines.join('\n');
}

function addPart(families: Map<string, FamilyText>, worker: number, text: string): void {
  let family: FamilyText | undefined;
  let isNew = false;
  for (const line of text.split('\n')) {
    if (line === '' || line === '# EOF') continue;
    if (line.startsWith('# TYPE ')) {
      const name = line.split(' ', 3)[2]!;
      family = families.get(name);
      isNew = family === undefined;
      family ??= { described: [], series: [] };
      families.set(name, family);
    }
    if (!line.startsWith('#')) family?.series.push(withWorker(line, worker));
    else if (isNew) family?.described.push(line);
  }
}

/** Returns the line of a series with one more label, which is placed first. */
function withWorker(line: string, worker: number): string {
  const label = `worker="${worker}"`;
  const end = /[{ ]/.exec(line)?.index ?? line.length;
  const [name, rest] = [line.slice(0, end), line.slice(end)];
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`;
}
