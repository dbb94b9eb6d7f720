/** A view that is one list: title, filters, pages of rows, and a text for the empty list. */
import type { ComponentChildren } from 'preact';
import type { Client } from '#src/contract/client/client.ts';
import type { Page } from '#src/contract/wire/shape.ts';
import type { Renewal } from '../state/data.ts';
import { usePages } from '../state/pages.ts';
import { Loading } from './empty.tsx';
import { Problem } from './problem.tsx';
import { type RowColumn, Rows } from './rows.tsx';
import { ViewHead } from './view-head.tsx';

interface ListViewProps<Item> {
  readonly title: string;
  readonly lead: string;
  readonly columns: readonly RowColumn<Item>[];
  readonly load: (client: Client, after: string | undefined, signal: AbortSignal) => Promise<Page<Item>>;
  /** The values on which the list depends. */
  readonly inputs: readonly unknown[];
  readonly empty: ComponentChildren;
  readonly filters?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** The events after which the first page is loaded again. */
  readonly renewal?: Renewal;
  readonly children?: ComponentChildren;
}

export const PAGE_ITEMS = 100;

export function ListView<Item>(props: ListViewProps<Item>) {
  const { title, lead, columns, load, inputs, empty, filters, actions, renewal, children } = props;
  const pages = usePages<Item, Page<Item>>(load, inputs, renewal);
  return (
    <section class="view fills">
      <ViewHead title={title} actions={actions}>
        <p class="lead">{lead}</p>
        {filters !== undefined && <div class="filters">{filters}</div>}
      </ViewHead>
      {children}
      {pages.error !== undefined && <Problem error={pages.error} retry={pages.reload} />}
      {pages.items === undefined && pages.error === undefined && <Loading />}
      {pages.items?.length === 0 && empty}
      {pages.items !== undefined && pages.items.length > 0 && (
        <Rows label={title} columns={columns} items={pages.items} onEnd={pages.more} />
      )}
    </section>
  );
}
