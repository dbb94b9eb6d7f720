/** HTML that notebooks show, as text: paragraphs, lists, tables, code, and marimo's own elements as far as they have text. */
import { DomUtils, parseDocument } from 'htmlparser2';
import { type Style, type StyleName, sequencesOf } from '../style.ts';
import { type Grid, type GridLimits, gridText } from './grid.ts';
import { type MarimoElement, readMarimoElement } from './marimo-element.ts';
import { TextFlow } from './text-flow.ts';

type Node = ReturnType<typeof parseDocument>['children'][number];
type Tag = Extract<Node, { attribs: object }>;

export interface HtmlOptions {
  readonly style: Style;
  readonly color: boolean;
  readonly limits: GridLimits;
  /** Takes the content of an embedded image, sound or download. Returns the text to write in its place. */
  readonly image: (dataUrl: string, mimetype?: string) => string;
  /** Takes a page that is embedded in this one. Returns the text to write in its place. */
  readonly page: (html: string) => string;
}

const LEFT_OUT = new Set(['script', 'style', 'head', 'template', 'noscript', 'colgroup']);
const BLOCKS = new Set(
  'address article aside blockquote dd details div dl dt fieldset figure footer form header main nav p section summary ul'.split(
    ' ',
  ),
);
const SPACED = new Set(['p', 'ul', 'blockquote']);
// Maps, since names come from the notebook: an object has members of its own, such as `constructor`.
const INLINE_STYLES: ReadonlyMap<string, StyleName> = new Map([
  ['b', 'bold'],
  ['strong', 'bold'],
  ['code', 'cyan'],
  ['kbd', 'cyan'],
]);
/** Classes that Pygments gives the parts of a traceback. */
const PYGMENTS: ReadonlyMap<string, StyleName> = new Map([
  ['gr', 'red'],
  ['gt', 'bold'],
  ['nb', 'cyan'],
  ['pm', 'red'],
]);
/** Elements in each other beyond which nothing is read; people nest a few dozen, and each takes some of the stack. */
const MAX_DEPTH = 200;

export function htmlText(html: string, options: HtmlOptions): string {
  const flow = new TextFlow();
  for (const node of parseDocument(html).children) walk(node, flow, { ...options, depth: 0 }, false);
  return String(flow);
}

interface WalkOptions extends HtmlOptions {
  /** How many elements the node is in. */
  readonly depth: number;
}

function walk(node: Node, flow: TextFlow, outer: WalkOptions, isPre: boolean): void {
  if (DomUtils.isText(node)) {
    if (isPre) flow.keep(node.data);
    else flow.flow(node.data);
    return;
  }
  if (!DomUtils.isTag(node) || LEFT_OUT.has(node.name) || outer.depth >= MAX_DEPTH) return;
  const options = { ...outer, depth: outer.depth + 1 };
  const inside = (pre = isPre) => {
    for (const child of node.children) walk(child, flow, options, pre);
  };
  const { name, attribs } = node;
  if (name === 'br') flow.lineBreak();
  else if (name === 'hr') blockOf(flow, () => flow.keep('────'));
  else if (name === 'img') flow.keep(imageText(attribs, options));
  else if (name === 'svg') flow.keep('[drawing]');
  else if (name === 'audio' || name === 'video') flow.keep(mediaText(node, options));
  else if (name === 'iframe') flow.keep(frameText(attribs, options));
  else if (name === 'table')
    blockOf(flow, () => flow.keep(gridText(readTable(node, options), options.limits, options.style)));
  else if (name === 'pre') blockOf(flow, () => inside(true));
  else if (name === 'ol') blockOf(flow, () => numberedList(node, flow, options), 1);
  else if (name === 'li') blockOf(flow, () => flow.keep(listItem('- ', node, options)));
  else if (/^h[1-6]$/.test(name)) blockOf(flow, () => styled('bold', flow, options, inside), 1);
  else if (name === 'marimo-tex') flow.keep(textOf(node.children, options).replace(/\|\|[()[\]]/g, '$'));
  else if (name.startsWith('marimo-'))
    showMarimo(node, readMarimoElement(name, attribs), flow, options, inside);
  else if (BLOCKS.has(name)) blockOf(flow, inside, SPACED.has(name) ? 1 : 0);
  else if (attribs.class?.split(' ').includes('paragraph')) blockOf(flow, inside, 1);
  else
    styled(
      INLINE_STYLES.get(name) ?? (isPre ? PYGMENTS.get(attribs.class ?? '') : undefined),
      flow,
      options,
      inside,
    );
}

