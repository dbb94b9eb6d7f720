/** Draws a flame graph as SVG: callers above their callees, each as wide as its time including its callees. */

/** A function in one place of the call tree. */
export interface FlameNode {
  readonly name: string;
  /** The place of the function, such as `main.js:120`; empty for functions of Node.js itself. */
  readonly place: string;
  /** The function's own time, without its children. */
  readonly self: number;
  readonly children: readonly FlameNode[];
}

const WIDTH = 1200;
const ROW = 17;
const TOP = 40;
/** Narrower boxes are left out. The width is a share of the whole. */
const MIN_SHARE = 0.001;
const CHAR_WIDTH = 6.6;

const STYLE = `
  svg { background: #ffffff; }
  text { font: 11px ui-monospace, monospace; fill: #1f2328; pointer-events: none; }
  .head { font: 600 14px system-ui, sans-serif; }
  rect { stroke: #ffffff; stroke-width: 1; }
  .code rect { fill: #ffc680; }
  .node rect { fill: #b6d7ff; }
  .system rect { fill: #d8dee4; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    text { fill: #f0f6fc; }
    rect { stroke: #0d1117; }
    .code rect { fill: #8a4600; }
    .node rect { fill: #0c4a8f; }
    .system rect { fill: #3d444d; }
  }`;

interface Box {
  readonly node: FlameNode;
  readonly x: number;
  readonly width: number;
  readonly depth: number;
  readonly total: number;
}

/** Returns the SVG. `amount` shows a value of the tree, such as microseconds, to people. */
export function flameGraph(root: FlameNode, title: string, amount: (value: number) => string): string {
  const boxes: Box[] = [];
  const total = totalOf(root);
  place(root, 0, 0, total, boxes);
  const height = TOP + (Math.max(...boxes.map(({ depth }) => depth)) + 2) * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<text class="head" x="8" y="24">${escaped(title)}, ${escaped(amount(total))} in all</text>`,
    ...boxes.map((box) => draw(box, total, amount)),
    '</svg>\n',
  ].join('\n');
}

function totalOf(node: FlameNode): number {
  return node.children.reduce((sum, child) => sum + totalOf(child), node.self);
}

function place(node: FlameNode, x: number, depth: number, whole: number, boxes: Box[]): void {
  const total = totalOf(node);
  if (total / whole < MIN_SHARE) return;
  boxes.push({ node, x, width: (total / whole) * WIDTH, depth, total });
  let left = x;
  const children = merged(node.children).toSorted((a, b) => totalOf(b) - totalOf(a));
  for (const child of children) {
    place(child, left, depth + 1, whole, boxes);
    left += (totalOf(child) / whole) * WIDTH;
  }
}

/** Joins children that stand for the same function. */
function merged(children: readonly FlameNode[]): readonly FlameNode[] {
  const byName = new Map<string, FlameNode>();
  for (const child of children) {
    const key = `${child.name} ${child.place}`;
    const other = byName.get(key);
    byName.set(
      key,
      other === undefined
        ? child
        : { ...child, self: child.self + other.self, children: [...other.children, ...child.children] },
    );
  }
  return [...byName.values()];
}

function draw({ node, x, width, depth, total }: Box, whole: number, amount: (value: number) => string) {
  const y = TOP + depth * ROW;
  const label = node.place === '' ? node.name : `${node.name} ${node.place}`;
  const fitting = Math.floor((width - 4) / CHAR_WIDTH);
  const text = fitting < 3 ? '' : label.length <= fitting ? label : `${label.slice(0, fitting - 1)}…`;
  const share = ((total / whole) * 100).toFixed(1);
  return (
    `<g class="${kindOf(node)}"><title>${escaped(`${label}: ${amount(total)}, ${share} %`)}</title>` +
    `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}"/>` +
    `${text === '' ? '' : `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escaped(text)}</text>`}</g>`
  );
}

function kindOf({ name, place: where }: FlameNode): 'code' | 'node' | 'system' {
  if (name.startsWith('(') && where === '') return 'system';
  return where === '' || where.startsWith('node:') ? 'node' : 'code';
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
