/** Opens the identity plane: workspaces, members, access tokens, and the authentication of requests. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Caller } from '#src/base/caller/principal.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Announce } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { Limits } from '#storage/records/workspace-limits.ts';
import type { Removals } from '#storage/removals.ts';
import { Authenticator } from './authenticator.ts';
import { type Bootstrapped, bootstrap } from './bootstrap.ts';
import { BrowserSignIns } from './browser-sign-ins.ts';
import { CommandLineSignIns } from './command-line-sign-ins.ts';
import { EventTickets } from './event-tickets.ts';
import { ExpiryAlarm } from './expiry-alarm.ts';
import { Identity } from './identity.ts';
import { Members } from './members.ts';
import { OwnAccounts } from './own-account.ts';
import type { PageKeys } from './page-tokens.ts';
import { IdentityProvider, type ProviderSettings } from './provider/identity-provider.ts';
import { ProviderAccounts, type SubjectVault } from './provider/provider-accounts.ts';
import { ProviderChecks } from './provider/provider-checks.ts';
import { ProviderSignIn } from './provider/provider-sign-in.ts';
import { AccessTokens } from './tokens.ts';
import { WorkspaceDeletion, type WorkspaceOccupants } from './workspace-deletion.ts';
import { LimitsOfWorkspaces } from './workspace-limits.ts';
import { Workspaces } from './workspaces.ts';

type IdentityContext = Pick<PlaneContext, 'config' | 'store' | 'cluster' | 'log'>;

export interface IdentityPlane {
  readonly authenticator: Authenticator;
  readonly members: Members;
  readonly workspaces: Workspaces;
  readonly limits: LimitsOfWorkspaces;
  /** Registers the removal of deleted workspaces' data, and returns the object that deletes workspaces. */
  openDeletion(removals: Removals, occupants: WorkspaceOccupants): WorkspaceDeletion;
  readonly tokens: AccessTokens;
  readonly ownAccounts: OwnAccounts;
  readonly signIns: BrowserSignIns;
  readonly commandLines: CommandLineSignIns;
  /**
   * Begins to check people at the identity provider, and returns the object for signing in with it; undefined when the settings
   * name no provider. `stack` ends it. Throws `OperatorError`.
   */
  openProvider(
    settings: ProviderSettings,
    vault: SubjectVault,
    keys: (keyId?: string) => PageKeys,
    stack: Pick<AsyncDisposableStack, 'use'>,
  ): ProviderSignIn | undefined;
  readonly tickets: EventTickets;
  readonly bootstrapped: Bootstrapped;
  /** See `Identity.durable`. */
  readonly durable: () => Promise<void> | undefined;
  /** See `Identity.announce`. */
  announce: Announce;
  /**
   * Calls `end` after every change of identity and when a used token expires, with a test for callers who have lost
   * their access: their token was revoked or has expired, they are no longer members, or their role is too low.
   * Disposing the result stops the timer.
   */
  onRevocation(
    end: (isRevoked: (caller: Caller | undefined, action?: string) => boolean) => void,
  ): Disposable;
}

/**
 * Resolves once an empty store has its first workspace, owner and token. In a server with several workers these exist
 * before the workers start.
 */
export async function openIdentity(context: IdentityContext, dataDir: string): Promise<IdentityPlane> {
  const { config, store, cluster, log } = context;
  const { bootstrapToken, bootstrapWorkspace } = config;
  const onFault = (error: unknown) =>
    log.error({ err: error }, 'open streams and requests could not be checked after rights have changed');
  const identity = new Identity(store, Date.now, cluster, onFault);
  const bootstrapped: Bootstrapped =
    cluster.size > 1
      ? { kind: 'existing', ignored: false }
      : await bootstrap(identity, dataDir, { token: bootstrapToken, workspaceId: bootstrapWorkspace });
  const authenticator = new Authenticator(identity);
  const workspaces = new Workspaces(identity);
  const members = new Members(identity);
  const signIns = new BrowserSignIns(identity, config);
  const tokens = new AccessTokens(identity, config.tokenMaxAgeDays);
  return {
    authenticator,
    members,
    workspaces,
    limits: new LimitsOfWorkspaces(identity, cluster, limitsIn(config)),
    openDeletion: (removals, occupants) =>
      new WorkspaceDeletion(workspaces, { cluster, removals }, occupants),
    tokens,
    commandLines: new CommandLineSignIns(identity, authenticator, tokens),
    ownAccounts: new OwnAccounts(identity),
    signIns,
    openProvider(settings, vault, keys, stack) {
      const provider = IdentityProvider.of(settings);
      if (provider === undefined) return undefined;
      const accounts = new ProviderAccounts({ identity, members, vault, settings });
      const parts = { identity, provider, accounts };
      stack.use(new ProviderChecks(parts, context));
      return new ProviderSignIn(parts, signIns, keys);
    },
    tickets: new EventTickets(authenticator),
    bootstrapped,
    durable: identity.durable.bind(identity),
    announce: (topic, payload) => identity.announce(topic, payload),
    onRevocation(end) {
      const check = () => {
        const isValid = authenticator.createRevalidator();
        end((caller, action) => !isValid(caller, action));
      };
      identity.onChange(check);
      const alarm = new ExpiryAlarm(check, () => identity.nowMs(), onFault);
      authenticator.onExpiring = (ms) => alarm.add(ms);
      return alarm;
    },
  };
}

/** Returns the limits of workspaces for which the operator has set none. */
function limitsIn(config: Config): Limits {
  return {
    sessions: config.workspaceMaxSessions,
    runs: config.workspaceMaxRuns,
    streams: config.workspaceMaxSubscribers,
    filesMb: config.workspaceFilesMb,
    files: config.workspaceMaxFiles,
    jobs: config.workspaceMaxJobs,
    sessionsPerUser: config.userMaxSessions,
    runsPerUser: config.userMaxRuns,
  };
}
