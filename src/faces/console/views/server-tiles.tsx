import { useSignal } from '@preact/signals';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { ServerFacts, ServerLoad } from '#src/contract/wire/server.ts';
import { ago, bytes, count, counted, duration } from '../parts/words.ts';
import { useClient } from '../state/data.ts';
import { now } from '../state/visible.ts';
import { useWhileSeen } from '../state/while-seen.ts';

/** An hour of samples. The server keeps no samples, so this view collects its own. */
const MAX_SAMPLES = 1800;

interface Sample {
  readonly memory: number;
  readonly cpu: number;
  readonly delay: number;
  readonly requests: number;
}

/** The state of the whole server, for users whose token has the scope to read that. */
export function ServerTiles() {
  const { facts, load, samples, isRefused } = useServerLoad();
  if (isRefused)
    return (
      <p class="faint">
        The state of the whole server needs a token with the scope <code>server:observe</code>.
      </p>
    );
  if (facts === undefined || load === undefined) return null;
  const { versions, startedAt } = facts;
  const { process, store, kernelHost, streams, kernels } = load;
  const last = samples.at(-1);
  return (
    <>
      <h2 class="section">The server</h2>
      <div class="tiles">
        <Tile title="Memory" figure={bytes(process.memoryBytes)} points={samples.map(({ memory }) => memory)}>
          {bytes(process.heapBytes)} of JavaScript
        </Tile>
        <Tile
          title="Processor"
          figure={`${Math.round((last?.cpu ?? 0) * 100)} %`}
          points={samples.map(({ cpu }) => cpu)}
        >
          of one, without kernels
        </Tile>
        <Tile
          title="Event loop"
          figure={process.eventLoop.delayP99Ms === null ? '…' : duration(process.eventLoop.delayP99Ms)}
          points={samples.map(({ delay }) => delay)}
        >
          99th percentile of its delay
        </Tile>
        <Tile title="Streams" figure={count(streams)} points={[]}>
          {kernels.count === 0
            ? 'no kernel'
            : `${counted(kernels.count, 'kernel')} with ${bytes(kernels.memoryBytes)}`}
          , kernel host {kernelHost.state}
        </Tile>
        <Tile title="Store" figure={bytes(store.usedBytes)} points={[]}>
          {store.isFull
            ? 'The disk is full: nothing new is stored'
            : `${bytes(store.reusableBytes)} of it free${store.commitMs === null ? '' : `, a commit takes ${duration(store.commitMs)}`}`}
        </Tile>
        <Tile title="Version" figure={versions.troupe} points={[]}>
          marimo {versions.marimo ?? '…'}, Node {versions.node}, up for{' '}
          {ago(now.value - Date.parse(startedAt))}
        </Tile>
      </div>
    </>
  );
}

interface Watched {
  readonly facts?: ServerFacts;
  readonly load?: ServerLoad;
  readonly samples: readonly Sample[];
  readonly isRefused?: true;
}

/** Returns the load of the server, sampled since the component appeared. */
function useServerLoad(): Watched {
  const client = useClient();
  const watched = useSignal<Watched>({ samples: [] });
  useWhileSeen(async (signal) => {
    let before: ServerLoad | undefined;
    try {
      for await (const event of client.followServer({ signal })) {
        if (event.type === 'server.snapshot') watched.value = { ...watched.peek(), facts: event.data };
        else if (event.type === 'server.load') {
          const samples = [...watched.peek().samples, sampleOf(event.data, before)].slice(-MAX_SAMPLES);
          before = event.data;
          watched.value = { ...watched.peek(), load: event.data, samples };
        }
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) watched.value = { samples: [], isRefused: true };
      throw error;
    }
  }, []);
  return watched.value;
}

function sampleOf(state: ServerLoad, before: ServerLoad | undefined): Sample {
  const seconds =
    before === undefined ? 0 : (Date.parse(state.sampledAt) - Date.parse(before.sampledAt)) / 1000;
  const used = before === undefined ? 0 : state.process.cpuSeconds - before.process.cpuSeconds;
  return {
    memory: state.process.memoryBytes,
    cpu: seconds > 0 ? used / seconds : 0,
    delay: state.process.eventLoop.delayP99Ms ?? 0,
    requests: state.requests,
  };
}

interface TileProps {
  readonly title: string;
  readonly figure: string;
  readonly points: readonly number[];
  readonly children: preact.ComponentChildren;
}

function Tile({ title, figure, points, children }: TileProps) {
  return (
    <div class="tile">
      <h2>{title}</h2>
      <p class="figure">{figure}</p>
      {points.length > 1 && <Sparkline points={points} label={`${title} since you opened this view`} />}
      <p class="faint">{children}</p>
    </div>
  );
}

const WIDTH = 200;
const HEIGHT = 32;

/** A line of values over time, from zero to the largest. */
function Sparkline({ points, label }: { readonly points: readonly number[]; readonly label: string }) {
  const most = points.reduce((largest, point) => Math.max(largest, point), 0) || 1;
  const step = WIDTH / Math.max(1, points.length - 1);
  const line = points.map(
    (point, i) => `${(i * step).toFixed(1)},${(HEIGHT - 1 - (point / most) * (HEIGHT - 3)).toFixed(1)}`,
  );
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon points={`0,${HEIGHT} ${line.join(' ')} ${WIDTH},${HEIGHT}`} />
      <polyline points={line.join(' ')} />
    </svg>
  );
}
