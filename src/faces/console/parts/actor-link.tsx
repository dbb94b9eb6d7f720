import { here } from '../state/route.ts';

interface ActorLinkProps {
  readonly kind: string;
  readonly id: string;
  /** Whether to show only the id, which begins with a short word for the kind. */
  readonly brief?: boolean;
  /** A title for people, shown instead of the id. */
  readonly title?: string;
}

/** A link to an actor, with its kind. */
export function LinkToActor({ kind, id, brief = false, title = id }: ActorLinkProps) {
  return (
    <a
      class="actor-link"
      href={here(['actors', kind, id])}
      aria-label={`${kind} ${id}`}
      title={`${kind} ${id}`}
    >
      {!brief && <small>{kind}</small>} {title === id ? <Id id={id} /> : <span class="name">{title}</span>}
    </a>
  );
}

/** An id. Ids differ mostly at their ends, so the end stays visible when there is little room. */
export function Id({ id }: { readonly id: string }) {
  return (
    <code class="id" title={id}>
      <span>{id.slice(0, -6)}</span>
      <span>{id.slice(-6)}</span>
    </code>
  );
}
