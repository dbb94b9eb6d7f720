import type { ForwardedHead } from '#src/cluster/peers/forwarding.ts';
import type { WireRequest } from '../wire-exchange.ts';

/** The part of a request that is not its body. */
type RequestHead = Pick<ForwardedHead, 'method' | 'url' | 'query' | 'params' | 'headers'>;

/** A request that another worker has received and forwarded, or that the server makes to itself. */
export class PeerRequest implements WireRequest {
  readonly #head: RequestHead;
  /**
   * The headers by name. If a header was sent more than once, only its first line is used, as in uWebSockets.js.
   */
  readonly #headers = new Map<string, string>();

  constructor(head: RequestHead) {
    this.#head = head;
    for (let i = 0; i < head.headers.length; i += 2) {
      const name = head.headers[i]!;
      if (!this.#headers.has(name)) this.#headers.set(name, head.headers[i + 1]!);
    }
  }

  getMethod(): string {
    return this.#head.method;
  }

  getUrl(): string {
    return this.#head.url;
  }

  getQuery(): string;
  getQuery(name: string): string | undefined;
  getQuery(name?: string): string | undefined {
    const { query } = this.#head;
    return name === undefined ? query : (new URLSearchParams(query).get(name) ?? undefined);
  }

  getHeader(lowerCaseName: string): string {
    return this.#headers.get(lowerCaseName) ?? '';
  }

  getParameter(index: number): string {
    return this.#head.params[index] ?? '';
  }

  forEach(visit: (name: string, value: string) => void): void {
    const { headers } = this.#head;
    for (let i = 0; i < headers.length; i += 2) visit(headers[i]!, headers[i + 1]!);
  }
}
