/**
 * HTML that notebooks show, as text: paragraphs, lists, tables, code, and marimo's own elements as far as they have text.
 * The HTML may be hostile: its depth and its length are bounded, and the time that it takes grows with its length.
 */
import { cutText } from '#src/base/text/cut-text.ts';
import type { Grid } from './grid.ts';
import { type MarimoElement, readMarimoElement } from './marimo-element.ts';
import { TextFlow } from './text-flow.ts';

/**
 * The parser. It is passed as an argument, because it consists of thirty files, which a server need
 * not load until it has HTML to read.
 */
type HtmlParser = typeof import('htmlparser2');
type Node = ReturnType<HtmlParser['parseDocument']>['children'][number];
type Tag = Extract<Node, { attribs: object }>;

export type Emphasis = 'strong' | 'code' | 'error';

/** The rules for the parts of a page that are more than words. */
export interface HtmlView {
  readonly table: (grid: Grid) => string;
  /** Takes an embedded image, sound or download as a data URL. Returns the text to write in its around. */
  readonly embedded: (dataUrl: string, mimetype?: string) => string;
  /** Takes a page that is embedded in the HTML. Returns the text that replaces the page. */
  readonly page: (html: string) => string;
  /** Returns the escape sequences that begin and end an emphasis; absent: text is not emphasised. */
  readonly emphasis?: ((name: Emphasis) => readonly [begin: string, end: string]) | undefined;
  /** How many characters of the HTML are read; absent: all. */
  readonly maxChars?: number;
}

/**
 * Elements nested more deeply than this are not read. People nest a few dozen. Each level takes
 * some of the stack, and the parser looks through all open elements at each end tag.
 */
export const MAX_HTML_DEPTH = 256;

const LEFT_OUT = new Set(['script', 'style', 'head', 'template', 'noscript', 'colgroup']);
const BLOCKS = new Set(
  'address article aside blockquote dd details div dl dt fieldset figure footer form header main nav p section summary ul'.split(
    ' ',
  ),
);
const SPACED = new Set(['p', 'ul', 'blockquote']);
// Maps, because the names come from the notebook: an object has members of its own, such as
// `constructor`.
const EMPHASES: ReadonlyMap<string, Emphasis> = new Map([
  ['b', 'strong'],
  ['strong', 'strong'],
  ['code', 'code'],
  ['kbd', 'code'],
]);
/** Classes that Pygments gives the parts of a traceback. */
const PYGMENTS: ReadonlyMap<string, Emphasis> = new Map([
  ['gr', 'error'],
  ['gt', 'strong'],
  ['nb', 'code'],
  ['pm', 'error'],
]);
/** Returns the text of a page. If a part of it was not read, the text ends with a note that says so. */
export function htmlText(html: string, parser: HtmlParser, view: HtmlView): string {
  const { maxChars = html.length } = view;
  const reader = new HtmlReader(parser);
  const text = reader.read(cutText(html, 0, maxChars), view);
  const notes = [
    ...(reader.isTooDeep
      ? [`[the rest was not read: its elements are nested more than ${MAX_HTML_DEPTH} deep]`]
      : []),
    ...(html.length > maxChars
      ? [`[only the first ${maxChars} of ${html.length} characters of HTML were read]`]
      : []),
  ];
  return [text, ...notes].filter(Boolean).join('\n');
}

/** The elements around a node, as far as they decide how its text is written. */
interface Surroundings {
  readonly view: HtmlView;
  /** How many elements contain the node. */
  readonly depth: number;
  readonly isPre: boolean;
}

class HtmlReader {
  isTooDeep = false;
  readonly #parser: HtmlParser;

  constructor(parser: HtmlParser) {
    this.#parser = parser;
  }

  read(html: string, view: HtmlView, depth = 0): string {
    return this.#textOf(this.#parse(html), { view, depth, isPre: false });
  }

