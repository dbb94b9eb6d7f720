/** A drawing of an actor's statechart. The present state is lit and the last transition is marked. */
import { useSignal } from '@preact/signals';
import type { ActorDetail, Chart } from '#src/contract/wire/actor.ts';
import { type PlacedState, pictureOf, type RoutedTransition } from '../state/charts.ts';
import { useData } from '../state/data.ts';
import { Loading } from './empty.tsx';
import { Problem } from './problem.tsx';

export function ChartPicture({ actor }: { readonly actor: ActorDetail }) {
  const { machine, path, trail } = actor;
  const picture = useData(() => pictureOf(machine), [machine]);
  const chart = useData((client, signal) => client.chart(machine, { signal }), [machine]);
  const chosen = useSignal<string | undefined>(undefined);
  if (picture.error !== undefined) return <Problem error={picture.error} retry={picture.reload} />;
  if (picture.value === undefined) return <Loading />;
  const { width, height, states, transitions } = picture.value;
  const present = `${machine}.${path}`;
  const isActive = (id: string) => present === id || present.startsWith(`${id}.`);
  const lastMove = trail.findLast(({ refused, from, to }) => refused === undefined && from !== to);
  const lastRefusal = trail.at(-1)?.refused;
  const wasTaken = ({ from, to, events }: RoutedTransition) =>
    lastMove !== undefined &&
    events.some((event) => event === lastMove.type) &&
    liesIn(`${machine}.${lastMove.from}`, from) &&
    liesIn(`${machine}.${lastMove.to}`, to);
  const canBeTaken = ({ from }: RoutedTransition) => isActive(from);
  const inner = states.filter((state) => isActive(state.id)).at(-1)?.id;
  return (
    <div class="chart">
      <div class="picture">
        <svg
          viewBox={`-2 -2 ${width + 4} ${height + 4}`}
          style={{ width: `${width}px` }}
          role="img"
          aria-label={`The statechart ${machine}: the present state is ${path}`}
        >
          <defs>
            {['arrow', 'arrow-open', 'arrow-last'].map((id) => (
              <marker
                key={id}
                id={id}
                viewBox="0 0 8 8"
                refX="7"
                refY="4"
                markerWidth="7"
                markerHeight="7"
                orient="auto"
              >
                <path d="M0 0.5 8 4 0 7.5z" />
              </marker>
            ))}
          </defs>
          {states.map((state) => (
            <State
              key={state.id}
              state={state}
              isActive={isActive(state.id)}
              isInner={state.id === inner}
              isRefusing={state.id === inner && lastRefusal !== undefined}
              onChoose={() => {
                chosen.value = state.id;
              }}
            />
          ))}
          {transitions.map((transition) => (
            <Transition
              key={`${transition.from} ${transition.to}`}
              transition={transition}
              kind={wasTaken(transition) ? 'last' : canBeTaken(transition) ? 'open' : ''}
            />
          ))}
        </svg>
      </div>
      <p class="legend">
        <span class="present">present state</span>
        <span class="open">can be left by</span>
        <span class="last">came last by</span>
      </p>
      {chart.value !== undefined && <StateNote chart={chart.value} id={chosen.value ?? inner} />}
    </div>
  );
}

function liesIn(id: string, outer: string): boolean {
  return id === outer || id.startsWith(`${outer}.`);
}

interface StateProps {
  readonly state: PlacedState;
  readonly isActive: boolean;
  readonly isInner: boolean;
  readonly isRefusing: boolean;
  readonly onChoose: () => void;
}

function State({ state: { id, x, y, width, height }, isActive, isInner, isRefusing, onChoose }: StateProps) {
  const name = id.slice(id.lastIndexOf('.') + 1);
  const isOuter = height > 33;
  return (
    // The note below says the same of the present state, so that nobody needs to point.
    // biome-ignore lint/a11y/noStaticElementInteractions: pointing at a state is a shortcut
    <g
      class={`state${isActive ? ' active' : ''}${isInner ? ' inner' : ''}${isRefusing ? ' refusing' : ''}`}
      onClick={onChoose}
    >
      <rect x={x} y={y} width={width} height={height} rx="7" />
      <text
        x={isOuter ? x + 10 : x + width / 2}
        y={isOuter ? y + 19 : y + 20}
        text-anchor={isOuter ? 'start' : 'middle'}
      >
        {name}
      </text>
    </g>
  );
}

function Transition({
  transition: { points, events, lines = events, label },
  kind,
}: {
  readonly transition: RoutedTransition;
  readonly kind: string;
}) {
  return (
    <g class={`transition ${kind}`}>
      <polyline points={points.join(' ')} marker-end={`url(#arrow${kind === '' ? '' : `-${kind}`})`} />
      {label !== undefined && (
        <>
          <rect x={label.x} y={label.y} width={label.width} height={label.height} rx="3" />
          {lines.map((line, i) => (
            <text key={line} x={label.x + label.width / 2} y={label.y + 11 + i * 13} text-anchor="middle">
              {line}
            </text>
          ))}
        </>
      )}
    </g>
  );
}

/** The note below the chart with the details of one state. */
function StateNote({ chart, id }: { readonly chart: Chart; readonly id: string | undefined }) {
  const state = id === undefined ? undefined : find(asState(chart.root), id);
  if (state === undefined) return null;
  const refusals = Object.entries(state.refuses);
  return (
    <div class="state-note">
      <strong>{id?.slice(chart.machine.length + 1)}</strong>
      <ul>
        {state.runs.length > 0 && <li>works while it is active: {state.runs.join(', ')}</li>}
        {state.transitions.map(({ event, targets, guard }) => (
          <li key={`${event} ${targets.join()} ${guard}`}>
            <code>{event === '' ? 'at once' : event}</code>{' '}
            {targets.length === 0
              ? 'is taken'
              : `→ ${targets.map((target) => target.slice(chart.machine.length + 1)).join(', ')}`}
            {guard !== null && <small> if {guard}</small>}
          </li>
        ))}
        {refusals.map(([event, code]) => (
          <li key={event} class="refused">
            <code>{event}</code> is refused with {code}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface ChartState {
  readonly id: string;
  readonly refuses: Readonly<Record<string, string>>;
  readonly runs: readonly string[];
  readonly transitions: readonly {
    readonly event: string;
    readonly targets: readonly string[];
    readonly guard: string | null;
  }[];
  readonly states: readonly ChartState[];
}

/**
 * The schema leaves the type of the tree open, because the tree is recursive. The server makes it
 * with these members.
 */
function asState(root: unknown): ChartState {
  return root as ChartState;
}

function find(state: ChartState, id: string): ChartState | undefined {
  if (state.id === id) return state;
  for (const inner of state.states) {
    const found = find(inner, id);
    if (found !== undefined) return found;
  }
  return undefined;
}
