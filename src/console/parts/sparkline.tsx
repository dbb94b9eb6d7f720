const WIDTH = 200;
const HEIGHT = 32;

/** A line of values over time, from zero to the largest. */
export function Sparkline({ points, label }: { readonly points: readonly number[]; readonly label: string }) {
  const most = points.reduce((largest, point) => Math.max(largest, point), 0) || 1;
  const step = WIDTH / Math.max(1, points.length - 1);
  const line = points.map(
    (point, i) => `${(i * step).toFixed(1)},${(HEIGHT - 1 - (point / most) * (HEIGHT - 3)).toFixed(1)}`,
  );
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon points={`0,${HEIGHT} ${line.join(' ')} ${WIDTH},${HEIGHT}`} />
      <polyline points={line.join(' ')} />
    </svg>
  );
}