function blockOf(flow: TextFlow, content: () => void, emptyLines = 0): void {
  flow.block(emptyLines);
  content();
  flow.block(emptyLines);
}

function styled(
  name: StyleName | undefined,
  flow: TextFlow,
  { color }: HtmlOptions,
  content: () => void,
): void {
  if (name === undefined || !color) {
    content();
    return;
  }
  const [begin, end] = sequencesOf(name);
  flow.mark(begin);
  content();
  flow.mark(end);
}

function textOf(nodes: readonly Node[], options: WalkOptions): string {
  const flow = new TextFlow();
  for (const node of nodes) walk(node, flow, options, false);
  return String(flow);
}

function numberedList(list: Tag, flow: TextFlow, options: WalkOptions): void {
  let number = 0;
  for (const child of list.children) {
    if (DomUtils.isTag(child) && child.name === 'li') {
      number++;
      blockOf(flow, () => flow.keep(listItem(`${number}. `, child, options)));
    } else walk(child, flow, options, false);
  }
}

function listItem(bullet: string, item: Tag, options: WalkOptions): string {
  return bullet + textOf(item.children, options).replaceAll('\n', `\n${' '.repeat(bullet.length)}`);
}

function imageText({ src = '', alt = '' }: Record<string, string>, { image }: HtmlOptions): string {
  return src.startsWith('data:') ? image(src) : `[image ${alt || src}]`;
}

/** Sound and films: embedded data are saved, and of others the address is shown. */
function mediaText({ name, attribs, children }: Tag, { image }: HtmlOptions): string {
  const source = children.filter(DomUtils.isTag).find((child) => child.name === 'source');
  const src = attribs.src ?? source?.attribs.src ?? '';
  return src.startsWith('data:') ? image(src) : `[${name} ${src}]`;
}

function frameText({ src = '', srcdoc }: Record<string, string>, { page }: HtmlOptions): string {
  return srcdoc === undefined ? `[page ${src}]` : page(srcdoc);
}

function readTable(table: Tag, options: WalkOptions): Grid {
  const plain = { ...options, color: false };
  const lines = rowsOf(table).map((row) => {
    const cells = row.children.filter(DomUtils.isTag).filter(({ name }) => name === 'td' || name === 'th');
    return {
      isHeading: cells.length > 0 && cells.every(({ name }) => name === 'th'),
      texts: cells.flatMap(({ children, attribs }) => [
        textOf(children, plain),
        ...Array.from({ length: Math.min(Number(attribs.colspan ?? 1) || 1, 100) - 1 }, () => ''),
      ]),
    };
  });
  const firstRow = lines.findIndex(({ isHeading }) => !isHeading);
  const headingCount = firstRow === -1 ? 0 : firstRow;
  return {
    headings: lines.slice(0, headingCount).map(({ texts }) => texts),
    rows: lines.slice(headingCount).map(({ texts }) => texts),
  };
}

/** Returns the rows of the table itself: those of a table in one of its cells are part of that cell. */
function rowsOf(table: Tag): Tag[] {
  return table.children.filter(DomUtils.isTag).flatMap((child) => {
    if (child.name === 'tr') return [child];
    if (!/^t(head|body|foot)$/.test(child.name)) return [];
    return child.children.filter(DomUtils.isTag).filter(({ name }) => name === 'tr');
  });
}

function showMarimo(
  node: Tag,
  element: MarimoElement,
  flow: TextFlow,
  options: WalkOptions,
  inside: () => void,
): void {
  if (element.kind === 'table') {
    blockOf(flow, () => flow.keep(gridText(element.grid, options.limits, options.style)));
  } else if (element.kind === 'html') {
    blockOf(flow, () => flow.keep(textOf(parseDocument(element.html).children, options)));
  } else if (element.kind === 'text') {
    flow.flow(element.text);
  } else if (element.kind === 'file') {
    const saved = options.image(element.content, element.mimetype);
    blockOf(flow, () => flow.keep(element.label === '' ? saved : `${element.label}: ${saved}`));
  } else if (element.kind === 'sections') {
    node.children.filter(DomUtils.isTag).forEach((child, at) => {
      blockOf(flow, () => flow.keep(`${element.labels[at] ?? ''}:`));
      blockOf(flow, () => walk(child, flow, options, false));
    });
  } else {
    inside();
  }
}
