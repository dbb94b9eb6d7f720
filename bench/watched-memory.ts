import { proportionalBytes } from './processes.ts';

const INTERVAL_MS = 25;

/** Returns the most memory (Pss, in bytes) that a process used during `work`, sampled forty times per second. */
export async function peakMemoryDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  let most = proportionalBytes([pid]);
  const look = () => {
    most = Math.max(most, proportionalBytes([pid]));
  };
  const timer = setInterval(look, INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  look();
  return most;
}
