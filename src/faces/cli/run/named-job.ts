import type { Client } from '#src/contract/client/client.ts';
import type { Job } from '#src/contract/wire/job.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** The most ids that are listed when several jobs have the same name. */
const MAX_NAMED = 5;

/** Returns the id of the job that an id or a name means. The server is asked only about names. Throws `CommandFailure`. */
export async function jobNamed(client: Client, text: string): Promise<string> {
  if (/^job_\w+$/.test(text)) return text;
  const found: Job[] = [];
  for await (const job of client.jobs.each({ order: 'desc', limit: 100 })) {
    if (job.name === text) found.push(job);
    if (found.length > MAX_NAMED) break;
  }
  const [only, ...others] = found;
  if (only === undefined)
    throw new CommandFailure(
      `No job has the name ${text}: troupe jobs list shows the names and ids of jobs.`,
    );
  if (others.length === 0) return only.id;
  const named = found.slice(0, MAX_NAMED).map(({ id }) => `\n  ${id}`);
  const more = found.length > MAX_NAMED ? '\n  …' : '';
  throw new CommandFailure(
    `Several jobs have the name ${text}: name one by its id.${named.join('')}${more}`,
    EXIT.usage,
  );
}
