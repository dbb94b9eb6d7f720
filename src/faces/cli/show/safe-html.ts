/**
 * HTML of an output as a part of a page. The policy of the page forbids scripts and requests. Dangerous parts that the policy
 * cannot forbid are left out here: elements that navigate by themselves, and unclosed markup, which would swallow the rest of the
 * page.
 */
import { DomUtils, parseDocument } from 'htmlparser2';

type Node = ReturnType<typeof parseDocument>['children'][number];
type Tag = Extract<Node, { attribs: object }>;

/**
 * Elements that load or link to other pages, and elements whose content browsers parse by special rules. They are removed with
 * their content.
 */
const LEFT_OUT = new Set(
  'applet base embed frame frameset link meta noembed noframes noscript object plaintext script template textarea title xmp'.split(
    ' ',
  ),
);
/** Elements that a page has only once. They are replaced by their content. */
const UNWRAPPED = new Set(['html', 'head', 'body']);
/** The deepest nesting that is read, because each level takes some of the stack. */
const MAX_DEPTH = 200;

/**
 * Returns the HTML without the dangerous parts, with every element closed. `formula` returns the MathML of a formula; without it,
 * formulas are text.
 */
export function safeHtml(html: string, formula?: (content: string) => string): string {
  return safeNodes(parseDocument(html).children, 0, formula)
    .map((node) => DomUtils.getOuterHTML(node, { encodeEntities: 'utf8', selfClosingTags: false }))
    .join('');
}

function safeNodes(
  nodes: readonly Node[],
  depth: number,
  formula: ((content: string) => string) | undefined,
): Node[] {
  if (depth > MAX_DEPTH) return [];
  return nodes.flatMap((node): Node[] => {
    if (DomUtils.isText(node)) return [node];
    // Comments are removed, too, because a comment that is not closed hides the rest of the page.
    if (!DomUtils.isTag(node) || LEFT_OUT.has(node.name)) return [];
    if (node.name === 'iframe') return framed(node);
    if (node.name === 'marimo-tex' && formula !== undefined)
      return safeNodes(parseDocument(formula(DomUtils.textContent(node))).children, depth + 1, undefined);
    const children = safeNodes(node.children, depth + 1, formula);
    if (UNWRAPPED.has(node.name) || !/^[a-z][\w-]*$/.test(node.name)) return children;
    node.children = children;
    for (const [name, value] of Object.entries(node.attribs))
      if (!isKept(name, value)) delete node.attribs[name];
    if (node.name === 'style') for (const text of children) escapeMarkup(text);
    return [node];
  });
}

/** An embedded page (`srcdoc`) is kept in a sandbox, without scripts, redirects and links. A page at another address is left out. */
function framed(frame: Tag): Node[] {
  const { srcdoc, width, height } = frame.attribs;
  if (srcdoc === undefined) return [];
  frame.attribs = {
    sandbox: '',
    srcdoc,
    ...(width === undefined ? {} : { width }),
    ...(height === undefined ? {} : { height }),
  };
  frame.children = [];
  return [frame];
}

function isKept(name: string, value: string): boolean {
  return (
    /^[a-z_][\w:.-]*$/i.test(name) &&
    !/^on/i.test(name) &&
    !/^javascript:/i.test(value.replace(/[\s\p{Cc}]/gu, ''))
  );
}

/** Within an SVG drawing, browsers read the content of `style` as markup. So `<` is escaped; in CSS, an escaped `<` means the same. */
function escapeMarkup(text: Node): void {
  if (DomUtils.isText(text)) text.data = text.data.replaceAll('<', '\\3c ');
}
