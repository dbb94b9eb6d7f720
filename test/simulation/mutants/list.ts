/**
 * Faults of the past, and faults that would be easy to make: each is an edit of the built text of one module. The simulation has to find
 * every one. An edit that fits nowhere any more fails its test, so that it is written anew.
 */

import type { ModuleEdit } from '../hooks.ts';

export interface Mutant {
  readonly name: string;
  /** The promise that it breaks. */
  readonly breaks: string;
  /** How many workers the server needs for it; one process by default. */
  readonly workers?: number;
  /** On how many nodes kernels run for it; on the machine of the server by default. */
  readonly nodes?: number;
  /** Whether it is about jobs, so that the hunt for it has only users who make jobs. */
  readonly isOfJobs?: boolean;
  /** Whether it is about hooks, so that the hunt for it has only users who make hooks, and kills around the moments of hooks. */
  readonly isOfHooks?: boolean;
  readonly edits: readonly {
    /** The module, as it is imported. */
    readonly module: string;
    readonly from: string;
    readonly to: string;
  }[];
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledged-before-flush',
    breaks: 'a reply waits for the flush of what it reports',
    edits: [
      {
        module: '#src/http/edge/decision.ts',
        from: 'committed = exchange.prepared.isMutation ? exchange.context.durable() : observed;',
        to: 'committed = exchange.prepared.isMutation ? undefined : observed;',
      },
    ],
  },
  {
    name: 'read-before-flush',
    breaks: 'a GET shows nothing that a crash could undo',
    edits: [
      {
        module: '#src/http/edge/decision.ts',
        from: '({ result: reply, uncommitted: observed } = context.store.observe(answer, request));',
        to: '({ result: reply } = context.store.observe(answer, request));',
      },
    ],
  },
  {
    name: 'event-before-flush',
    breaks: 'no subscriber sees a state that a crash could undo',
    edits: [
      {
        module: '#src/runtime/events/commit-gate.ts',
        from: 'if (after === undefined && this.isEmpty)',
        to: 'if (this.isEmpty)',
      },
    ],
  },
  {
    name: 'event-overtakes',
    breaks: 'an event that waits for a commit holds all later events',
    edits: [
      {
        module: '#src/runtime/events/commit-gate.ts',
        from: 'if (after === undefined && this.isEmpty)',
        to: 'if (after === undefined)',
      },
    ],
  },
  {
    name: 'snapshot-in-another-commit',
    breaks: 'the snapshots of actors are in the commit of their turn',
    edits: [
      {
        module: '#src/runtime/actors/live-actors.ts',
        from: '            if (this.#moved.size > 0)\n                this.saveMoved();',
        to: '            if (!this.isLate) { this.isLate = true; setImmediate(() => { store.write(() => this.saveMoved()); this.isLate = false; }); }',
      },
    ],
  },
  {
    name: 'end-in-another-commit',
    breaks: 'the end of a run is in the commit of the turn in which its session ended it',
    edits: [
      {
        module: '#src/notebook/work/run-work.ts',
        from: 'runs.finish(live.workspaceId, runId, { status, error: failure, output, assets: shelf.assets });',
        to: 'setTimeout(() => runs.finish(live.workspaceId, runId, { status, error: failure, output, assets: shelf.assets }), 5);',
      },
    ],
  },
  {
    name: 'cancel-while-held',
    breaks: 'a run that is cancelled before its kernel has a command of it never begins',
    edits: [
      {
        module: '#src/notebook/open/work-slot.ts',
        from: "inFlight.phase = { name: 'held', isCancelled: true };",
        to: '',
      },
    ],
  },
  {
    name: 'next-command-after-cancel',
    breaks: 'a cancelled run begins no further command (d0dc0a6b)',
    edits: [
      {
        module: '#src/notebook/open/work-slot.ts',
        from: 'done.error === null && !done.interrupted && !phase.isCancelled',
        to: 'done.error === null && !done.interrupted',
      },
    ],
  },
  {
    name: 'kernel-before-commit',
    breaks: 'a kernel gets code that was sent with a key only once the run is on disk (1c26b891)',
    edits: [
      {
        module: '#src/notebook/requests/executions.ts',
        from: 'waitsForCommit: context.idempotencyKey !== undefined,',
        to: 'waitsForCommit: false,',
      },
    ],
  },
  {
    name: 'later-code-runs',
    breaks: 'a run executes the code that was accepted (7ff3091d)',
    edits: [
      {
        module: '#src/notebook/work/run-work.ts',
        from: '            ...codes,\n',
        to: '            ...codesOf(cellIds, live.view),\n',
      },
    ],
  },
  {
    name: 'second-end',
    breaks: 'a run that is over stays as it was ended (ca486055)',
    edits: [
      {
        module: '#src/runtime/runs/run-repository.ts',
        from: 'if (!this.actors.tell({ workspaceId, id: runId }, finish))\n            return;',
        to: 'this.actors.tell({ workspaceId, id: runId }, finish);',
      },
    ],
  },
  {
    name: 'opening-during-commits',
    breaks: 'a process opens the store only while nobody commits, because LMDB would lose a commit',
    workers: 3,
    edits: [
      {
        module: '#storage/disk/opening-gate.ts',
        from: 'if (this.#doors === undefined)\n            return undefined;',
        to: 'return undefined;',
      },
    ],
  },
  {
    name: 'slots-of-a-dead-heir',
    breaks: 'slots move only to a worker that lives',
    workers: 3,
    edits: [
      {
        module: '#src/cluster/primary/assignment.ts',
        from: "heir?.phase === 'serving' && this.#workers.has(heir.number)",
        to: "heir?.phase === 'serving'",
      },
    ],
  },
  {
    name: 'lost-request-is-repeated',
    breaks: 'a request that was lost with its worker is not sent again, because it may have been carried out',
    workers: 3,
    edits: [
      {
        module: '#src/cluster/peers/outgoing-request.ts',
        from: 'if (!this.#isOver)\n            this.#lose();',
        to: 'if (!this.#isOver)\n            this.#sendLater();',
      },
    ],
  },
  {
    name: 'key-in-another-commit',
    breaks: 'the record of a key is in the commit of its request',
    edits: [
      {
        module: '#src/http/edge/decision.ts',
        from: 'attempt.settle(encoded);',
        to: 'setTimeout(() => attempt.settle(encoded), 3);',
      },
    ],
  },
  {
    name: 'key-is-forgotten',
    breaks: 'a key whose request is still carried out is refused',
    edits: [
      { module: '#src/http/idempotency/idempotency-store.ts', from: 'this.#running.add(running);', to: '' },
    ],
  },
  {
    name: 'interrupt-of-the-next-command',
    breaks: 'an interrupt is meant for the command in flight',
    edits: [
      {
        module: '#src/confined/processes/kernel/command-slot.ts',
        from: 'interruptFrame(this.#inFlight)',
        to: 'interruptFrame(this.#inFlight + 1)',
      },
    ],
  },
  {
    name: 'signal-without-frame',
    breaks: 'the kernel is told which command a signal is meant for, so that it never hits another one',
    edits: [
      {
        module: '#src/confined/processes/kernel/command-slot.ts',
        from: 'this.#port.sender.send([interruptFrame(this.#inFlight)], () => this.#port.signal());',
        to: 'this.#port.signal();',
      },
    ],
  },
  {
    name: 'restart-keeps-work',
    breaks: 'a restored session knows that its kernel died with the server',
    edits: [
      {
        module: '#src/runtime/actors/actor-kind.ts',
        from: 'if (restored !== undefined && snapshot.can(restored))',
        to: "if (restored !== undefined && address.kind !== 'run' && snapshot.can(restored))",
      },
    ],
  },
  {
    name: 'end-before-last-frames',
    breaks: 'the end of a connection is reported after all of its frames were handled',
    edits: [
      {
        module: '#src/confined/processes/kernel-socket.ts',
        from: 'this.#hasClosed = true;\n        if (!this.#resting)\n            this.#events.closed();',
        to: 'this.#hasClosed = true;\n        this.#events.closed();',
      },
    ],
  },
  {
    name: 'missed-event-is-skipped',
    breaks: 'a subscriber that comes back gets every event that it has missed',
    edits: [
      {
        module: '#src/runtime/events/catch-up.ts',
        from: 'const first = ring.indexAfter(seq);',
        to: 'const first = ring.indexAfter(seq + 1);',
      },
    ],
  },
  {
    name: 'lagging-reader-is-forgotten',
    breaks: 'a subscriber that lagged goes on once its connection takes bytes again',
    edits: [
      {
        module: '#src/http/reply/event-stream.ts',
        from: 'this.#subscription?.writable();',
        to: '',
      },
    ],
  },
  {
    name: 'cancel-without-commit',
    breaks: 'the cancellation of a stale run is stored',
    edits: [
      {
        module: '#src/runtime/runs/run-repository.ts',
        from: "            status: 'cancelled',\n            output: this.printed.outputOf(workspaceId, runId),",
        to: "            status: 'failed',\n            output: this.printed.outputOf(workspaceId, runId),",
      },
    ],
  },
  {
    name: 'commits-overtake',
    breaks: 'there is one commit at a time, so none is overtaken by one that depends on it',
    edits: [
      {
        module: '#storage/commit-queue.ts',
        from: 'if (!this.#isCommitting)',
        to: 'if (true)',
      },
    ],
  },
  {
    name: 'lost-write',
    breaks: 'a later write of the same record is not forgotten with the flush of an earlier one',
    edits: [
      {
        module: '#storage/store.ts',
        from: 'if (this.#uncommitted.get(text) === write)',
        to: 'if (write !== undefined)',
      },
    ],
  },
  {
    name: 'stale-update',
    breaks: 'a notebook is replaced only if it is the one that the writer has read',
    edits: [
      {
        module: '#src/notebook/saved/saved-notebooks.ts',
        from: 'if (!isSameInstant(updatedAt, expectedUpdatedAt))',
        to: 'if (false)',
      },
    ],
  },
  {
    name: 'environment-stays-occupied',
    breaks: 'a session that closes releases its environment',
    edits: [
      {
        module: '#src/notebook/sessions/notebook-session-actors.ts',
        from: 'store.decide(() => environments.actors.tell({ workspaceId, id: environmentId }, detach));',
        to: '',
      },
    ],
  },
  {
    name: 'attempts-double-text',
    breaks: 'another attempt at a model begins with an empty answer',
    edits: [
      {
        module: '#src/agent/live-conversation.ts',
        from: "this.#draft = { entryId, runId, text: '', reasoning: '' };",
        to: "this.#draft = { entryId, runId, text: this.#draft?.text ?? '', reasoning: '' };",
      },
    ],
  },
  {
    name: 'key-of-a-wait-is-late',
    breaks: 'the record of a key is stored before its request waits for the run',
    edits: [
      {
        module: '#src/http/edge/decision.ts',
        from: 'if (attempt !== undefined)\n        store(exchange, accepted, attempt);\n    leavePlace',
        to: 'if (attempt !== undefined)\n        read.then(() => store(exchange, accepted, attempt), () => undefined);\n    leavePlace',
      },
    ],
  },
  {
    name: 'killed-kernel-gets-work',
    breaks: 'a kernel that is being killed gets no more work',
    edits: [
      {
        module: '#machines/notebook-session.ts',
        from: "on: { 'kernel.done': {} },",
        to: '',
      },
    ],
  },
  {
    name: 'work-deadline-is-forgotten',
    breaks: 'work with a deadline is stopped when the deadline has passed',
    edits: [
      {
        module: '#machines/notebook-session.ts',
        from: "workDeadline: { guard: 'hasDeadline', target: 'cancelling', actions: 'noteOutOfTime' },",
        to: '',
      },
    ],
  },
  {
    name: 'work-deadline-is-early',
    breaks: 'work with a deadline has the whole time',
    edits: [
      {
        module: '#src/notebook/work/session-work.ts',
        from: '{ timeoutMs: timeoutS * 1000 }',
        to: '{ timeoutMs: timeoutS * 500 }',
      },
    ],
  },
  {
    name: 'out-of-time-is-cancelled',
    breaks: 'work that its deadline has stopped has failed, and is not cancelled',
    edits: [
      {
        module: '#machines/notebook-session.ts',
        from: "target: 'cancelling', actions: 'noteOutOfTime' }",
        to: "target: 'cancelling' }",
      },
    ],
  },
  {
    name: 'grace-has-no-end',
    breaks: 'a kernel that ignores an interrupt is killed',
    edits: [{ module: '#machines/notebook-session.ts', from: "after: { cancelGrace: 'killing' },", to: '' }],
  },
  {
    name: 'kill-waits-for-its-report',
    breaks: 'the server gives a killed process up that stays in the system',
    edits: [
      {
        module: '#src/confined/processes/confined-child.ts',
        from: 'this.#after(this.#zygote === null ? 0 : KILL_MS, ',
        to: 'if (this.#zygote === null)\n            this.#after(0, ',
      },
    ],
  },
  {
    name: 'start-has-no-end',
    breaks: 'a kernel that does not become ready is given up',
    edits: [
      {
        module: '#src/confined/processes/kernel/kernel-process.ts',
        from: "if (this.#state !== 'up')\n                this.#refuse('kernel_start_failed', 'The kernel did not start in time.');",
        to: '',
      },
    ],
  },
  {
    name: 'stop-has-no-end',
    breaks: 'a kernel that does not obey the command to stop is killed',
    edits: [
      {
        module: '#src/confined/processes/kernel/kernel-process.ts',
        from: 'this.#after(STOP_MS, () => this.kill());',
        to: '',
      },
    ],
  },
  {
    name: 'prompt-limit-is-forgotten',
    breaks: "a prompt ends when the server's limit has passed",
    edits: [{ module: '#machines/agent-session.ts', from: 'runDeadline: over(OVER_TIME_LIMIT),', to: '' }],
  },
  {
    name: 'prompt-deadline-is-forgotten',
    breaks: 'a prompt with a deadline ends when the deadline has passed',
    edits: [
      {
        module: '#machines/agent-session.ts',
        from: "promptDeadline: { guard: 'hasDeadline', actions: raise({ type: 'expire' }) },",
        to: '',
      },
    ],
  },
  {
    name: 'busy-session-takes-work',
    breaks: 'a session takes one piece of work at a time',
    edits: [
      {
        module: '#machines/notebook-session.ts',
        from: "meta: { refuse: { execute: 'session_busy', hibernate: 'session_busy' } },\n                    on: {",
        to: "meta: { refuse: { hibernate: 'session_busy' } },\n                    on: { execute: { actions: 'permit' },",
      },
    ],
  },
  {
    name: 'closing-keeps-work',
    breaks: 'the work of a session ends with its closing',
    edits: [
      { module: '#machines/notebook-session.ts', from: '                        ...CLOSE_WORK,\n', to: '' },
    ],
  },
  {
    name: 'every-worker-decides',
    breaks: 'a request is carried out by the worker in which its session is at home',
    workers: 3,
    edits: [
      {
        module: '#src/start/app/join-cluster.ts',
        from: 'elsewhere: (workspaceId, id) => elsewhere(slotOf(workspaceId, id)),',
        to: 'elsewhere: () => undefined,',
      },
    ],
  },
  {
    name: 'environment-takes-several',
    breaks: 'an environment has at most one notebook',
    edits: [
      {
        module: '#machines/environment.ts',
        from: "meta: { refuse: { attachNotebook: 'environment_occupied' } },\n                    on: {",
        to: "on: { attachNotebook: { actions: { type: 'setNotebook', params: ({ event }) => event.sessionId } },",
      },
    ],
  },
  {
    name: 'stale-cell-change',
    breaks: 'a cell is changed only if it is the one that the writer has read',
    edits: [
      {
        module: '#src/notebook/open/current-state.ts',
        from: 'if (version != null && present !== undefined && present !== version)',
        to: 'if (false)',
      },
    ],
  },
  {
    name: 'uncommitted-state-is-shown',
    breaks: 'a GET shows no transition of an actor that a crash could undo',
    edits: [
      {
        module: '#src/runtime/actors/actor-kind.ts',
        from: 'if (actor.uncommitted !== undefined)\n                this.#store.noteReadOfAll();',
        to: '',
      },
    ],
  },
  {
    name: 'attempt-in-another-commit',
    breaks: 'the firing of a job and the record of its attempt are one commit',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/attempts.ts',
        from: 'this.#context.store.write((tx) => this.#put(tx, attempt, NOTHING_MADE));',
        to: 'setTimeout(() => this.#context.store.write((tx) => this.#put(tx, attempt, NOTHING_MADE)), 3);',
      },
    ],
  },
  {
    name: 'begun-in-another-commit',
    breaks: 'the beginning of a run and the job that has it are one commit',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/attempts.ts',
        from: "this.#states.tell(job, { type: 'begun', runId });",
        to: "setTimeout(() => this.#states.tell(job, { type: 'begun', runId }), 3);",
      },
    ],
  },
  {
    name: 'place-is-not-moved',
    breaks: 'the place of a job by time moves with its next instant',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/job-states.ts',
        from: 'if (place !== null)\n            tx.mark(jobPlaces, SYSTEM, slotText(slot), place);',
        to: '',
      },
    ],
  },
  {
    name: 'dead-attempts-are-left',
    breaks: 'a process ends the attempts that a dead one has begun',
    isOfJobs: true,
    edits: [{ module: '#src/start/app/open-jobs.ts', from: 'attempts.recover();', to: '' }],
  },
  {
    name: 'dead-attempts-of-workers-are-left',
    breaks: 'a worker that takes slots over ends the attempts of the dead one',
    isOfJobs: true,
    workers: 3,
    edits: [
      {
        module: '#src/start/app/open-jobs.ts',
        from: 'cluster.onSlotsTaken(look);',
        to: 'cluster.onSlotsTaken(() => clock.look());',
      },
    ],
  },
  {
    name: 'overdue-jobs-of-workers-are-left',
    breaks: 'a worker that takes slots over looks for their jobs that are due',
    isOfJobs: true,
    workers: 3,
    edits: [
      {
        module: '#src/start/app/open-jobs.ts',
        from: 'cluster.onSlotsTaken(look);',
        to: 'cluster.onSlotsTaken(() => attempts.recover());',
      },
    ],
  },
  {
    name: 'lost-run-goes-on',
    breaks: 'the run that a dead process has left is cancelled with its attempt',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/attempts.ts',
        from: 'runs.cancel(workspaceId, runId, () => { });',
        to: ';',
      },
    ],
  },
  {
    name: 'copy-is-kept',
    breaks: 'the copy of a notebook is deleted after the attempt that has run it',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/attempts.ts',
        from: 'await this.#parts.copies.remove({ workspaceId: job.workspaceId, copyId, environmentId, by }, forget);',
        to: 'store.write(forget);',
      },
    ],
  },
  {
    name: 'missed-instant-is-dropped',
    breaks: 'each instant that was missed has an occurrence',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/schedule.ts',
        from: 'const first = Math.max(1, last - count + 1, Math.floor((afterMs - anchorMs) / stepMs) + 1);',
        to: 'const first = Math.max(1, last - Math.min(count, 20) + 1, Math.floor((afterMs - anchorMs) / stepMs) + 1);',
      },
    ],
  },
  {
    name: 'instant-is-met-again',
    breaks: 'the next instant of a job is after the last one that has an occurrence',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/firing.ts',
        from: 'instantAfter(timetable, Math.max(lastMs, nowMs))',
        to: 'instantAfter(timetable, lastMs === firstMs ? Math.max(lastMs, nowMs) : lastMs - 1)',
      },
    ],
  },
  {
    name: 'set-back-clock-doubles',
    breaks: 'a job that is resumed after the clock was set back gives no instant a second occurrence',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/jobs.ts',
        from: 'metMs - nowMs > MAX_AHEAD_MS ? nowMs : Math.max(metMs, nowMs)',
        to: 'nowMs',
      },
    ],
  },
  {
    name: 'change-drops-instants',
    breaks: 'the instants before a change of the schedule, or before a pause, have their occurrences',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/jobs.ts',
        from: 'this.#firing.attend(jobIdOf(workspaceId, jobId), nowMs);',
        to: ';',
      },
    ],
  },
  {
    name: 'occurrences-out-of-order',
    breaks: 'an occurrence sorts after all others of its job, also when the clock was set back',
    isOfJobs: true,
    edits: [
      {
        module: '#src/jobs/job-states.ts',
        from: "newIdAfter(this.#context.store, 'occurrence', [list])",
        to: "newIdAfter(this.#context.store, 'occurrence', [])",
      },
    ],
  },
  {
    name: 'failures-are-not-counted',
    breaks: 'five failures in a row pause a job',
    isOfJobs: true,
    edits: [
      {
        module: '#machines/job.ts',
        from: 'failure === null ? 0 : context.failures + 1;',
        to: 'failure === null ? 0 : context.failures;',
      },
    ],
  },
  {
    name: 'paused-job-fires',
    breaks: 'the schedule of a paused job does not fire',
    isOfJobs: true,
    edits: [
      { module: '#src/jobs/firing.ts', from: 'if (!isPaused && nextMs !== null', to: 'if (nextMs !== null' },
      {
        module: '#machines/job.ts',
        from: 'const next = isPaused ? null : nextMs;',
        to: 'const next = nextMs;',
      },
    ],
  },
  {
    name: 'lost-attempt-is-over',
    breaks: 'a request that a dead process has begun is sent again',
    isOfHooks: true,
    edits: [
      {
        module: '#machines/hook.ts',
        from: "restored: { target: 'settling', actions: 'noteLoss' },",
        to: "restored: { target: 'settling', actions: assign({ delivery: null }) },",
      },
    ],
  },
  {
    name: 'event-in-another-commit',
    breaks: 'the event is in the commit of the end of its run',
    isOfHooks: true,
    edits: [
      {
        module: '#src/hooks/outbox.ts',
        from: 'context.runs.onEnded(({ workspaceId }, { runId, status, error }) => this.note(',
        to: 'context.runs.onEnded(async ({ workspaceId }, { runId, status, error }) => (await context.store.durable(), this).note(',
      },
    ],
  },
  {
    name: 'attempt-before-commit',
    breaks: 'a request waits for the commit of its event and of its attempt',
    isOfHooks: true,
    edits: [
      {
        module: '#src/hooks/deliveries.ts',
        from: "await this.#context.store.durable();\n            faultPoint('hook.sending');",
        to: "faultPoint('hook.sending');",
      },
    ],
  },
  {
    name: 'event-is-removed-early',
    breaks: 'an event is removed in the commit that makes its deliveries',
    isOfHooks: true,
    edits: [
      {
        module: '#src/hooks/outbox.ts',
        from: 'this.#offer(workspaceId, hookId, told);\n            last = hookId;',
        to: 'Promise.resolve(store.durable()).then(() => this.#offer(workspaceId, hookId, told));\n            last = hookId;',
      },
    ],
  },
  {
    name: 'failed-delivery-is-overtaken',
    breaks: 'a delivery that fails is repeated before the next one, four times',
    isOfHooks: true,
    edits: [
      {
        module: '#src/hooks/deliveries.ts',
        from: 'if (attempts < ATTEMPTS_IN_ORDER)',
        to: 'if (attempts < 0)',
      },
    ],
  },
  {
    name: 'id-of-a-firing-is-late',
    breaks: 'a request with the id of an earlier one is the same firing, also after a kill',
    isOfHooks: true,
    edits: [
      {
        module: '#src/hooks/hooks-in.ts',
        from: 'if (key !== null)\n            store.write((tx) => {',
        to: 'if (key !== null)\n            setTimeout(() => store.write((tx) => {',
      },
      {
        module: '#src/hooks/hooks-in.ts',
        from: 'this.#forget(tx, workspaceId, hookInId);\n            });',
        to: 'this.#forget(tx, workspaceId, hookInId);\n            }), 20);',
      },
    ],
  },
  {
    name: 'paused-hook-sends',
    breaks: 'a hook that is paused sends nothing',
    isOfHooks: true,
    edits: [
      {
        module: '#machines/hook.ts',
        from: 'if (isPaused)\n        return null;',
        to: '',
      },
      {
        module: '#machines/hook.ts',
        from: "{ guard: 'isPaused', target: 'paused' },",
        to: '',
      },
    ],
  },
  {
    name: 'node-outlives-its-lease',
    breaks: 'a node that does not hear the server ends its kernels before their sessions open elsewhere',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/host/node-host.ts',
        from: 'if (unheardMs > LEASE_MS)',
        to: 'if (unheardMs > 30000)',
      },
      {
        module: '#src/confined/nodes/host/node-host.ts',
        from: 'else if (unheardMs < RENEWABLE_MS)',
        to: 'else',
      },
    ],
  },
  {
    name: 'lease-counts-from-what-is-heard',
    breaks: 'the lease of a node counts from an answer that the server has got',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/host/node-host.ts',
        from: 'this.#heardAt = this.#answeredAt;',
        to: 'this.#heardAt = performance.now();',
      },
      {
        module: '#src/confined/nodes/joined-node.ts',
        from: 'else if (this.#hasAnswered) {',
        to: 'else {',
      },
    ],
  },
  {
    name: 'restart-forgets-nodes',
    breaks: 'a server that starts gives no orders while kernels of a node that is cut off may live',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/kernel-nodes.ts',
        from: ' || this.#missing.size > 0',
        to: '',
      },
    ],
  },
  {
    name: 'lost-node-says-nothing',
    breaks: 'running work of a lost node fails',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/joined-node.ts',
        from: 'for (const { listener } of children)\n            listener.lost();',
        to: '',
      },
    ],
  },
  {
    name: 'node-swallows-interrupts',
    breaks: 'a node sends its kernel the signal that a frame announces',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/host/kernel-relay.ts',
        from: 'sender.send([NOTHING], this.#options.announced);',
        to: ';',
      },
    ],
  },
  {
    name: 'kernel-token-counts-twice',
    breaks: 'a kernel token counts once',
    nodes: 2,
    edits: [
      {
        module: '#src/confined/nodes/kernel-arrivals.ts',
        from: '!this.#expected.delete(id)',
        to: '!this.#expected.has(id)',
      },
      {
        module: '#src/confined/processes/confined-child.ts',
        from: 'if (this.#isGone || this.#isAdmitted)\n                    socket.destroy();',
        to: 'if (this.#isGone)\n                    socket.destroy();',
      },
    ],
  },
];

/** Returns the edits of a mutant. Throws when there is none of this name. */
export function editsOf(name: string): ModuleEdit[] {
  const mutant = MUTANTS.find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`There is no mutant ${name}.`);
  return mutant.edits.map(({ module, from, to }) => ({ url: import.meta.resolve(module), from, to }));
}
