/** The part of `oidc-provider`, which brings no types, that the tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (req: IncomingMessage, res: ServerResponse) => void;
    readonly Client: unknown;
  }
}
