/** How much of a limit is used. */
export function Bar({
  value,
  limit,
  label,
}: {
  readonly value: number;
  readonly limit: number;
  readonly label: string;
}) {
  const share = limit === 0 ? 0 : Math.min(1, value / limit);
  const tone = share > 0.85 ? 'bad' : share > 0.6 ? 'warn' : 'good';
  return <meter class={`bar ${tone}`} min={0} max={1} value={share} aria-label={label} title={label} />;
}
