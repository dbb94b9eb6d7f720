/** The field for an access token, whose name in the form is `token`. It takes the focus where the page has nothing else to do. */
export function TokenField({
  label,
  takesFocus = false,
}: {
  readonly label: string;
  readonly takesFocus?: boolean;
}) {
  return (
    <label>
      {label}
      <input
        name="token"
        type="password"
        required
        pattern="\s*[!-~]+\s*"
        title="Letters, digits and signs of ASCII. If it looks like that, it holds something invisible: copy it again."
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        ref={(input) => {
          if (takesFocus) input?.focus({ preventScroll: true });
        }}
      />
    </label>
  );
}
