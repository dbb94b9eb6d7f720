/**
 * `node:tls` between a simulated server and its nodes: connections in memory that carry the certificates of both sides. They are checked as
 * TLS does, with their signatures; nothing is encrypted.
 */
import { X509Certificate } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { type Identity, WireSocket } from './wire.ts';

/** The credentials of one side, and the authority that it trusts. */
interface Credentials {
  readonly cert?: string;
  readonly ca?: string;
}

interface ConnectOptions {
  readonly port: number;
  readonly secureContext?: Credentials;
  readonly rejectUnauthorized?: boolean;
}

interface ServerOptions extends Credentials {
  readonly handshakeTimeout: number;
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const identities = new Map<string, Identity>();

export function createSecureContext(options: Credentials = {}): Credentials {
  return options;
}

/** Returns what a side shows of itself, and how it judges the other side. */
export function identityOf({ cert = '', ca = '' }: Credentials): Identity {
  const key = `${cert}\n${ca}`;
  const known = identities.get(key);
  if (known !== undefined) return known;
  const [own, issuer] = [...cert.matchAll(PEM)].map(([pem]) => new X509Certificate(pem));
  const authority = ca === '' ? undefined : new X509Certificate(ca);
  const identity: Identity = {
    certificate: own,
    issuer,
    trusts: (other) =>
      authority !== undefined && other?.checkIssued(authority) === true && other.verify(authority.publicKey),
  };
  identities.set(key, identity);
  return identity;
}

export function connect({ port, secureContext = {}, rejectUnauthorized = true }: ConnectOptions): WireSocket {
  return WireSocket.dial(port, identityOf(secureContext), rejectUnauthorized);
}

/** A server takes connections by its event `connection`, and hands them over when the other side has shown its certificate. */
export function createServer(options: ServerOptions, receive: (socket: WireSocket) => void): EventEmitter {
  const server = new EventEmitter();
  const identity = identityOf(options);
  server.on('connection', (socket: WireSocket) => {
    const patience = setTimeout(() => {
      socket.destroy();
      server.emit('tlsClientError', new Error('the handshake takes too long'));
    }, options.handshakeTimeout);
    socket.once('close', () => clearTimeout(patience));
    socket.greet(identity, () => {
      clearTimeout(patience);
      receive(socket);
    });
  });
  return server;
}
