import { proportionalBytes } from './processes.ts';

const EVERY_MS = 25;

/** The most memory (Pss, bytes) that a process had while `work` went on, looked at forty times a second. */
export async function mostMemoryDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  let most = proportionalBytes([pid]);
  const look = () => {
    most = Math.max(most, proportionalBytes([pid]));
  };
  const timer = setInterval(look, EVERY_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  look();
  return most;
}
