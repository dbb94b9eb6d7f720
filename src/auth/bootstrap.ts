/**
 * The first workspace, owner and token of an empty store.
 *
 * Generated credentials are on disk in `bootstrap.json` before the store is committed, and an interrupted start goes on
 * with the ones it finds there. So at no moment is there a store that nobody can enter, nor are there two answers to
 * what its credentials are.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId, type TokenId, type WorkspaceId } from '#src/core/ids.ts';
import { Secret } from '#src/core/secret.ts';
import { bootstrapRecord, tokenHashes } from '#storage/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { writePrivateFile } from '#storage/private-file.ts';
import type { Identity } from './identity.ts';
import { SCOPES } from './permissions.ts';
import { newTokenSecret, tokenHash } from './token-secret.ts';
import { putToken } from './tokens.ts';
import { putWorkspace } from './workspaces.ts';

const FIRST_USER = 'owner';

export interface BootstrapOptions {
  readonly identity: Identity;
  /** Where `bootstrap.json` is kept. */
  readonly dataDir: string;
  /** Chosen by the operator; what is absent is generated. */
  readonly token?: Secret | undefined;
  readonly workspaceId?: string | undefined;
}

export type Bootstrapped =
  /** The store had been initialised before. `ignored`: the operator's token or workspace is none of this store. */
  | { readonly kind: 'existing'; readonly ignored: boolean }
  /** Initialised with what the operator chose: there is nothing to print. */
  | { readonly kind: 'given'; readonly workspaceId: string }
  /** Initialised with generated credentials: to be printed once. */
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

/** Gives an empty store its first workspace, owner and token; resolves when they are on disk. Idempotent. */
export async function bootstrap(options: BootstrapOptions): Promise<Bootstrapped> {
  const { identity, dataDir, token, workspaceId } = options;
  const { store } = identity;
  if (store.get(bootstrapRecord, SYSTEM) !== undefined) {
    const isKnown =
      token === undefined || store.get(tokenHashes, SYSTEM, tokenHash(token.reveal())) !== undefined;
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

/** What an interrupted first start left behind; undefined when it left nothing that is whole. */
function readCredentials(file: string): Credentials | undefined {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined; // absent, or not ours: it is written anew
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
