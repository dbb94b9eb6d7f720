/** Why a kernel has ended, in sentences for people who look at a page. */
import type { KernelEnd } from '#machines/notebook-session.ts';
import { FAILURES, type FailureCode } from '#src/base/errors/failures.ts';
import { durationText } from '#src/base/text/duration-text.ts';

/** The reasons that are no failures. */
const OWN: Readonly<Record<Exclude<KernelEnd, FailureCode>, (idleTimeoutS: number) => string>> = {
  idle: (idleTimeoutS) => `The kernel was ended after ${durationText(idleTimeoutS)} without use.`,
  hibernated: () => 'The kernel was stopped.',
};

/** Returns why a kernel has ended. `idleTimeoutS` is how long this server keeps a kernel that nobody uses. */
export function sentenceOfEnd(end: KernelEnd, idleTimeoutS: number): string {
  return Object.hasOwn(OWN, end) ? OWN[end as keyof typeof OWN](idleTimeoutS) : FAILURES[end as FailureCode];
}
