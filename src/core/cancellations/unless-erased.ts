/**
 * SQL of a text that a POS wrote, unless the order in `known` was erased meanwhile: it may quote the member.
 * @param text SQL
 */
export const unlessErased = (text: string): string =>
  `CASE WHEN (SELECT erased_at IS NULL FROM known) THEN ${text} END`;
