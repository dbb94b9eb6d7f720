// Part of `npm run verify`: finds regular expressions whose cost grows with the square of a text's length, or faster. One long text
// from outside would stop the event loop with it.
//
// The rules are those of eslint-plugin-regexp. ESLint has no parser for TypeScript that works with this compiler, so it is given a text
// in which everything is blank but comments, regular expressions and the constants from which some are made. Places and
// `eslint-disable` comments stay unchanged. Such a comment names the bound of the text.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Linter } from 'eslint';
import regexp from 'eslint-plugin-regexp';
import { parseSync } from 'oxc-parser';
import { ROOT } from './setup.mjs';
import { filesBelow } from './stamps.mjs';

const FOLDERS = ['machines', 'src', 'storage'];
const PATTERNS = new Set(['Identifier', 'Literal', 'TemplateLiteral']);
const linter = new Linter();
const CONFIG = {
  linterOptions: { reportUnusedDisableDirectives: 'error' },
  plugins: { regexp },
  rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
};

/** Returns the problems in the sources, each as a line. */
export function findSlowExpressions() {
  return FOLDERS.flatMap((folder) => filesBelow(ROOT, folder, ''))
    .filter((path) => /\.(?:ts|tsx|mjs)$/.test(path))
    .flatMap((path) => problemsIn(path, readFileSync(join(ROOT, path), 'utf8')));
}

/** Returns the problems of a file's text, each as a line. Throws when the text cannot be parsed. */
export function problemsIn(path, text) {
  const expressions = expressionsOf(path, text);
  if (expressions === undefined) return [];
  return linter
    .verify(expressions, CONFIG)
    .map(({ line, column, message }) => `${path}:${line}:${column} ${message.replace(/\s+/g, ' ')}`);
}

/**
 * Returns the text with blanks in place of everything that does not belong to a regular expression; undefined when it
 * has no regular expression.
 */
function expressionsOf(path, text) {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  const found = [];
  collect(program, found);
  if (found.length === 0) return undefined;
  const constants = program.body.flatMap(stringConstants);
  const isOutside = ({ start }) => !found.some((one) => one.start < start && start < one.end);
  const kept = [...found, ...constants, ...comments.filter(isOutside)].sort((a, b) => a.start - b.start);
  let made = '';
  for (const { start, end, before = '', after = '' } of kept) {
    if (start < made.length) continue; // within the previous place
    const blanks = blank(text.slice(made.length, start));
    made += blanks.slice(0, blanks.length - before.length) + before + text.slice(start, end) + after;
  }
  return made + blank(text.slice(made.length));
}

/**
 * Adds the places of the literals below a node, of the calls of `RegExp`, and of the patterns of schemas. A semicolon
 * separates each from the previous ones. The text `pattern: ` is long enough to be replaced by a call.
 */
function collect(node, found) {
  if (Array.isArray(node)) {
    for (const one of node) collect(one, found);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const { type, start, end } = node;
  const isCall = (type === 'NewExpression' || type === 'CallExpression') && node.callee.name === 'RegExp';
  if (isCall || (type === 'Literal' && node.regex !== undefined)) found.push({ start, end, before: ';' });
  if (isCall || type === 'Literal') return;
  if (type === 'Property' && node.key.name === 'pattern' && PATTERNS.has(node.value.type) && !node.shorthand)
    found.push({ start: node.value.start, end: node.value.end, before: ';RegExp(', after: ')' });
  for (const value of Object.values(node)) collect(value, found);
}

/** Returns the places of the constants of a file that are texts. */
function stringConstants(statement) {
  const { kind, declarations } = statement.declaration ?? statement;
  if (kind !== 'const' || declarations.length > 1) return [];
  const { id, init, start, end } = declarations[0];
  const isText = init?.type === 'TemplateLiteral' || typeof init?.value === 'string';
  return isText && id.type === 'Identifier' && !id.typeAnnotation ? [{ start, end, before: 'const ' }] : [];
}

function blank(text) {
  return text.replace(/[^\n\r\u2028\u2029]/g, ' ');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const problems = findSlowExpressions();
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
}
