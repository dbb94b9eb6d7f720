/** `certificates.ts` of the product with fixed certificates, because the real ones are made with chance and in real time. */
import { NO_KEY, NODES, SERVER } from '../nodes/fixed-certificates.ts';

export async function makeServerCredentials(): Promise<object> {
  return { key: NO_KEY, cert: SERVER };
}

/** The request is the name of the node. */
export async function requestCertificate(name: string): Promise<object> {
  return { key: NO_KEY, request: name };
}

/** Nodes are named `n1`, `n2` and so on, and a longer name begins with one of these. */
export async function signNode(_authority: object, _name: string, request: string): Promise<string> {
  const certificate = NODES[Number(/^n(\d)/.exec(request)?.[1]) - 1];
  if (certificate === undefined) throw new Error(`There is no fixed certificate for ${request}.`);
  return certificate;
}
