import { useRef } from 'preact/hooks';
import { ApiError } from '#src/client/api-error.ts';
import type { ServerState } from '#src/wire/server.ts';
import { Sparkline } from '../parts/sparkline.tsx';
import { ago, bytes, count, duration } from '../parts/words.ts';
import { useData } from '../state/data.ts';
import { now } from '../state/visible.ts';

const EVERY_MS = 3000;
/** An hour of samples. The server keeps none: it measures only while somebody looks. */
const MAX_SAMPLES = 1200;

interface Sample {
  readonly memory: number;
  readonly cpu: number;
  readonly delay: number;
  readonly requests: number;
}

/** The state of the whole server, for tokens that may see it. */
export function ServerTiles() {
  const samples = useRef<readonly Sample[]>([]);
  const before = useRef<ServerState | undefined>(undefined);
  const server = useData((client, signal) => client.server({ signal }), [], { everyMs: EVERY_MS });
  const { value } = server;
  if (value !== undefined && value !== before.current) {
    samples.current = [...samples.current, sampleOf(value, before.current)].slice(-MAX_SAMPLES);
    before.current = value;
  }
  if (value === undefined)
    return server.error instanceof ApiError && server.error.status === 403 ? (
      <p class="faint">
        The server as a whole is shown to tokens with the scope <code>server:observe</code>.
      </p>
    ) : null;
  const { process, store, kernelHost, versions, streams, startedAt, kernels } = value;
  const last = samples.current.at(-1);
  return (
    <>
      <h2 class="section">The server</h2>
      <div class="tiles">
        <Tile
          title="Memory"
          figure={bytes(process.memoryBytes)}
          points={samples.current.map(({ memory }) => memory)}
        >
          {bytes(process.heapBytes)} of JavaScript
        </Tile>
        <Tile
          title="Processor"
          figure={`${Math.round((last?.cpu ?? 0) * 100)} %`}
          points={samples.current.map(({ cpu }) => cpu)}
        >
          of one, without kernels
        </Tile>
        <Tile
          title="Event loop"
          figure={process.eventLoop.delayP99Ms === null ? '…' : duration(process.eventLoop.delayP99Ms)}
          points={samples.current.map(({ delay }) => delay)}
        >
          99th percentile of its delay
        </Tile>
        <Tile title="Streams" figure={count(streams)} points={[]}>
          {count(kernels.length)} kernels, kernel host {kernelHost.state}
        </Tile>
        <Tile title="Store" figure={bytes(store.usedBytes)} points={[]}>
          {store.isFull
            ? 'The disk is full: nothing new is stored'
            : `${bytes(store.reusableBytes)} of it free`}
        </Tile>
        <Tile title="Version" figure={versions.troupe} points={[]}>
          marimo {versions.marimo ?? '…'}, Node {versions.node}, up for{' '}
          {ago(now.value - Date.parse(startedAt))}
        </Tile>
      </div>
    </>
  );
}

function sampleOf(state: ServerState, before: ServerState | undefined): Sample {
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
      {points.length > 1 && <Sparkline points={points} label={`${title} since you look`} />}
      <p class="faint">{children}</p>
    </div>
  );
}
