/** Patterns of paths, as shells have them: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of folders. */

/** Returns whether a path has characters that make it a pattern. */
export function isGlob(path: string): boolean {
  return /[*?[{]/.test(path);
}

/** Returns the folder that contains all possible matches of the pattern, with a slash at its end; an empty text for the top folder. */
export function folderOfGlob(pattern: string): string {
  return pattern.slice(0, pattern.lastIndexOf('/', pattern.search(/[*?[{]/)) + 1);
}

/** Returns a test whether a path matches. As in shells, no wildcard matches a dot at the beginning of a name. */
export function globMatcher(pattern: string): (path: string) => boolean {
  const expression = new RegExp(`^${pattern.split('/').map(expressionOfName).join('')}$`, 'u');
  return (path) => expression.test(path);
}

function expressionOfName(name: string, index: number, names: readonly string[]): string {
  const isLast = index === names.length - 1;
  if (name === '**') return isLast ? '(?:(?!\\.)[^/]+/)*(?!\\.)[^/]+' : '(?:(?!\\.)[^/]+/)*';
  const start = /^[*?[]/.test(name) ? '(?!\\.)' : '';
  return `${start}${expressionOf(name)}${isLast ? '' : '/'}`;
}

function expressionOf(text: string): string {
  return text.replace(
    /\[([!^]?)(\]?[^\]]{0,255})\]|\{([^{}]*)\}|\*+|\?|[^*?[{]+|[[{]/gu,
    (part, negation: string | undefined, set: string | undefined, choice: string | undefined) => {
      if (set !== undefined) return `[${negation === '' ? '' : '^/'}${set.replace(/[\\\]^&~[]/g, '\\$&')}]`;
      if (choice !== undefined) return `(?:${choice.split(',').map(expressionOf).join('|')})`;
      if (part.startsWith('*')) return '[^/]*';
      return part === '?' ? '[^/]' : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    },
  );
}
