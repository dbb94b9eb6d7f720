/**
 * The initial settings of a user in marimo's page. Troupe stores none of them: a change lasts as
 * long as the page.
 */
export const PAGE_CONFIG = {
  completion: {
    activate_on_typing: true,
    signature_hint_on_typing: false,
    copilot: false,
    auto_close_pairs: true,
  },
  display: {
    theme: 'system',
    code_editor_font_size: 14,
    cell_output: 'below',
    default_width: 'medium',
    dataframes: 'rich',
    default_table_page_size: 10,
    default_table_max_columns: 50,
    reference_highlighting: true,
    code_lens: false,
  },
  formatting: { line_length: 79 },
  keymap: { preset: 'default', overrides: {} },
  runtime: {
    // The server decides when cells run; the kernel makes dependents stale after a run, and runs them after a change of an element.
    auto_instantiate: false,
    auto_reload: 'off',
    reactive_tests: false,
    on_cell_change: 'lazy',
    watcher_on_save: 'lazy',
    output_max_bytes: 8_000_000,
    std_stream_max_bytes: 1_000_000,
    default_sql_output: 'auto',
    default_csv_encoding: 'utf-8',
    show_tracebacks: false,
  },
  save: { autosave: 'after_delay', autosave_delay: 1000, format_on_save: false },
  package_management: { manager: 'pip' },
  server: { browser: 'default', follow_symlink: false, transport: 'sse' },
  language_servers: { pylsp: { enabled: false } },
  // Agents of Troupe work in the notebook. marimo's own agents would need API keys in the page.
  ai: { enabled: false, models: { displayed_models: [], custom_models: [] }, custom_providers: {} },
  snippets: { custom_paths: [], include_default_snippets: true },
  mcp: { presets: [], mcpServers: {} },
  sharing: { html: false, wasm: false, molab: false },
  experimental: {},
  datasources: { auto_discover_schemas: 'auto', auto_discover_tables: 'auto', auto_discover_columns: false },
} as const;
