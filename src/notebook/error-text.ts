import type { CellError } from '#src/kernel/messages.ts';

/** What an error says to people. */
export function errorText(error: CellError): string {
  switch (error.type) {
    case 'multiple-defs':
      return `${error.name ?? 'A name'} is also defined in ${error.cells?.join(', ')}`;
    case 'cycle':
      return 'the cells depend on each other in a cycle';
    case 'setup-refs':
      return 'the setup cell depends on other cells';
    case 'interruption':
      return 'this was interrupted';
    default:
      return error.msg ?? error.type;
  }
}
