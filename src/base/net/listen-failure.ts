/** Explains why this machine does not let a program listen on an address, with advice. */
import { createServer } from 'node:net';

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Resolves with the code of the error with which listening fails, such as `EADDRINUSE`; undefined when it succeeds. */
export function probeListening(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    // Without this option a second program could share the port, and the probe would not notice the first
    // program.
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Returns why listening failed with `code`, and advice, each as one sentence. `names` are the settings to change. */
export function explainListening(
  code: string | undefined,
  { host, port }: Address,
): { readonly why: string; readonly advice: string } {
  if (code === 'EADDRINUSE')
    return {
      why: 'another program uses the port',
      advice: `Stop that program (ss -ltnp shows it), or set TROUPE_PORT to another port.`,
    };
  if (code === 'EADDRNOTAVAIL')
    return {
      why: `this machine does not have the address ${host}`,
      advice: 'Set TROUPE_HOST to one of its addresses, or to 127.0.0.1.',
    };
  if (code === 'EACCES')
    return {
      why: `this user may not listen on port ${port}`,
      advice: `Set TROUPE_PORT to a port above 1023, or allow this one (net.ipv4.ip_unprivileged_port_start).`,
    };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return {
      why: `the name ${host} is not known here`,
      advice: `Set TROUPE_HOST to an IP address of this machine, or correct the name.`,
    };
  if (code === 'EAFNOSUPPORT')
    return {
      why: `this machine has no network of the kind of ${host}`,
      advice: `Set TROUPE_HOST to an address that it has, such as 127.0.0.1.`,
    };
  return {
    why: code === undefined ? 'the system refused it, but allows it now' : code,
    advice: `Start the server again, or set TROUPE_HOST and TROUPE_PORT to an address and a port that it may use.`,
  };
}

/** Returns one line that says why the server cannot listen, with advice. */
export function listenFailure(code: string | undefined, address: Address): string {
  const { why, advice } = explainListening(code, address);
  return `Cannot listen on ${address.host}:${address.port}: ${why}. ${advice}`;
}
