/** What is said where there is no such thing, or where there is one that the operator may not know of. */
export const noSuch = {
  order: 'no signal ever named this order',
  webhook: 'no webhook that is kept has this id',
  location: 'no location has this id',
} as const;
