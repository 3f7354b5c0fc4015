/**
 * SQL of a text that a POS wrote, unless the order was erased meanwhile: it may quote the member.
 * @param text SQL
 * @param erasedAt SQL of when the order was erased
 */
export const unlessErased = (text: string, erasedAt = '(SELECT erased_at FROM known)'): string =>
  `CASE WHEN ${erasedAt} IS NULL THEN ${text} END`;
