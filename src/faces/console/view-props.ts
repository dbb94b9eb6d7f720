/** The properties of every view. */
export interface ViewProps {
  /** The ids that follow the name of the view in the link. */
  readonly rest: readonly string[];
}
