import type { LocalModelAddress } from '#src/kernel/local-model.ts';
import type { PrimaryLink } from './primary-link.ts';

type Found = LocalModelAddress | { readonly problem: string };

/** Returns what starts the one local model of the server, which is a child of the primary's kernel host. */
export function sharedModel(link: Pick<PrimaryLink, 'send' | 'on'>): () => Promise<LocalModelAddress> {
  const waiting = new Map<number, (found: Found) => void>();
  let requests = 0;
  link.on('model', ({ request, found }) => {
    waiting.get(request)?.(found);
    waiting.delete(request);
  });
  return async () => {
    const request = ++requests;
    const found = await new Promise<Found>((resolve) => {
      waiting.set(request, resolve);
      link.send({ op: 'model-wanted', request });
    });
    if ('problem' in found) throw new Error(found.problem);
    return found;
  };
}