  /** Returns the nodes of HTML up to the first element that is too deep. */
  #parse(html: string): readonly Node[] {
    const handler = new this.#parser.DomHandler();
    const [open, close] = [handler.onopentag.bind(handler), handler.onclosetag.bind(handler)];
    let depth = 0;
    handler.onopentag = (name, attributes) => {
      if (++depth <= MAX_HTML_DEPTH) return open(name, attributes);
      this.isTooDeep = true;
      parser.pause(); // nothing after this tag is parsed
    };
    handler.onclosetag = () => {
      depth--;
      close();
    };
    const parser = new this.#parser.Parser(handler);
    parser.end(html);
    return handler.dom;
  }

  #textOf(nodes: readonly Node[], around: Surroundings): string {
    const flow = new TextFlow();
    for (const node of nodes) this.#walk(node, flow, around);
    return String(flow);
  }

  #walk(node: Node, flow: TextFlow, outer: Surroundings): void {
    const { DomUtils } = this.#parser;
    if (DomUtils.isText(node)) {
      if (outer.isPre) flow.keep(node.data);
      else flow.flow(node.data);
      return;
    }
    if (!DomUtils.isTag(node) || LEFT_OUT.has(node.name)) return;
    if (outer.depth >= MAX_HTML_DEPTH) {
      this.isTooDeep = true;
      return;
    }
    const around = { ...outer, depth: outer.depth + 1 };
    const { view } = around;
    const inside = () => {
      for (const child of node.children) this.#walk(child, flow, around);
    };
    const { name, attribs } = node;
    if (name === 'br') flow.lineBreak();
    else if (name === 'hr') blockOf(flow, () => flow.keep('────'));
    else if (name === 'img') flow.keep(imageText(attribs, view));
    else if (name === 'svg') flow.keep('[drawing]');
    else if (name === 'audio' || name === 'video') flow.keep(this.#mediaText(node, view));
    else if (name === 'iframe') flow.keep(frameText(attribs, view));
    else if (name === 'table') blockOf(flow, () => flow.keep(view.table(this.#readTable(node, around))));
    else if (name === 'pre')
      blockOf(flow, () => {
        for (const child of node.children) this.#walk(child, flow, { ...around, isPre: true });
      });
    else if (name === 'ol') blockOf(flow, () => this.#numberedList(node, flow, around), 1);
    else if (name === 'li') blockOf(flow, () => flow.keep(this.#listItem('- ', node, around)));
    else if (/^h[1-6]$/.test(name)) blockOf(flow, () => emphasised('strong', flow, view, inside), 1);
    else if (name === 'marimo-tex')
      flow.keep(this.#textOf(node.children, { ...around, isPre: false }).replace(/\|\|[()[\]]/g, '$'));
    else if (name.startsWith('marimo-'))
      this.#showMarimo(node, readMarimoElement(name, attribs), flow, around, inside);
    else if (BLOCKS.has(name)) blockOf(flow, inside, SPACED.has(name) ? 1 : 0);
    else if (attribs.class?.split(' ').includes('paragraph')) blockOf(flow, inside, 1);
    else {
      const ofPygments = around.isPre ? PYGMENTS.get(attribs.class ?? '') : undefined;
      emphasised(EMPHASES.get(name) ?? ofPygments, flow, view, inside);
    }
  }

  #tagsOf(nodes: readonly Node[]): Tag[] {
    return nodes.filter(this.#parser.DomUtils.isTag);
  }

  #numberedList(list: Tag, flow: TextFlow, around: Surroundings): void {
    let number = 0;
    for (const child of list.children) {
      if (this.#parser.DomUtils.isTag(child) && child.name === 'li') {
        number++;
        blockOf(flow, () => flow.keep(this.#listItem(`${number}. `, child, around)));
      } else this.#walk(child, flow, { ...around, isPre: false });
    }
  }

  #listItem(bullet: string, item: Tag, around: Surroundings): string {
    const text = this.#textOf(item.children, { ...around, isPre: false });
    return bullet + text.replaceAll('\n', `\n${' '.repeat(bullet.length)}`);
  }

  /** Sound and films. Embedded data are saved; for other media the address is shown. */
  #mediaText({ name, attribs, children }: Tag, { embedded }: HtmlView): string {
    const source = this.#tagsOf(children).find((child) => child.name === 'source');
    const src = attribs.src ?? source?.attribs.src ?? '';
    return src.startsWith('data:') ? embedded(src) : `[${name} ${src}]`;
  }

  #readTable(table: Tag, around: Surroundings): Grid {
    const plain = { ...around, isPre: false, view: { ...around.view, emphasis: undefined } };
    const lines = this.#rowsOf(table).map((row) => {
      const cells = this.#tagsOf(row.children).filter(({ name }) => name === 'td' || name === 'th');
      return {
        isHeading: cells.length > 0 && cells.every(({ name }) => name === 'th'),
        texts: cells.flatMap(({ children, attribs }) => [
          this.#textOf(children, plain),
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

  /** Returns the rows of the table itself; rows of nested tables belong to the cell that contains them. */
  #rowsOf(table: Tag): Tag[] {
    return this.#tagsOf(table.children).flatMap((child) => {
      if (child.name === 'tr') return [child];
      if (!/^t(head|body|foot)$/.test(child.name)) return [];
      return this.#tagsOf(child.children).filter(({ name }) => name === 'tr');
    });
  }

  #showMarimo(
    node: Tag,
    element: MarimoElement,
    flow: TextFlow,
    around: Surroundings,
    inside: () => void,
  ): void {
    const { view } = around;
    if (element.kind === 'table') {
      blockOf(flow, () => flow.keep(view.table(element.grid)));
    } else if (element.kind === 'html') {
      blockOf(flow, () => flow.keep(this.read(element.html, view, around.depth)));
    } else if (element.kind === 'text') {
      flow.flow(element.text);
    } else if (element.kind === 'file') {
      const saved = view.embedded(element.content, element.mimetype);
      blockOf(flow, () => flow.keep(element.label === '' ? saved : `${element.label}: ${saved}`));
    } else if (element.kind === 'sections') {
      this.#tagsOf(node.children).forEach((child, at) => {
        blockOf(flow, () => flow.keep(`${element.labels[at] ?? ''}:`));
        blockOf(flow, () => this.#walk(child, flow, { ...around, isPre: false }));
      });
    } else {
      inside();
    }
  }
}

function blockOf(flow: TextFlow, content: () => void, emptyLines = 0): void {
  flow.block(emptyLines);
  content();
  flow.block(emptyLines);
}

function emphasised(
  name: Emphasis | undefined,
  flow: TextFlow,
  { emphasis }: HtmlView,
  content: () => void,
): void {
  if (name === undefined || emphasis === undefined) {
    content();
    return;
  }
  const [begin, end] = emphasis(name);
  flow.mark(begin);
  content();
  flow.mark(end);
}

function imageText({ src = '', alt = '' }: Record<string, string>, { embedded }: HtmlView): string {
  return src.startsWith('data:') ? embedded(src) : `[image ${alt || src}]`;
}

function frameText({ src = '', srcdoc }: Record<string, string>, { page }: HtmlView): string {
  return srcdoc === undefined ? `[page ${src}]` : page(srcdoc);
}
