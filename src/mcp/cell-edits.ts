/** Changes of cells as Python for marimo's code mode. */

export type CellEdit =
  | { readonly type: 'create'; readonly code: string; readonly name?: string; readonly after?: string }
  | { readonly type: 'replace'; readonly cellId: string; readonly code: string }
  | { readonly type: 'delete'; readonly cellId: string }
  | { readonly type: 'move'; readonly cellId: string; readonly after: string };

/**
 * Returns code that makes the changes in one transaction, and with `run` runs the cells that it has created or replaced. The values stand
 * in it as one JSON text, so that no text of a cell can become code here.
 */
export function codeOfEdits(edits: readonly CellEdit[], run: boolean): string {
  return [
    'import json as _json',
    'import marimo._code_mode as _cm',
    `_edits = _json.loads(${JSON.stringify(JSON.stringify(edits))})`,
    'async with _cm.get_context() as _ctx:',
    '    for _edit in _edits:',
    '        if _edit["type"] == "create":',
    '            _more = {k: _edit[k] for k in ("name", "after") if k in _edit}',
    '            _changed = _ctx.create_cell(_edit["code"], hide_code=False, **_more)',
    '        elif _edit["type"] == "replace":',
    '            _ctx.cells[_edit["cellId"]].code',
    '            _ctx.edit_cell(_edit["cellId"], _edit["code"])',
    '            _changed = _edit["cellId"]',
    '        elif _edit["type"] == "delete":',
    '            _ctx.delete_cell(_edit["cellId"])',
    '            continue',
    '        else:',
    '            _ctx.move_cell(_edit["cellId"], after=_edit["after"])',
    '            continue',
    ...(run ? ['        _ctx.run_cell(_changed)'] : []),
  ].join('\n');
}
