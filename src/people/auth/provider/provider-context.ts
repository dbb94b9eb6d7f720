import type { Identity } from '../identity.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { ProviderAccounts } from './provider-accounts.ts';

/** The identity provider of a server, and the accounts of the people who sign in with it. */
export interface ProviderContext {
  readonly identity: Identity;
  readonly provider: IdentityProvider;
  readonly accounts: ProviderAccounts;
}
