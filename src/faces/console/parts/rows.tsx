/** A table that creates only the rows in view, so 10,000 rows cost as much as 30. All rows have the same height. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export interface RowColumn<Item> {
  readonly title: string;
  /** The class of the column's cells. A column `wide` is hidden on narrow screens, and a column `grow` takes the remaining room. */
  readonly class?: string;
  /** Returns the content of a cell. Rows are used again for other items, so a component with state needs a key. */
  readonly cell: (item: Item) => ComponentChildren;
}

interface RowsProps<Item> {
  readonly label: string;
  readonly columns: readonly RowColumn<Item>[];
  readonly items: readonly Item[];
  /** The total number of items, if it is known and larger than the number of `items`. */
  readonly total?: number;
  /** Called when the last rows come into view. */
  readonly onEnd?: () => void;
  readonly classOf?: (item: Item) => string;
}

const ROW_PX = 41;
/** How many rows beyond the edges are rendered, so that a slow frame shows no gap. */
const MARGIN_ROWS = 5;
const SLOTS = 64;

export function Rows<Item>(props: RowsProps<Item>) {
  const { label, columns, items, total, onEnd, classOf } = props;
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(window.innerHeight);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const sizes = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top.value / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(items.length, Math.ceil((top.value + height.value) / ROW_PX) + MARGIN_ROWS);
  useEffect(() => {
    if (last >= items.length) onEnd?.();
  }, [last, items.length]);
  // A row that leaves the view at one edge is used again at the other edge. Changing its text is cheaper than making a new element.
  const slots = SLOTS * Math.ceil((last - first) / SLOTS);
  const onScroll = () => {
    // The position is rounded, because only a scroll by whole rows changes which rows exist.
    top.value = Math.floor((box.current?.scrollTop ?? 0) / ROW_PX) * ROW_PX;
  };
  return (
    <div class="rows" ref={box} onScroll={onScroll}>
      <table aria-label={label} aria-rowcount={total ?? items.length}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={column.class}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} columns={columns.length} />
          {items.slice(first, last).map((item, i) => (
            <tr key={(first + i) % slots} aria-rowindex={first + i + 1} class={classOf?.(item)}>
              {columns.map((column) => (
                <td key={column.title} class={column.class}>
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
          <Space rows={items.length - last} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

/** Empty space in place of rows that are not rendered. */
function Space({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a table row without content cannot be focused
    <tr class="space" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}
