/** The prompts of a simulation. The scripted model does as they say. */

const BEHAVIOURS = ['say', 'hang', 'break', 'refuse', 'work'] as const;
/** `work`: it calls a tool first. `break`: its connection breaks. */
export type Behaviour = (typeof BEHAVIOURS)[number];

export interface Prompt {
  readonly behaviour: Behaviour;
  /** Makes the prompt different from all others. */
  readonly token: string;
}

const FORM = new RegExp(`Please (${BEHAVIOURS.join('|')}) (\\w+)`, 'g');

export function promptText({ behaviour, token }: Prompt): string {
  return `Please ${behaviour} ${token}`;
}

/** Returns the last prompt among the texts of a conversation. */
export function behaviourOf(texts: readonly string[]): Prompt | undefined {
  const [, behaviour, token] = [...(texts.at(-1) ?? '').matchAll(FORM)].at(-1) ?? [];
  return token === undefined ? undefined : { behaviour: behaviour as Behaviour, token };
}
