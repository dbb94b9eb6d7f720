/** The files of a machine that has enrolled: its key and certificate, in a folder of mode 0700. */
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asNumber, asRecord, asText } from '../../processes/json-shape.ts';

/** The membership of a machine. */
export interface StoredMembership {
  readonly name: string;
  /** The address of the server. */
  readonly host: string;
  readonly port: number;
  /** As PEM. */
  readonly key: string;
  readonly certificate: string;
  readonly authority: string;
  /** SHA-256 of the invitation with which the node has enrolled, in hexadecimal. */
  readonly invitation?: string;
}

export class StateFolder {
  readonly path: string;
  readonly #write: (path: string, text: string) => void;
  readonly #file: string;

  /** `write` replaces a file atomically; only its owner can read it. */
  constructor(path: string, write: (path: string, text: string) => void) {
    this.path = path;
    this.#write = write;
    this.#file = join(path, 'membership.json');
  }

  /** Returns undefined when the machine has not enrolled. Throws when the file is damaged. */
  read(): StoredMembership | undefined {
    if (!existsSync(this.#file)) return undefined;
    const fields = asRecord(JSON.parse(readFileSync(this.#file, 'utf8')), this.#file);
    return {
      name: asText(fields.name, 'name'),
      host: asText(fields.host, 'host'),
      port: asNumber(fields.port, 'port'),
      key: asText(fields.key, 'key'),
      certificate: asText(fields.certificate, 'certificate'),
      authority: asText(fields.authority, 'authority'),
      ...(fields.invitation !== undefined && { invitation: asText(fields.invitation, 'invitation') }),
    };
  }

  write(membership: StoredMembership): void {
    this.#write(this.#file, `${JSON.stringify(membership, null, 2)}\n`);
  }
}

/** Returns whether a third of the life of the certificate is left or less. */
export function needsRenewal(certificate: string, now = Date.now()): boolean {
  const { validFrom, validTo } = new X509Certificate(certificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  return now > to - (to - from) / 3;
}
