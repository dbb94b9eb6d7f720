/** The sign of Troupe. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <circle cx="16" cy="9.5" r="3.5" />
      <circle cx="8.5" cy="22" r="3.5" />
      <circle cx="23.5" cy="22" r="3.5" />
    </svg>
  );
}
