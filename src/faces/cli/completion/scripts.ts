/** Completion scripts for shells. The longest known path of commands among the typed words determines the possible next words. */
import { COMPLETE_IDS } from '../commands/complete-ids.ts';
import type { CommandWords } from './words.ts';

/** Returns the completion script for bash. */
export function bashScript(commands: readonly CommandWords[]): string {
  const cases = commands.map(({ path, words, options, ids, files }) => {
    const settings = [
      `offered='${words.join(' ')}' options='${options.join(' ')}'`,
      ...(ids === null ? [] : [`ids='${ids}'`]),
      ...(files ? ["files='yes'"] : []),
    ];
    return `    '${path}') ${settings.join(' ')} ;;`;
  });
  return `_troupe() {
  local word where='' offered='' options='' ids='' files='' current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${where:+$where }$word" in
      ${knownPaths(commands)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$where" in
${cases.join('\n')}
  esac
  if [[ -n $ids && $current != -* ]]; then offered+=" $("\${COMP_WORDS[0]}" ${COMPLETE_IDS} "$ids" 2>/dev/null)"; fi
  if [[ -z $files || $current == -* ]]; then offered+=" $options"; fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -o default -F _troupe troupe
`;
}

/** Returns the completion script for zsh. */
export function zshScript(commands: readonly CommandWords[]): string {
  const cases = commands.map(({ path, words, options, ids, files }) => {
    const steps = [
      `compadd -- ${words.join(' ')}`,
      ...(ids === null ? [] : [`compadd -- \${(f)"$("\${words[1]}" ${COMPLETE_IDS} ${ids} 2>/dev/null)"}`]),
      ...(files ? ['[[ $PREFIX == -* ]] || _files'] : []),
      `[[ $PREFIX != -* ]] || compadd -- ${options.join(' ')}`,
    ];
    return `    '${path}') ${steps.join('; ')} ;;`;
  });
  return `#compdef troupe
_troupe() {
  local word where=''
  for word in \${words[2,CURRENT-1]}; do
    case "\${where:+$where }$word" in
      ${knownPaths(commands)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$where" in
${cases.join('\n')}
  esac
}
compdef _troupe troupe
`;
}

/** Returns the completion script for fish. */
export function fishScript(commands: readonly CommandWords[]): string {
  const lines = commands.map(({ path, words, options, ids, files }) => {
    const asked = ids === null ? '' : ` (troupe ${COMPLETE_IDS} ${ids} 2>/dev/null)`;
    const offered = [...words, ...options].join(' ') + asked;
    return `complete -c troupe ${files ? '-F' : '-f'} -n '__troupe_at "${path}"' -a '${offered}'`;
  });
  return `function __troupe_at
  set -l where ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$where $word")
    contains -- "$next" ${commands.map(({ path }) => `'${path}'`).join(' ')}; and set where "$next"
  end
  test "$where" = "$argv[1]"
end
${lines.join('\n')}
`;
}

function knownPaths(commands: readonly CommandWords[]): string {
  return commands
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path}'`)
    .join('|');
}
