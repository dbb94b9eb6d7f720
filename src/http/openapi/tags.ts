/** Descriptions of the groups of operations, by the tag of their routes. */
export const TAGS: Readonly<Record<string, string>> = {
  Server: 'Health of the server, and the description of its interface.',
  Notebooks: 'Saved notebooks: their cells, settings and files.',
  Files: 'The files of a workspace: the working directory of its notebooks.',
  Packages: 'Python packages that all notebooks of a workspace have.',
  'Front end': "Files of marimo's front end, which exported pages load.",
  'Execution environments': 'Places to run in. Each holds at most one active notebook session.',
  'Notebook sessions': 'Notebooks that are open: their kernel, the state of their cells, their events.',
  Executions: 'Runs of cells in a notebook session.',
  'Live editing': 'Python that runs in a live session, outside of its cells, and may edit the notebook.',
  'Agent sessions': 'Conversations with models: prompts, entries, events, and with whom they are shared.',
  Models: 'The models that agents can use, and the keys for them.',
  Jobs: 'Work that begins by itself at the instants of a schedule, and what became of each instant.',
  Runs: 'The durable records of executions and prompts, with their outputs.',
  Datasources: 'Database connections, which are stored encrypted, and with whom they are shared.',
  Identity: 'Workspaces, their members, and access tokens.',
  Operations: 'For operators: the audit, the keyring, disk usage, and the sessions and kernels in memory.',
};
