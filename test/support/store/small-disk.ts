/** A small file system of its own, which a test can fill. Only root can mount one. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Owner } from '../server-fixture.ts';

/** The reason for which tests with a small disk cannot run here, or false. */
export const noSmallDisk: string | false =
  process.getuid?.() === 0 && tryMount() ? false : 'only root can mount a file system';

/** Mounts a file system of `megabytes` and `inodes`, which is unmounted when the owner ends. Returns its directory. */
export function smallDisk(owner: Owner, megabytes: number, inodes?: number): string {
  const path = mkdtempSync(join(tmpdir(), 'troupe-disk-'));
  const { status, stderr } = mount(path, megabytes, inodes);
  if (status !== 0) throw new Error(String(stderr));
  owner.after(async () => unmount(path));
  return path;
}

/** Writes a file that takes all space except `spareBytes`. Returns its path. */
export function fillDisk(path: string, spareBytes = 0): string {
  const file = join(path, 'everything');
  const { bavail, bsize } = statfsSync(path);
  try {
    writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - spareBytes)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
  return file;
}

function tryMount(): boolean {
  const path = mkdtempSync(join(tmpdir(), 'troupe-disk-'));
  const isMounted = mount(path, 1).status === 0;
  if (isMounted) unmount(path);
  else rmdirSync(path);
  return isMounted;
}

function mount(path: string, megabytes: number, inodes?: number) {
  const options = `size=${megabytes}m${inodes === undefined ? '' : `,nr_inodes=${inodes}`}`;
  return spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]);
}

function unmount(path: string): void {
  spawnSync('umount', ['--lazy', path]);
  rmdirSync(path);
}
