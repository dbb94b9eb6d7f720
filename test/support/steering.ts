/**
 * ESC except as the beginning of a colour, the other controls except tab and line feed, and characters that change the
 * direction of text.
 */
const ESC = '\\x1b';
export const STEERING = new RegExp(
  `${ESC}(?!\\[[0-9;:]{0,64}m)|[\\x00-\\x08\\x0b-\\x1a\\x1c-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]`,
);
