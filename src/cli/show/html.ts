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
  /** Takes the content of an embedded image and answers what to write in its place. */
  readonly image: (dataUrl: string) => string;
}

const LEFT_OUT = new Set(['script', 'style', 'head', 'template', 'noscript', 'colgroup']);
const BLOCKS = new Set(
  'address article aside blockquote dd details div dl dt fieldset figure footer form header main nav ol p section summary ul'.split(
    ' ',
  ),
);
const SPACED = new Set(['p', 'ol', 'ul', 'blockquote']);
const INLINE_STYLES: Readonly<Record<string, StyleName>> = {
  b: 'bold',
  strong: 'bold',
  code: 'cyan',
  kbd: 'cyan',
};
/** Classes that Pygments gives the parts of a traceback. */
const PYGMENTS: Readonly<Record<string, StyleName>> = { gr: 'red', gt: 'bold', nb: 'cyan', pm: 'red' };

export function htmlText(html: string, options: HtmlOptions): string {
  const flow = new TextFlow();
  for (const node of parseDocument(html).children) walk(node, flow, options, false);
  return String(flow);
}

function walk(node: Node, flow: TextFlow, options: HtmlOptions, isPre: boolean): void {
  if (DomUtils.isText(node)) {
    if (isPre) flow.keep(node.data);
    else flow.flow(node.data);
    return;
  }
  if (!DomUtils.isTag(node) || LEFT_OUT.has(node.name)) return;
  const inside = (pre = isPre) => {
    for (const child of node.children) walk(child, flow, options, pre);
  };
  const { name, attribs } = node;
  if (name === 'br') flow.lineBreak();
  else if (name === 'hr') blockOf(flow, () => flow.keep('────'));
  else if (name === 'img') flow.keep(imageText(attribs, options));
  else if (name === 'svg') flow.keep('[drawing]');
  else if (name === 'table')
    blockOf(flow, () => flow.keep(gridText(readTable(node, options), options.limits, options.style)));
  else if (name === 'pre') blockOf(flow, () => inside(true));
  else if (name === 'li') blockOf(flow, () => flow.keep(listItem(node, options)));
  else if (/^h[1-6]$/.test(name)) blockOf(flow, () => styled('bold', flow, options, inside), 1);
  else if (name === 'marimo-tex') flow.keep(DomUtils.textContent(node).replace(/\|\|[()[\]]/g, '$'));
  else if (name.startsWith('marimo-')) showMarimo(readMarimoElement(name, attribs), flow, options, inside);
  else if (BLOCKS.has(name)) blockOf(flow, inside, SPACED.has(name) ? 1 : 0);
  else if (attribs.class?.split(' ').includes('paragraph')) blockOf(flow, inside, 1);
  else
    styled(INLINE_STYLES[name] ?? (isPre ? PYGMENTS[attribs.class ?? ''] : undefined), flow, options, inside);
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

function textOf(nodes: readonly Node[], options: HtmlOptions): string {
  const flow = new TextFlow();
  for (const node of nodes) walk(node, flow, options, false);
  return String(flow);
}

function listItem(item: Tag, options: HtmlOptions): string {
  const siblings = DomUtils.getSiblings(item).filter(DomUtils.isTag);
  const isNumbered = item.parent !== null && DomUtils.isTag(item.parent) && item.parent.name === 'ol';
  const bullet = isNumbered ? `${siblings.indexOf(item) + 1}. ` : '- ';
  return bullet + textOf(item.children, options).replaceAll('\n', `\n${' '.repeat(bullet.length)}`);
}

function imageText({ src = '', alt = '' }: Record<string, string>, { image }: HtmlOptions): string {
  return src.startsWith('data:') ? image(src) : `[image ${alt || src}]`;
}

function readTable(table: Tag, options: HtmlOptions): Grid {
  const plain = { ...options, color: false };
  const lines = DomUtils.getElementsByTagName('tr', table.children).map((row) => {
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

function showMarimo(element: MarimoElement, flow: TextFlow, options: HtmlOptions, inside: () => void): void {
  if (element.kind === 'table') {
    blockOf(flow, () => flow.keep(gridText(element.grid, options.limits, options.style)));
  } else if (element.kind === 'html') {
    blockOf(flow, () => flow.keep(htmlText(element.html, options)));
  } else if (element.kind === 'text') {
    flow.flow(element.text);
  } else {
    inside();
  }
}
