import { useRef } from 'preact/hooks';
import type { KernelList, KernelUsage } from '#src/contract/wire/server.ts';
import { Action } from '../parts/action.tsx';
import { Bar } from '../parts/bar.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { ChoiceFilter } from '../parts/filter.tsx';
import { Problem } from '../parts/problem.tsx';
import { Rows } from '../parts/rows.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { bytes, counted } from '../parts/words.ts';
import { useClient, useData } from '../state/data.ts';
import { here, place } from '../state/route.ts';
import { useTitles } from '../state/titles.ts';

const EVERY_MS = 2000;

export interface MeasuredKernel extends KernelUsage {
  /**
   * How many processors the kernel used between the last two answers; undefined after the first
   * answer.
   */
  readonly cpu: number | undefined;
}

/** Returns kernels with the processor time that each used lately, by memory, the largest first. */
export function useKernels(choice: { readonly sessionId?: string; readonly limit?: number } = {}) {
  const before = useRef<KernelList | undefined>(undefined);
  const measured = useRef<readonly MeasuredKernel[]>([]);
  const kernels = useData((client, signal) => client.kernels({ ...choice, signal }), [choice], {
    everyMs: EVERY_MS,
  });
  const list = kernels.value;
  if (list !== undefined && list.sampledAt !== before.current?.sampledAt) {
    measured.current = list.items.map((kernel) => ({ ...kernel, cpu: cpuOf(kernel, list, before.current) }));
    before.current = list;
  }
  return { ...kernels, items: list && measured.current };
}

function cpuOf(kernel: KernelUsage, now: KernelList, before: KernelList | undefined): number | undefined {
  const last = before?.items.find(
    ({ pid, sessionId, node }) =>
      pid === kernel.pid && sessionId === kernel.sessionId && node === kernel.node,
  );
  const seconds =
    before === undefined ? 0 : (Date.parse(now.sampledAt) - Date.parse(before.sampledAt)) / 1000;
  return last === undefined || seconds <= 0
    ? undefined
    : Math.max(0, kernel.cpuSeconds - last.cpuSeconds) / seconds;
}

/** The kernels of the workspace and their use of resources, the largest first. */
export function KernelsView() {
  const client = useClient();
  const kernels = useKernels();
  const titleOf = useTitles((kernels.items ?? []).map(({ sessionId }) => sessionId));
  const { order } = place.value.filters;
  const items = (kernels.items ?? []).toSorted((a, b) => {
    if (order === 'cpu') return (b.cpu ?? 0) - (a.cpu ?? 0);
    const byNode = order === 'node' ? (a.node ?? '').localeCompare(b.node ?? '') : 0;
    return byNode || b.memoryBytes - a.memoryBytes;
  });
  const hasNodes = items.some(({ node }) => node !== null);
  const limit = kernels.value?.memoryLimitBytes ?? null;
  const largest = items.reduce((most, { memoryBytes }) => Math.max(most, memoryBytes), 1);
  const total = items.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  return (
    <section class="view fills">
      <ViewHead
        title="Kernels"
        aside={
          items.length > 0 && (
            <span class="faint">
              {counted(items.length, 'kernel')}, {bytes(total)}
            </span>
          )
        }
      >
        <p class="lead">
          Each open notebook has a process that runs its code.
          {limit !== null && ` Each may use ${bytes(limit)} of memory.`}
        </p>
        <div class="filters">
          <ChoiceFilter
            name="order"
            label="Order"
            all="Most memory first"
            choices={[
              { value: 'cpu', title: 'Most CPU first' },
              ...(hasNodes ? [{ value: 'node', title: 'By node' }] : []),
            ]}
          />
        </div>
      </ViewHead>
      {kernels.error !== undefined && <Problem error={kernels.error} retry={kernels.reload} />}
      {kernels.items === undefined && kernels.error === undefined && <Loading />}
      {kernels.items?.length === 0 && (
        <Empty title="No kernel runs">
          A kernel starts with a session, and ends when it sleeps or closes:{' '}
          <code>troupe sessions open nb_…</code>
        </Empty>
      )}
      {items.length > 0 && (
        <Rows<MeasuredKernel>
          label="Kernels"
          items={items}
          columns={[
            {
              title: 'Memory',
              class: 'memory',
              cell: ({ memoryBytes }) => (
                <>
                  <span class="amount">{bytes(memoryBytes)}</span>
                  <Bar
                    value={memoryBytes}
                    limit={limit ?? largest}
                    label={limit === null ? 'compared with the largest' : `of ${bytes(limit)}`}
                  />
                </>
              ),
            },
            {
              title: 'CPU',
              class: 'number',
              cell: ({ cpu }) => (cpu === undefined ? '…' : `${Math.round(cpu * 100)} %`),
            },
            {
              title: 'Session',
              class: 'grow',
              cell: ({ sessionId }) => (
                <a href={here(['sessions', sessionId])} title={sessionId}>
                  {titleOf(sessionId)}
                </a>
              ),
            },
            ...(hasNodes
              ? [{ title: 'Node', class: 'wide', cell: ({ node }: MeasuredKernel) => node ?? 'the server' }]
              : []),
            { title: 'Process', class: 'wide number', cell: ({ pid }) => pid },
            {
              title: 'Change',
              class: 'wide control',
              cell: ({ sessionId }) => (
                <Action
                  key={sessionId}
                  label="Hibernate"
                  confirm="Its variables are lost."
                  run={() => client.notebookSessions.hibernate(sessionId)}
                  onDone={kernels.reload}
                />
              ),
            },
          ]}
        />
      )}
    </section>
  );
}
