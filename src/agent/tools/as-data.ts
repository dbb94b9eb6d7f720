const TAG = 'untrusted-data';

/** Marks text from data or outputs, so that instructions inside it are not mistaken for the person's. */
export function asData(text: string): string {
  return `<${TAG}>\n${text.replaceAll(TAG, 'untrusted data')}\n</${TAG}>`;
}
