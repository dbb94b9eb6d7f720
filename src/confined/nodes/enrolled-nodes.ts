/**
 * The authority that certifies nodes, and the list of nodes that have a certificate: files of mode 0600 in the folder `nodes` of
 * the data directory. They are not records of the store, because the process to which nodes connect has no store if there are
 * workers. A removed node is no longer in the list, and its certificate is refused.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { asBoolean, asList, asRecord, asText } from '../processes/json-shape.ts';
import type { Credentials } from './certificates.ts';

/** A machine that has a certificate. */
export interface EnrolledNode {
  readonly name: string;
  /** SHA-256 of its public key, in hexadecimal. */
  readonly key: string;
  readonly enrolledAt: string;
  /** Whether no new kernels are to start there. */
  readonly isDraining: boolean;
  /** Whether the certificate is valid for one connection only. Such a node is in no file, and is forgotten when the connection ends. */
  readonly isTemporary: boolean;
}

/** Replaces a file atomically; only its owner can read it. */
type WriteFile = (path: string, text: string) => void;

export class EnrolledNodes {
  readonly authority: Credentials;
  readonly #folder: string;
  readonly #write: WriteFile;
  readonly #nodes: Map<string, EnrolledNode>;
  /** The text that was written last. */
  #saved = '';

  private constructor(folder: string, write: WriteFile, authority: Credentials) {
    this.#folder = folder;
    this.#write = write;
    this.authority = authority;
    this.#nodes = new Map(readList(folder).map((node) => [node.name, node]));
  }

  /**
   * Reads the files in the folder, or makes an authority. A missing folder is made. `unseal` opens the
   * authority that a restored backup has sealed in a file, and throws one line when the keyring does not open
   * it.
   */
  static async open(
    folder: string,
    write: WriteFile,
    unseal?: (sealed: string, file: string) => string,
  ): Promise<EnrolledNodes> {
    const file = join(folder, 'authority.pem');
    const sealed = join(folder, 'authority.sealed');
    if (!existsSync(file) && unseal !== undefined && existsSync(sealed)) {
      write(file, unseal(readFileSync(sealed, 'utf8'), sealed));
      rmSync(sealed);
    }
    if (!existsSync(file)) {
      const { makeAuthority } = await import('./certificates.ts');
      const made = await makeAuthority();
      write(file, `${made.key}\n${made.cert}\n`);
    }
    const text = readFileSync(file, 'latin1');
    const [key, cert] = /^(-----BEGIN PRIVATE.*?)\n(-----BEGIN CERT.*)$/s.exec(text)?.slice(1) ?? [];
    if (key === undefined || cert === undefined)
      throw new Error(
        `${file} is damaged. Delete the folder ${folder}; every node then needs a new invitation.`,
      );
    return new EnrolledNodes(folder, write, { key, cert });
  }

  /** SHA-256 of the authority's certificate (DER). */
  get digest(): Buffer {
    return createHash('sha256').update(new X509Certificate(this.authority.cert).raw).digest();
  }

  list(): readonly EnrolledNode[] {
    return [...this.#nodes.values()];
  }

  get(name: string): EnrolledNode | undefined {
    return this.#nodes.get(name);
  }

  /**
   * Returns the node with this certificate, which the authority has signed; undefined when the node was
   * removed.
   */
  owner(certificate: X509Certificate): EnrolledNode | undefined {
    const key = keyOf(certificate);
    return this.list().find((node) => node.key === key);
  }

  /** Notes that this certificate is the node's. An earlier certificate of a node with this name is refused from then on. */
  add(name: string, certificate: X509Certificate, isTemporary = false): void {
    const known = this.#nodes.get(name);
    this.#nodes.set(name, {
      name,
      key: keyOf(certificate),
      enrolledAt: known?.enrolledAt ?? new Date().toISOString(),
      isDraining: known?.isDraining ?? false,
      isTemporary,
    });
    this.#save();
  }

  /** Returns whether there was such a node. */
  drain(name: string, isDraining: boolean): boolean {
    const node = this.#nodes.get(name);
    if (node === undefined) return false;
    this.#nodes.set(name, { ...node, isDraining });
    this.#save();
    return true;
  }

  /** Returns whether there was such a node. */
  remove(name: string): boolean {
    if (!this.#nodes.delete(name)) return false;
    this.#save();
    return true;
  }

  #save(): void {
    const nodes = this.list().filter(({ isTemporary }) => !isTemporary);
    const stored = nodes.map(({ isTemporary: _, ...node }) => node);
    const text = JSON.stringify({ version: 1, nodes: stored }, null, 2);
    if (text === this.#saved) return;
    this.#saved = text;
    this.#write(join(this.#folder, 'enrolled.json'), `${text}\n`);
  }
}

/** Returns the SHA-256 of a certificate's public key, in hexadecimal. */
export function keyOf(certificate: X509Certificate): string {
  return createHash('sha256')
    .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function readList(folder: string): readonly EnrolledNode[] {
  const file = join(folder, 'enrolled.json');
  if (!existsSync(file)) return [];
  const { nodes } = asRecord(JSON.parse(readFileSync(file, 'utf8')), file);
  return asList(
    nodes,
    (value) => {
      const node = asRecord(value, 'a node');
      return {
        name: asText(node.name, 'name'),
        key: asText(node.key, 'key'),
        enrolledAt: asText(node.enrolledAt, 'enrolledAt'),
        isDraining: asBoolean(node.isDraining, 'isDraining'),
        isTemporary: false,
      };
    },
    file,
  );
}
