import type { PageAccess } from '#src/base/caller/page-access.ts';

/**
 * The parts of marimo's page that Troupe does not offer, by their reason. A style sheet hides them, because marimo has no setting for
 * them. `test/journeys/pages/page-buttons.test.ts` presses every part that is left.
 */

/** The entries of the command palette that are hidden; those of the menu have the same names. */
const HIDDEN_ENTRIES: Readonly<Record<string, readonly string[]>> = {
  'people and agents are connected by Troupe, and not by a key of this page': ['Connect your agent'],
  'a page has no terminal': ['Show integrated terminal'],
  "the agent of the notebook takes the place of marimo's own AI": [
    'Helper panel > Ai',
    'Config > Enable GitHub Copilot',
  ],
  'no formatter is part of the server': ['Format all', 'Cell > Format'],
  'the kernel has no cell for a scratchpad': ['Helper panel > Scratchpad'],
  'the server has no browser that could print': ['Download > Download as PDF'],
  "the form collects facts about marimo's own server": ['Report an issue'],
};

/** The entries that are hidden from people who may not edit, to whom the server refuses them. */
const ENTRIES_OF_EDITORS = [
  'Duplicate notebook',
  'Add setup cell',
  'Add database connection',
  'Add remote storage',
  'Restart kernel',
];

/** Selectors of further parts that are hidden from people who may not edit. */
const PARTS_OF_EDITORS = [
  '[data-testid="shutdown-button"]',
  // The button would make this page the one that edits. In Troupe a person has the right to edit, and not one page.
  '[data-testid="takeover-button"]',
];

/** Selectors of further parts, by the reason for which they are hidden. */
const HIDDEN_PARTS: Readonly<Record<string, readonly string[]>> = {
  "the form collects facts about marimo's own server": [
    '[data-testid="chrome-sidebar"] button:has(> svg.lucide-message-circle-question-mark)',
  ],
  'the server has no browser that could print': ['[data-testid="export-format-pdf"]'],
  'the command of marimo finds no file of this notebook': [
    'div:has(> [data-testid="export-cli-command"])',
    'div:has(> [data-testid="export-cli-command"]) + div > p',
  ],
  'a kernel has no debugger': ['button:has(> svg.lucide-bug-play)'],
  'no formatter is part of the server': ['[cmdk-item]:has(svg.lucide-code-xml)'],
  'the numbers of the machine are not those of the notebook': [
    '[data-testid="memory-usage-bar"]',
    '[data-testid="cpu-bar"]',
  ],
  'the server decides when cells run': ['[data-testid="footer-runtime-settings"]'],
  "these settings are about marimo's own server": [
    'cpu',
    'brain',
    'layers',
    'folder-cog',
    'flask-conical',
  ].map((icon) => `[role="dialog"] [role="tab"]:has(svg.lucide-${icon})`),
};

/** Returns the style sheet that hides the parts of the page that Troupe does not offer to somebody with this access. */
export function hiddenParts(access: PageAccess): string {
  const mayEdit = access === 'edit';
  const entries = [...Object.values(HIDDEN_ENTRIES).flat(), ...(mayEdit ? [] : ENTRIES_OF_EDITORS)];
  const selectors = [
    // The palette escapes the names of its entries in this attribute.
    ...entries.map((name) => `[cmdk-item][data-value="${name.replace('>', '&gt;')}"]`),
    ...entries.map((name) => `[data-testid="notebook-menu-dropdown-${name}"]`),
    ...Object.values(HIDDEN_PARTS).flat(),
    ...(mayEdit ? [] : PARTS_OF_EDITORS),
  ];
  return `${selectors.join(',\n')} { display: none !important; }`;
}
