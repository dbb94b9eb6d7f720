/**
 * The gateway to databases: it decides which addresses this server connects to. A name is resolved once, every address
 * it has is checked, and the route leads to these addresses only. A refused target is never contacted, so the duration
 * of a refusal reveals nothing about it.
 */

import { networkInterfaces } from 'node:os';
import { untilAborted } from '#src/base/async/until-aborted.ts';
import { type IpAddress, parseAddress, parseHost } from '#src/base/net/ip-address.ts';
import { Networks } from '#src/base/net/ip-networks.ts';
import { DatasourceFailure } from '../failure.ts';
import { type AddressScope, scopeOf } from './address-scope.ts';
import { type EgressRoute, openEgressRoute } from './egress-route.ts';

/** Returns all addresses of a name. Rejects when the name has none. `holder` and `signal` are those of `Egress.admit`. */
export type Resolver = (
  name: string,
  holder: string | undefined,
  signal: AbortSignal,
) => Promise<readonly string[]>;

/** The rules of the gateway. */
export interface EgressOptions {
  /** The host setting of this server. */
  readonly listenHost: string;
  /** The ports that this server listens on. The gateway never connects to them. */
  readonly ownPorts: () => readonly number[];
  /**
   * Names, addresses and networks: of loopback and private targets, exactly these may be reached. When `undefined`,
   * all such targets may be reached if the server itself listens on loopback only, and none otherwise.
   */
  readonly allow: readonly string[] | undefined;
  readonly resolve?: Resolver;
  /** Returns the addresses of this machine. It is called for every check, because they can change. */
  readonly ownAddresses?: () => readonly string[];
}

/** The gateway. */
export interface Egress {
  /**
   * Checks a target and returns a route to it, which the caller disposes of. Throws `DatasourceFailure` with
   * `not_allowed` or `name_not_found`, or with `timeout` when `signal` aborts first. `holder` names the workspace for a resolver that
   * shares its lookups among workspaces.
   */
  admit(host: string, port: number, signal: AbortSignal, holder?: string): Promise<EgressRoute>;
}

/** Returns a gateway with these rules. */
export function createEgress({
  listenHost,
  ownPorts,
  allow,
  resolve = resolveBySystem,
  ownAddresses = addressesOfThisMachine,
}: EgressOptions): Egress {
  const isAllowed = allowance(listenHost, allow);
  return {
    async admit(host, port, signal, holder) {
      const parsed = parseHost(host);
      if (parsed.kind === 'invalid') throw new DatasourceFailure('not_allowed');
      const name = parsed.kind === 'name' ? parsed.name : undefined;
      const addresses =
        parsed.kind === 'address'
          ? [parsed.address]
          : await resolved((name) => resolve(name, holder, signal), parsed.name, signal);
      const own = new Set(ownAddresses().flatMap((text) => parseAddress(text)?.text ?? []));
      const scopes = addresses.map((address) => {
        const scope = scopeOf(address, own);
        const isOurself = scope === 'loopback' && ownPorts().includes(port);
        if (scope === 'forbidden' || isOurself || !isAllowed(scope, address, name))
          throw new DatasourceFailure('not_allowed');
        return scope;
      });
      return openEgressRoute({ host: name ?? addresses[0]!.text, port, scope: closestOf(scopes), addresses });
    },
  };
}

type Allowance = (scope: AddressScope, address: IpAddress, name: string | undefined) => boolean;

function allowance(listenHost: string, allow: readonly string[] | undefined): Allowance {
  if (allow === undefined) return (scope) => scope === 'public' || isLoopbackHost(listenHost);
  const listed = new Networks(allow);
  const names = new Set(
    allow.flatMap((entry) => {
      const host = parseHost(entry);
      return host.kind === 'name' ? [host.name] : [];
    }),
  );
  return (scope, address, name) =>
    scope === 'public' || listed.contains(address) || (name !== undefined && names.has(name));
}

/** Returns whether only programs of this machine can reach a server that listens on `host`. */
export function isLoopbackHost(host: string): boolean {
  const parsed = parseHost(host);
  if (parsed.kind === 'name') return parsed.name === 'localhost' || parsed.name.endsWith('.localhost');
  return parsed.kind === 'address' && scopeOf(parsed.address, new Set()) === 'loopback';
}

/**
 * Returns the most public scope of the addresses. It decides how strictly the server must prove its
 * identity.
 */
function closestOf(scopes: readonly Exclude<AddressScope, 'forbidden'>[]): EgressRoute['scope'] {
  if (scopes.includes('public')) return 'public';
  return scopes.includes('private') ? 'private' : 'loopback';
}

async function resolved(
  resolve: (name: string) => ReturnType<Resolver>,
  name: string,
  signal: AbortSignal,
): Promise<IpAddress[]> {
  const found = await untilAborted(
    resolve(name).catch(() => []),
    signal,
    { reason: () => new DatasourceFailure('timeout') },
  );
  const addresses = found.map(parseAddress);
  if (addresses.length === 0) throw new DatasourceFailure('name_not_found');
  // A resolver can also return an address with a zone id, or text that is not an address.
  if (addresses.includes(undefined)) throw new DatasourceFailure('not_allowed');
  return addresses.filter((address) => address !== undefined);
}

/** Returns all addresses of a name, as the system finds them. Rejects when there is none. */
export async function resolveBySystem(name: string): Promise<readonly string[]> {
  // The module is loaded here and not at start, because it reads the system's configuration of name resolution when
  // it is loaded.
  const { lookup } = await import('node:dns/promises');
  return (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);
}

function addressesOfThisMachine(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => address),
  );
}
