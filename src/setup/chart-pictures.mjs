// The pictures of the statecharts: the positions of each state and each transition. They are made
// at build time, because the layout library is larger than the whole console.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { digest, readIfPresent } from './stamps.mjs';

/** The compiled charts, by the name of the export. */
const CHARTS = {
  environment: 'environmentMachine',
  'notebook-session': 'notebookSessionMachine',
  'agent-session': 'agentSessionMachine',
  run: 'runMachine',
  job: 'jobMachine',
  hook: 'hookMachine',
};

const LAYOUT = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.json.shapeCoords': 'ROOT',
  'elk.json.edgeCoords': 'ROOT',
  'elk.edgeLabels.inline': 'true',
  'elk.layered.spacing.nodeNodeBetweenLayers': '22',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.spacing.nodeNode': '20',
  'elk.spacing.edgeNode': '12',
  'elk.spacing.edgeEdge': '10',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
};
const COMPOUND_PADDING = '[top=34,left=14,bottom=14,right=14]';
const CHARACTER_WIDTH = 6.7;
const LABEL_CHARACTER_WIDTH = 5.9;

/**
 * Resolves with the picture of each chart, by the id of its machine; with none when the charts are not compiled.
 * Unchanged charts keep the pictures of the last build.
 */
export async function drawCharts(root) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  if (!existsSync(join(root, 'dist', 'src', 'runtime', 'actors', 'chart.js'))) return {};
  const { chartOf } = await load('src/runtime/actors/chart.js');
  const charts = [];
  for (const [file, name] of Object.entries(CHARTS))
    charts.push(chartOf((await load(`machines/${file}.js`))[name]));
  const kept = join(root, 'dist', 'chart-pictures.json');
  const wanted = digest(JSON.stringify(charts), readFileSync(fileURLToPath(import.meta.url), 'utf8'));
  const last = JSON.parse(readIfPresent(kept) ?? '{}');
  if (last.of === wanted) return last.pictures;
  const { default: Elk } = await import('elkjs/lib/elk.bundled.js');
  const elk = new Elk();
  const pictures = {};
  for (const chart of charts) pictures[chart.id] = await draw(elk, chart);
  writeFileSync(kept, JSON.stringify({ of: wanted, pictures }));
  return pictures;
}

async function draw(elk, chart) {
  const graph = {
    id: 'picture',
    layoutOptions: LAYOUT,
    children: chart.states.map(nodeOf),
    edges: edgesOf(chart),
  };
  const { width, height, children, edges } = await elk.layout(graph);
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    states: children.flatMap(placed),
    transitions: edges.map(routed),
  };
}

function nodeOf(state) {
  const width = Math.max(64, 26 + state.name.length * CHARACTER_WIDTH);
  if (state.states.length === 0) return { id: state.id, width, height: 32 };
  return {
    id: state.id,
    layoutOptions: {
      'elk.padding': COMPOUND_PADDING,
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${width},0)`,
    },
    children: state.states.map(nodeOf),
  };
}

/** Returns one edge for each pair of states, with the events that lead from one to the other. */
function edgesOf(chart) {
  const edges = new Map();
  const visit = (state) => {
    for (const { event, targets } of state === chart ? [] : state.transitions) {
      for (const target of targets) {
        const key = `${state.id} ${target}`;
        const edge = edges.get(key) ?? { id: key, from: state.id, to: target, events: new Set() };
        edge.events.add(event);
        edges.set(key, edge);
      }
    }
    state.states.forEach(visit);
  };
  visit(chart);
  return [...edges.values()].map(({ id, from, to, events }) => {
    const lines = [...events].map(shown);
    return {
      id,
      sources: [from],
      targets: [to],
      events: [...events],
      lines,
      labels: [
        {
          text: lines.join('\n'),
          width: Math.max(...lines.map((line) => line.length)) * LABEL_CHARACTER_WIDTH + 6,
          height: lines.length * 13 + 2,
        },
      ],
    };
  });
}

/** Returns the text for an event. XState gives its own events names that only it understands. */
function shown(event) {
  if (event === '') return 'at once';
  const [, actor] = /^xstate\.error\.actor\.(?:.*\.)?([^.]+)$/.exec(event) ?? [];
  return actor === undefined ? event : `${actor} breaks`;
}

function placed({ id, x, y, width, height, children = [] }) {
  return [
    { id, x: round(x), y: round(y), width: round(width), height: round(height) },
    ...children.flatMap(placed),
  ];
}

function routed({ sources, targets, events, lines, sections = [], labels = [] }) {
  const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
    startPoint,
    ...bendPoints,
    endPoint,
  ]);
  const [label] = labels;
  return {
    from: sources[0],
    to: targets[0],
    events,
    ...(lines.join() !== events.join() && { lines }),
    points: points.map(({ x, y }) => [round(x), round(y)]),
    label: label && {
      x: round(label.x),
      y: round(label.y),
      width: round(label.width),
      height: round(label.height),
    },
  };
}

const { round } = Math;
