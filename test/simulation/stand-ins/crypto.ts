/** `node:crypto` for the server of a simulation: its chance is the world's, and everything else is real. */
import * as crypto from 'node:crypto';
import { world } from '../world/world.ts';

export * from 'node:crypto';

export function randomFillSync<T extends NodeJS.ArrayBufferView>(view: T): T {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const { ofServer } = world();
  for (let at = 0; at < bytes.length; at++) bytes[at] = ofServer.below(256);
  return view;
}

export function randomBytes(size: number): Buffer {
  return randomFillSync(Buffer.alloc(size));
}

export function randomInt(first: number, limit?: number): number {
  const { ofServer } = world();
  return limit === undefined ? ofServer.below(first) : first + ofServer.below(limit - first);
}

export function randomUUID(): string {
  const hex = randomBytes(16).toString('hex');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-a$4-$5');
}

export default { ...crypto, randomFillSync, randomBytes, randomInt, randomUUID };
