/**
 * The gateway to databases: which addresses this server connects to. A name is resolved once, every address it has is
 * judged, and the route that comes out leads to these addresses only. A refusal contacts nobody, so how long it takes
 * tells nothing of the target.
 */
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { DatasourceFailure } from '../failure.ts';
import { type AddressScope, contains, networks, scopeOf } from './address-scope.ts';
import { type EgressRoute, openEgressRoute } from './egress-route.ts';
import { type IpAddress, parseAddress, parseHost } from './ip-address.ts';

/** All addresses of a name. Rejects when there is none. */
export type Resolver = (name: string) => Promise<readonly string[]>;

export interface EgressOptions {
  /** The host this server listens on, as it is set. */
  readonly listenHost: string;
  /** The ports it listens on by now, which are never reached. */
  readonly ownPorts: () => readonly number[];
  /**
   * Names, addresses and networks: exactly these loopback and private targets may be reached. `undefined`: all of them
   * when the server listens on loopback only, else none.
   */
  readonly allow: readonly string[] | undefined;
  readonly resolve?: Resolver;
  /** Addresses of this machine, asked for at each judgement. */
  readonly ownAddresses?: () => readonly string[];
}

export interface Egress {
  /**
   * Judges a target. The caller disposes of the route. Throws `DatasourceFailure` with `not_allowed`,
   * `name_not_found`, or `timeout` when `signal` aborts first.
   */
  admit(host: string, port: number, signal: AbortSignal): Promise<EgressRoute>;
}

export function createEgress({
  listenHost,
  ownPorts,
  allow,
  resolve = resolveBySystem,
  ownAddresses = addressesOfThisMachine,
}: EgressOptions): Egress {
  const isAllowed = allowance(listenHost, allow);
  return {
    async admit(host, port, signal) {
      const parsed = parseHost(host);
      if (parsed.kind === 'invalid') throw new DatasourceFailure('not_allowed');
      const name = parsed.kind === 'name' ? parsed.name : undefined;
      const addresses =
        parsed.kind === 'address' ? [parsed.address] : await resolved(resolve, parsed.name, signal);
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
  if (allow === undefined) {
    const isAtHome = isLoopbackHost(listenHost);
    return (scope) => scope === 'public' || isAtHome;
  }
  const listed = networks(allow);
  const names = new Set(
    allow.flatMap((entry) => {
      const host = parseHost(entry);
      return host.kind === 'name' ? [host.name] : [];
    }),
  );
  return (scope, address, name) =>
    scope === 'public' || contains(listed, address) || (name !== undefined && names.has(name));
}

/** Whether only programs of this machine can reach what listens there. */
export function isLoopbackHost(host: string): boolean {
  const parsed = parseHost(host);
  if (parsed.kind === 'name') return parsed.name === 'localhost' || parsed.name.endsWith('.localhost');
  return parsed.kind === 'address' && scopeOf(parsed.address, new Set()) === 'loopback';
}

/** The one that trusts the network least decides how the server is spoken to. */
function closestOf(scopes: readonly Exclude<AddressScope, 'forbidden'>[]): EgressRoute['scope'] {
  if (scopes.includes('public')) return 'public';
  return scopes.includes('private') ? 'private' : 'loopback';
}

async function resolved(resolve: Resolver, name: string, signal: AbortSignal): Promise<IpAddress[]> {
  const found = await untilAborted(
    resolve(name).catch(() => []),
    signal,
  );
  const addresses = found.map(parseAddress);
  if (addresses.length === 0) throw new DatasourceFailure('name_not_found');
  // A zone id, or something that is no address at all.
  if (addresses.includes(undefined)) throw new DatasourceFailure('not_allowed');
  return addresses.filter((address) => address !== undefined);
}

/** Settles with the promise, or rejects with `timeout` when the signal aborts first. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((done, fail) => {
    const abort = () => fail(new DatasourceFailure('timeout'));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(done, fail).finally(() => signal.removeEventListener('abort', abort));
  });
}

async function resolveBySystem(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);
}

function addressesOfThisMachine(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => address),
  );
}
