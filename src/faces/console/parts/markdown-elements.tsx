import MarkdownIt, { type Token } from 'markdown-it';
import { type ComponentChildren, Fragment, h } from 'preact';

/** A text with more deeply nested lists and quotations is shown without formatting. */
const MAX_DEPTH = 20;
/** The addresses of links. A link with another scheme, such as `javascript:`, is shown as text. */
const LINK = /^(?:https?:|mailto:)/i;
/** The elements that Markdown may make; a heading is a line in bold. */
const TAGS = new Set('blockquote em li ol p pre s strong table tbody td th thead tr ul'.split(' '));

/** A parser with linear cost. Otherwise somebody could make a model write a text that blocks the page. */
const parser = new MarkdownIt({ html: false, maxNesting: MAX_DEPTH + 4 }); // the parser drops text that is nested more deeply
parser.validateLink = (url) => LINK.test(url);

/**
 * Returns the elements of a text in Markdown, or undefined for a text that is nested too deeply. HTML in it is shown as text, and a
 * picture as a link, so that a text of a model can neither run nor load anything.
 */
export function markdownElements(text: string): ComponentChildren | undefined {
  const tokens = parser.parse(text, {});
  return isTooDeep(tokens) ? undefined : elements(tokens);
}

/** Returns whether the elements are nested too deeply to be drawn, for example those of a text of thousands of asterisks. */
function isTooDeep(tokens: readonly Token[]): boolean {
  let depth = 0;
  return tokens.some(({ nesting, children }) => {
    depth += nesting;
    return depth > MAX_DEPTH || isTooDeep(children ?? []);
  });
}

function elements(tokens: readonly Token[]): ComponentChildren[] {
  const root: ComponentChildren[] = [];
  const open: { readonly token: Token; readonly children: ComponentChildren[] }[] = [];
  const add = (child: ComponentChildren) => (open.at(-1)?.children ?? root).push(child);
  for (const token of tokens) {
    if (token.nesting === 1) open.push({ token, children: [] });
    else if (token.nesting === 0) add(leaf(token));
    else {
      const closed = open.pop();
      if (closed !== undefined) add(element(closed.token, closed.children));
    }
  }
  return root;
}

function element(token: Token, children: readonly ComponentChildren[]): ComponentChildren {
  const { tag, type, hidden } = token;
  if (type === 'heading_open') return h('p', null, h('strong', null, ...children));
  if (type === 'link_open') return link(String(token.attrGet('href')), children);
  if (hidden || !TAGS.has(tag)) return h(Fragment, null, ...children);
  const start = tag === 'ol' ? Number(token.attrGet('start') ?? 1) : undefined;
  return h(tag, start === undefined ? null : { start }, ...children);
}

function leaf(token: Token): ComponentChildren {
  switch (token.type) {
    case 'inline':
      return h(Fragment, null, ...elements(token.children ?? []));
    case 'code_inline':
      return <code>{token.content}</code>;
    case 'code_block':
    case 'fence':
      return (
        <pre>
          <code>{token.content}</code>
        </pre>
      );
    case 'hardbreak':
      return <br />;
    case 'softbreak':
      return '\n';
    case 'hr':
      return <hr />;
    case 'image': {
      const href = String(token.attrGet('src'));
      return link(href, [token.content === '' ? href : token.content]);
    }
    default:
      return token.content;
  }
}

function link(href: string, children: readonly ComponentChildren[]): ComponentChildren {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
