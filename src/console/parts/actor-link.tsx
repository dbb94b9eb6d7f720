import { here } from '../state/route.ts';

/** A link to an actor, with what kind it is; `brief` shows the id alone, which begins with a word for its kind. */
export function ActorLink(props: { readonly kind: string; readonly id: string; readonly brief?: boolean }) {
  const { kind, id, brief = false } = props;
  return (
    <a
      class="actor-link"
      href={here(['actors', kind, id])}
      aria-label={`${kind} ${id}`}
      title={`${kind} ${id}`}
    >
      {!brief && <small>{kind}</small>} <Id id={id} />
    </a>
  );
}

/** An id: its end tells it from others, so that is what stays when there is little room. */
export function Id({ id }: { readonly id: string }) {
  return (
    <code class="id" title={id}>
      <span>{id.slice(0, -6)}</span>
      <span>{id.slice(-6)}</span>
    </code>
  );
}
