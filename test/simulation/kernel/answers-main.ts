/** Prints the answers of the scripted kernel to the commands of `dialogue.ts`. */
import { simulateHere } from '../simulated-process.ts';

simulateHere();
const { scriptedDialogue } = await import('./scripted-dialogue.ts');
process.stdout.write(JSON.stringify(await scriptedDialogue()));
process.exit(0);
