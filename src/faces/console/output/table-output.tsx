import type { OutputTable } from '#src/contract/wire/output.ts';
import { count, valueText } from '../parts/words.ts';

/** The first rows of a table. */
export function TableOutput({
  table: { columns, rows, rowCount, columnCount },
}: {
  readonly table: OutputTable;
}) {
  return (
    <figure class="output table-output">
      <div>
        <table>
          <thead>
            <tr>
              {columns.map(({ name, type }, i) => (
                <th key={i} scope="col">
                  {name} <small>{type}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                {row.map((value, j) => (
                  <td key={j} class={typeof value === 'number' ? 'numeric' : value === null ? 'faint' : ''}>
                    {value === null ? 'null' : valueText(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption class="faint">
        {rows.length < rowCount
          ? `The first ${count(rows.length)} of ${count(rowCount)} rows`
          : `${count(rowCount)} rows`}
        {`, ${count(columnCount)} columns`}
      </figcaption>
    </figure>
  );
}
