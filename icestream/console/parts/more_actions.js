/** Verify, delete and what else is seldom done to a connector. */

/** @param {{name: string, state: string}} props */
export function MoreActions() {
  return null;
}
