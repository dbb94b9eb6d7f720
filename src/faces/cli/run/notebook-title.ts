import { basename, extname } from 'node:path';
import { cutText } from '#src/base/text/cut-text.ts';
import type { LocalNotebook } from './notebook-file.ts';

const MAX_TITLE_CHARACTERS = 200;

/** Returns the title of a notebook file: the title in the file, or the file's name without its ending. */
export function titleOfFile(name: string, { format, content }: LocalNotebook): string {
  const own =
    format === 'py'
      ? /\bApp\([^)]{0,2000}?\bapp_title\s*=\s*(["'])((?:(?!\1)[^\\\n])*)\1/.exec(content)?.[2]
      : format === 'md'
        ? /^---\r?\n(?:(?!---\r?\n)[^\n]*\n)*?title:[ \t]*([^\r\n]+)/.exec(content)?.[1]
        : undefined;
  const title = (own ?? basename(name, extname(name))).replace(/^(["'])(.*)\1$/, '$2');
  const plain = cutText(title.replace(/[\p{Cc}\p{Surrogate}]/gu, ' ').trim(), 0, MAX_TITLE_CHARACTERS);
  return plain === '' ? 'notebook' : plain;
}
