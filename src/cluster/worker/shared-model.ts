import type { LocalModelAddress } from '#src/confined/children/local-model.ts';
import type { PrimaryLink } from './primary-link.ts';

/** Returns a function that starts the one local model of the server, which is a child of the primary's kernel host. */
export function sharedModel(link: Pick<PrimaryLink, 'ask'>): () => Promise<LocalModelAddress> {
  return async () => {
    const found = await link.ask('model');
    if ('problem' in found) throw new Error(found.problem);
    return found;
  };
}
