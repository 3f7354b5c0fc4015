/**
 * SQL that is true of a placement that is not finished, in statements that know its id. It is no `IS NULL`, which is the
 * condition of the indexes of open placements: planned while few were open, a statement would read one of those whole at
 * every call, and not one row by its id.
 */
export const IS_OPEN = 'num_nulls(finished_at) = 1';
