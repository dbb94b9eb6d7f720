/** Mutants that lose, repeat or show too early what the server has decided, or whose charts allow what they must refuse. */
import type { Mutant } from './mutant.ts';

export const MUTANTS_OF_DATA: readonly Mutant[] = [
  {
    name: 'run-listed-in-a-later-commit',
    rule: 'rule 1',
    wrong: 'A run is listed one turn after its record is written.',
    file: 'src/runtime/runs/run-repository.ts',
    before: '      addToIndex(tx, workspaceId, runId, entry);',
    after:
      '      setImmediate(() => this.#store.write((next) => addToIndex(next, workspaceId, runId, entry)));',
  },
  {
    name: 'idempotency-record-in-a-later-commit',
    rule: 'rule 1',
    wrong: 'The reply under an idempotency key is stored one turn after the changes of its request.',
    file: 'src/http/idempotency/idempotency-store.ts',
    before: '        this.#put(request, digest, reply, claim);',
    after: '        setImmediate(() => this.#put(request, digest, reply, claim));',
  },
  {
    name: 'audit-entry-in-a-later-commit',
    rule: 'rule 1',
    wrong: 'An entry of the audit is written one turn after its change.',
    file: 'src/people/audit/audit-trail.ts',
    before: '    this.#store.decide(() => this.#put(auditRecords, MAX_CHANGES, entries));',
    after: '    setImmediate(() => this.#store.decide(() => this.#put(auditRecords, MAX_CHANGES, entries)));',
  },
  {
    name: 'reply-before-the-flush',
    rule: 'rule 2',
    wrong: 'The reply to a change does not wait for its commit.',
    file: 'src/http/edge/decision.ts',
    before: 'committed = exchange.prepared.isMutation ? exchange.context.durable() : observed;',
    after: 'committed = observed;',
  },
  {
    name: 'read-before-the-flush',
    rule: 'rule 2',
    wrong: 'A GET shows data that are not on disk yet.',
    file: 'src/http/edge/decision.ts',
    before: 'else ({ result: reply, uncommitted: observed } = context.store.observe(answer, request));',
    after: 'else ({ result: reply } = context.store.observe(answer, request));',
  },
  {
    name: 'event-overtakes-a-held-one',
    rule: 'event 2',
    wrong: 'An event that waits for no commit leaves before an earlier one that waits.',
    file: 'src/runtime/events/commit-gate.ts',
    before: '    if (after === undefined && this.isEmpty) this.#targets.release(item);',
    after: '    if (after === undefined) this.#targets.release(item);',
  },
  {
    name: 'event-of-a-failed-commit-is-sent',
    rule: 'rule 2',
    wrong: 'An event is sent although its commit has failed.',
    file: 'src/runtime/events/commit-gate.ts',
    before:
      "      if (head.wait.state === 'ready') this.#targets.release(head.item);\n      else this.#targets.drop(head.item);",
    after: '      this.#targets.release(head.item);',
  },
  {
    name: 'cancels-of-another-worker-before-the-flush',
    rule: 'rule 2',
    wrong: 'A worker confirms the cancels that another worker has asked for before they are on disk.',
    file: 'src/http/handlers/run-cancellation.ts',
    before: '      await store.durable();\n      return results;',
    after: '      return results;',
  },
  {
    name: 'actor-away-from-its-home',
    rule: 'rule 3',
    wrong: 'An actor of a notebook comes into memory in a worker that is not its home.',
    file: 'src/runtime/actors/actor-kind.ts',
    before: 'this.#isPassing || this.#live.owners.owns(address.workspaceId, homeId);',
    after: 'this.#isPassing || homeId !== undefined || this.#live.owners.owns(address.workspaceId, homeId);',
  },
  {
    name: 'killed-kernel-gets-work',
    rule: 'rule 4',
    wrong: 'The last message of a kernel that is being killed makes its session ready for work.',
    file: 'machines/notebook-session.ts',
    before:
      "              entry: { type: 'tellKernel', params: { type: 'kill' } },\n              on: { 'kernel.done': {} },",
    after: "              entry: { type: 'tellKernel', params: { type: 'kill' } },",
    marked:
      "              entry: { type: 'tellKernel', params: () => (REACHED, { type: 'kill' as const }) },\n              on: { 'kernel.done': {} },",
  },
  {
    name: 'conversation-deleted-during-a-prompt',
    rule: 'rule 4',
    wrong: 'A conversation can be deleted while its prompt runs.',
    file: 'machines/agent-session.ts',
    before:
      "          entry: { type: 'announce', params: { status: 'busy' } },\n          meta: { refuse: { prompt: 'session_busy', delete: 'session_busy' } },\n          on: {\n            delete: {},",
    after:
      "          entry: { type: 'announce', params: { status: 'busy' } },\n          meta: { refuse: { prompt: 'session_busy', delete: 'session_busy' } },\n          on: {",
    marked:
      "          entry: { type: 'announce', params: () => (REACHED, { status: 'busy' as const }) },\n          meta: { refuse: { prompt: 'session_busy', delete: 'session_busy' } },\n          on: {\n            delete: {},",
  },
  {
    name: 'running-after-a-restart',
    rule: 'rule 10',
    wrong:
      'A run that a dead server has left behind still counts as running, so that a cancel never ends it.',
    file: 'machines/run.ts',
    before: "        restored: '.stale',",
    after: "        restored: '.active',",
    marked: "        restored: { target: '.stale', actions: () => REACHED },",
  },
  {
    name: 'large-output-in-an-event',
    rule: 'event 1',
    wrong: 'An event carries an output of more than 64 KiB instead of naming it.',
    file: 'src/notebook/open/streamed-outputs.ts',
    before: '  const value = isLarge(data) ? { assetId: referenceTo(cellId, output) } : { data };',
    after:
      '  const value = isLarge(data) && data === null ? { assetId: referenceTo(cellId, output) } : { data };',
  },
  {
    name: 'ended-run-is-not-listed-by-status',
    rule: 'rule 1',
    wrong: 'A run that has ended is missing in the list of its session by status.',
    file: 'src/runtime/runs/run-lists.ts',
    before: '  tx.mark(endedRuns, workspaceId, entry.kind, entry.sessionId, status, runId);\n',
    after: '',
  },
  {
    name: 'page-skips-one',
    rule: 'rule 7',
    wrong: 'The cursor of a full page names the first item of the next page, which is then skipped.',
    file: 'storage/lists/page-builder.ts',
    before: '        this.#isFull = true;\n        return true;',
    after: '        this.#isFull = true;\n        this.#last = id;\n        return true;',
    marked: '        REACHED;\n        this.#isFull = true;\n        return true;',
  },
  {
    name: 'missed-event-is-sent-twice',
    rule: 'event 6',
    wrong:
      'A client that returns with the id of an event gets that event again if it was the first of several in one write.',
    file: 'src/runtime/events/catch-up.ts',
    before: 'index === first && firstSeq <= seq',
    after: 'index === first && firstSeq < seq',
    marked: '(REACHED, index === first) && firstSeq <= seq',
  },
  {
    name: 'retention-deletes-a-running-run',
    rule: 'rule 10',
    wrong: 'The retention of runs deletes a run that is in progress.',
    file: 'src/runtime/runs/run-deletion.ts',
    before: '        if (this.#runs.reader.isInProgress(workspaceId, runId)) continue;\n',
    after: '',
  },
  {
    name: 'version-deleted-too-early',
    rule: 'rule 10',
    wrong:
      'The retention of versions goes by the time at which a version began instead of the time of its replacement.',
    file: 'src/operate/retention/version-retention.ts',
    before:
      '        const kept = entries.filter(({ replacedAt }) => replacedAt >= before);\n        if (kept.length === entries.length) continue;\n        for (const { updatedAt, replacedAt } of entries)\n          if (replacedAt < before)',
    after:
      '        const kept = entries.filter(({ updatedAt }) => updatedAt >= before);\n        if (kept.length === entries.length) continue;\n        for (const { updatedAt } of entries)\n          if (updatedAt < before)',
  },
  {
    name: 'cancelled-run-forgets-its-text',
    rule: 'request 8',
    wrong: 'A cancelled run of a server that was killed loses the text that it had printed.',
    file: 'src/runtime/runs/run-repository.ts',
    before: "      status: 'cancelled',\n      output: this.printed.outputOf(workspaceId, runId),",
    after: "      status: 'cancelled',",
    marked: "      status: 'cancelled',\n      output: (REACHED, this.printed.outputOf(workspaceId, runId)),",
  },
  {
    name: 'backup-keeps-deleted-files',
    rule: 'rule 10',
    wrong: 'An increment of a backup does not note deleted files, so that a restore brings them back.',
    file: 'src/operate/maintenance/increment.ts',
    before: "  const removed = (['files', 'links', 'folders'] as const).flatMap((kind) =>",
    after: "  const removed = (['links', 'folders'] as const).flatMap((kind) =>",
  },
];
