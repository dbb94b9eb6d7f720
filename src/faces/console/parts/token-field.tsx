/** The field for an access token, whose name in the form is `token`. With `takesFocus`, the field takes the focus. */
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
        title="A token has only letters, digits and signs of ASCII. The field has another, perhaps invisible character: copy the token again."
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
