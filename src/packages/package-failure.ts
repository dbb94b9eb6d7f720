/** Packages cannot be had. The message is for people: it says why, and what to do. */
export class PackageFailure extends Error {
  override readonly name = 'PackageFailure';
}
