/** The seal of the nodes' authority in backups. */
import { readKeyring } from '#src/datasource/keys/keyring.ts';
import { openText, sealText } from '#src/datasource/keys/sealed-text.ts';
import type { Sealing } from './nodes-copy.ts';

const PURPOSE = 'authority of kernel nodes';

/**
 * Returns the seal that uses the keyring at `path`. The keyring is read for each use, because its active key may
 * change.
 */
export function sealingOf(path: string): Sealing {
  return {
    keyId: () => readKeyring(path).active,
    seal: (text) => sealText(readKeyring(path), PURPOSE, text),
  };
}

/** Returns the authority that was sealed in `file`. Throws `KeyringError`. */
export function openSealedAuthority(path: string, sealed: string, file: string): string {
  return openText(readKeyring(path), PURPOSE, sealed, file);
}
