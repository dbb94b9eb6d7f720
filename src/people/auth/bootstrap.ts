/**
 * The first workspace, owner and token of an empty store.
 *
 * Generated credentials are written to `bootstrap.json` before the store is committed, and a start after an
 * interruption continues with the credentials it finds there. So there is never a store without access, and never more
 * than one set of credentials for it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '#src/base/caller/secret.ts';
import { newId, type TokenId, type WorkspaceId } from '#src/base/ids.ts';
import { SCOPES } from '#src/contract/wire/identity.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { SYSTEM } from '#storage/keys.ts';
import { bootstrapRecord, tokenHashes } from '#storage/records/identity.ts';
import type { Identity } from './identity.ts';
import { newTokenSecret, tokenHash } from './token-secret.ts';
import { putToken } from './tokens.ts';
import { putWorkspace } from './workspaces.ts';

const FIRST_USER = 'owner';

/** The access that the operator has chosen. Absent parts are generated. */
export interface ChosenAccess {
  readonly token?: Secret | undefined;
  readonly workspaceId?: string | undefined;
}

export type Bootstrapped =
  /** The store was initialised before. `ignored`: the operator's token is not in this store. */
  | { readonly kind: 'existing'; readonly ignored: boolean }
  /** The store was initialised with credentials that the operator chose. */
  | { readonly kind: 'given'; readonly workspaceId: string }
  /** The store was initialised with generated credentials, which have to be printed once. */
  | {
      readonly kind: 'generated';
      readonly workspaceId: string;
      readonly token: Secret;
      readonly file: string;
    };

interface Credentials {
  readonly workspaceId: string;
  readonly token: Secret;
}

/**
 * Creates the first workspace, owner and token of an empty store. Generated ones are written to `bootstrap.json` in `dataDir`.
 * Resolves once they are on disk. Idempotent.
 */
export async function bootstrap(
  identity: Identity,
  dataDir: string,
  { token, workspaceId }: ChosenAccess,
): Promise<Bootstrapped> {
  const { store } = identity;
  // Only the key is looked up, because even a damaged bootstrap record shows an earlier start.
  if (store.has(bootstrapRecord, SYSTEM)) {
    const isKnown = token === undefined || store.has(tokenHashes, SYSTEM, tokenHash(token.reveal()));
    return { kind: 'existing', ignored: !isKnown };
  }
  if (token !== undefined && workspaceId !== undefined) {
    await initialise(identity, { token, workspaceId });
    return { kind: 'given', workspaceId };
  }
  const file = join(dataDir, 'bootstrap.json');
  const kept = readCredentials(file);
  const credentials: Credentials = {
    workspaceId: workspaceId ?? kept?.workspaceId ?? newId<WorkspaceId>('workspace'),
    token: token ?? kept?.token ?? newTokenSecret(),
  };
  writeCredentials(file, credentials);
  await initialise(identity, credentials);
  return { kind: 'generated', ...credentials, file };
}

async function initialise(identity: Identity, { workspaceId, token }: Credentials): Promise<void> {
  const createdAt = identity.timestamp();
  const tokenId = newId<TokenId>('token');
  identity.write((tx) => {
    putWorkspace(tx, { id: workspaceId, name: 'Default', createdAt, ownerId: FIRST_USER });
    const first = { id: tokenId, name: 'bootstrap', userId: FIRST_USER, workspaceId: null, scopes: SCOPES };
    putToken(tx, { ...first, createdAt, createdBy: FIRST_USER, expiresAt: null }, token);
    tx.put(bootstrapRecord, { at: createdAt, tokenId }, SYSTEM);
  });
  await identity.store.durable();
}

/** Returns the credentials of an interrupted first start, or undefined when the file is missing or incomplete. */
function readCredentials(file: string): Credentials | undefined {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined; // The file is missing or damaged: it will be written again.
  }
  if (typeof content !== 'object' || content === null) return undefined;
  const { workspaceId, accessToken } = { workspaceId: undefined, accessToken: undefined, ...content };
  if (typeof workspaceId !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(workspaceId)) return undefined;
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]{16,256}$/.test(accessToken)) return undefined;
  return { workspaceId, token: new Secret(accessToken) };
}

function writeCredentials(file: string, { workspaceId, token }: Credentials): void {
  const content = { workspaceId, userId: FIRST_USER, accessToken: token.reveal() };
  writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`);
}
