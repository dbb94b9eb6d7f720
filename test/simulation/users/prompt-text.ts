/** The prompts of a simulation. The scripted model does as they say. */

const BEHAVIOURS = ['say', 'hang', 'break', 'refuse', 'work', 'falter'] as const;
/**
 * `work`: it calls a tool first. `break`: its connection breaks. `falter`: its connection breaks within the first answer, and it answers when
 * it is asked again.
 */
export type Behaviour = (typeof BEHAVIOURS)[number];

export interface Prompt {
  readonly behaviour: Behaviour;
  /** Makes the prompt different from all others. */
  readonly token: string;
}

const FORM = new RegExp(`Please (${BEHAVIOURS.join('|')}) (\\w+)`, 'g');
/** The beginning of an answer that has no end. */
export const CUT_ANSWER = 'Well';

export function promptText({ behaviour, token }: Prompt): string {
  return `Please ${behaviour} ${token}`;
}

/** Returns the last prompt in a text. */
export function promptIn(text: string): Prompt | undefined {
  const [, behaviour, token] = [...text.matchAll(FORM)].at(-1) ?? [];
  return token === undefined ? undefined : { behaviour: behaviour as Behaviour, token };
}

/** Returns the last prompt among the texts of a conversation. */
export function behaviourOf(texts: readonly string[]): Prompt | undefined {
  return promptIn(texts.at(-1) ?? '');
}

/** Returns everything that the model says to a prompt, when nothing prevents it. */
export function answerTo({ behaviour, token }: Prompt): string {
  return behaviour === 'hang' || behaviour === 'break' ? CUT_ANSWER : answerPieces(token).join('');
}

/** Returns the pieces of a whole answer. */
export function answerPieces(token: string): string[] {
  return ['It is ', token, '.'];
}
