/** Functions that emphasise text for people. Without colours each returns the text unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

/** The name of an emphasis. */
export type StyleName = keyof typeof CODES;

/** Returns the terminal sequences that begin and end an emphasis. */
export function sequencesOf(name: StyleName): readonly [begin: string, end: string] {
  const [begin, end] = CODES[name];
  return [`\u001b[${begin}m`, `\u001b[${end}m`];
}

/** Returns the functions, with or without colours. */
export function styleOf(color: boolean): Style {
  const paint = (name: StyleName) => (text: string) => {
    const [begin, end] = sequencesOf(name);
    return color && text !== '' ? `${begin}${text}${end}` : text;
  };
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
    cyan: paint('cyan'),
  };
}
