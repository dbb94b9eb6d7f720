import { Argument, type Command } from 'commander';
import type { CommandGroup } from '../command-group.ts';

/** What can follow the words of `path`: `''` is the program itself. */
interface Node {
  readonly path: string;
  readonly words: readonly string[];
}

const SHELLS: Readonly<Record<string, (nodes: readonly Node[]) => string>> = { bash, zsh, fish };

export const completion: CommandGroup = (program, { terminal }) => {
  program
    .command('completion')
    .description('print a completion script, such as for: source <(troupe completion bash)')
    .addArgument(new Argument('<shell>').choices(Object.keys(SHELLS)))
    .action((shell: string) => terminal.out(SHELLS[shell]?.(nodesOf(program)) ?? ''));
};

function nodesOf(program: Command): Node[] {
  const globals = ['--json', '--workspace', '--help'];
  const nodes: Node[] = [];
  const visit = (command: Command, path: readonly string[]) => {
    const options =
      command === program ? [] : command.options.flatMap(({ long }) => (long == null ? [] : [long]));
    const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    const names = command.commands.map((child) => child.name());
    nodes.push({ path: path.join(' '), words: [...names, ...values, ...options, ...globals] });
    for (const child of command.commands) visit(child, [...path, child.name()]);
  };
  visit(program, []);
  return nodes;
}

/** Bash and zsh: the longest known path among the words so far says what can follow. */
function cases(nodes: readonly Node[], offer: (words: string) => string): string {
  return nodes.map(({ path, words }) => `    '${path}') ${offer(words.join(' '))} ;;`).join('\n');
}

function knownPaths(nodes: readonly Node[]): string {
  return nodes
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path}'`)
    .join('|');
}

function bash(nodes: readonly Node[]): string {
  return `_troupe() {
  local word where='' offered=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${where:+$where }$word" in
      ${knownPaths(nodes)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$where" in
${cases(nodes, (words) => `offered='${words}'`)}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _troupe troupe
`;
}

function zsh(nodes: readonly Node[]): string {
  return `#compdef troupe
_troupe() {
  local word where=''
  for word in \${words[2,CURRENT-1]}; do
    case "\${where:+$where }$word" in
      ${knownPaths(nodes)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$where" in
${cases(nodes, (words) => `compadd -- ${words}`)}
  esac
}
compdef _troupe troupe
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.map(
    ({ path, words }) => `complete -c troupe -f -n '__troupe_at "${path}"' -a '${words.join(' ')}'`,
  );
  return `function __troupe_at
  set -l where ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$where $word")
    contains -- "$next" ${nodes.map(({ path }) => `'${path}'`).join(' ')}; and set where "$next"
  end
  test "$where" = "$argv[1]"
end
${lines.join('\n')}
`;
}
