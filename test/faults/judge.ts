/**
 * Judges a recorded history (`history.ts`) against the promises of a server:
 *
 * 1. Every acknowledged run is found, once, and all answers to one idempotency key name one run.
 * 2. A run ends once: all subscribers and all reads report the same end, the record has it, and no later read reports the run as
 *    running.
 * 3. Code that was sent with one key runs at most once, and exactly once when its run is `completed`.
 * 4. Each notebook is a linearizable compare-and-set register (`judge-register.ts`).
 */
import { grouped } from './grouped.ts';
import { type EndSeen, type Entry, type FinalRun, ofKind, type RunRead } from './history.ts';
import { judgeRegisters } from './judge-register.ts';

/** Returns one line for each violation; none when a server that keeps its promises could have made this history. */
export function judge(entries: readonly Entry[]): string[] {
  return [
    ...judgeSubmissions(entries),
    ...judgeEnds(entries),
    ...judgeExecutions(entries),
    ...judgeRegisters(entries),
  ];
}

function judgeSubmissions(entries: readonly Entry[]): string[] {
  const finals = ofKind(entries, 'final-run');
  const found = new Map(finals.map((run) => [run.runId, run]));
  const problems: string[] = [];
  for (const [key, answers] of grouped(ofKind(entries, 'submission'), ({ key }) => key)) {
    const runIds = new Set(answers.flatMap(({ answer }) => (answer === 'unknown' ? [] : [answer.runId])));
    if (runIds.size > 1)
      problems.push(`the key ${key} was answered with several runs: ${[...runIds].join(', ')}`);
    for (const runId of runIds) {
      const run = found.get(runId);
      if (run === undefined) problems.push(`the run ${runId} was acknowledged and is lost`);
      else if (run.token !== answers[0]!.token)
        problems.push(`the run ${runId} has other code than was sent for it`);
    }
  }
  for (const [runId, { length }] of grouped(finals, (run) => run.runId))
    if (length > 1) problems.push(`the run ${runId} is listed ${length} times`);
  for (const [token, runs] of grouped(finals, (run) => run.token)) {
    const ids = new Set(runs.map(({ runId }) => runId));
    if (token !== undefined && ids.size > 1)
      problems.push(`the code ${token} was sent with one key and has several runs: ${[...ids].join(', ')}`);
  }
  return problems;
}

function judgeEnds(entries: readonly Entry[]): string[] {
  const problems: string[] = [];
  const ends = grouped(ofKind(entries, 'end-seen'), ({ runId }) => runId);
  const reads = grouped(ofKind(entries, 'run-read'), ({ runId }) => runId);
  const finals = new Map(ofKind(entries, 'final-run').map((run) => [run.runId, run]));
  for (const runId of new Set([...ends.keys(), ...reads.keys(), ...finals.keys()])) {
    const seen = ends.get(runId) ?? [];
    problems.push(
      ...repeatedEnds(runId, seen),
      ...differentEnds(runId, seen, reads.get(runId) ?? [], finals.get(runId)),
    );
  }
  return problems;
}

function repeatedEnds(runId: string, seen: readonly EndSeen[]): string[] {
  const live = grouped(
    seen.filter(({ isLive }) => isLive),
    ({ follower }) => follower,
  );
  return [...live].flatMap(([follower, { length }]) =>
    length > 1 ? [`the run ${runId} ended ${length} times for the subscriber ${follower}`] : [],
  );
}

/** A status that a client has seen: from that moment on, no other status may be seen. */
interface Known {
  readonly status: string;
  readonly by: string;
  readonly at: number;
}

function differentEnds(
  runId: string,
  seen: readonly EndSeen[],
  reads: readonly RunRead[],
  final: FinalRun | undefined,
): string[] {
  const known: Known[] = [
    ...seen.map(({ status, follower, at }) => ({ status, by: `the subscriber ${follower}`, at })),
    ...reads.flatMap(({ status, to }) => (status === 'running' ? [] : [{ status, by: 'a read', at: to }])),
  ];
  const first = known.reduce<Known | undefined>(
    (earliest, one) => (earliest === undefined || one.at < earliest.at ? one : earliest),
    undefined,
  );
  if (first === undefined) return [];
  const told = `the run ${runId}, which ${first.by} knew as ${first.status},`;
  const others = new Set(known.filter(({ status }) => status !== first.status).map(({ status }) => status));
  const problems = [...others].map((status) => `${told} also ended as ${status}`);
  if (final !== undefined && final.status !== first.status)
    problems.push(`${told} is stored as ${final.status}`);
  const late = reads.find(({ status, from }) => status === 'running' && from > first.at);
  if (late !== undefined)
    problems.push(
      `${told} was read as running${late.isStale ? ' and stale' : ''} ${Math.round(late.from - first.at)} ms later`,
    );
  return problems;
}

function judgeExecutions(entries: readonly Entry[]): string[] {
  const times = new Map(ofKind(entries, 'executed').map((entry) => [entry.token, entry.times]));
  const problems = [...times].flatMap(([token, count]) =>
    count > 1 ? [`the code ${token} was sent with one key and ran ${count} times`] : [],
  );
  for (const { runId, status, token } of ofKind(entries, 'final-run')) {
    if (status === 'completed' && token !== undefined && !times.has(token))
      problems.push(`the run ${runId} is completed and its code ${token} never ran`);
  }
  return problems;
}

/** Returns how many entries of each kind there are, and how many different keys. */
export function extentOf(entries: readonly Entry[]): Readonly<Record<string, number>> {
  const counts = grouped(entries, ({ kind }) => kind);
  const keys = new Set(ofKind(entries, 'submission').map(({ key }) => key));
  return { ...Object.fromEntries([...counts].map(([kind, { length }]) => [kind, length])), keys: keys.size };
}
