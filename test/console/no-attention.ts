import type { Attention } from '../../console/wire.ts';

/** Nothing needs a person. */
export const NO_ATTENTION: Attention = {
  conflicts: [],
  cancelByPhone: [],
  cancelByPhoneTotal: 0,
  changed: [],
  dropped: [],
  unreachable: [],
  silent: [],
  unreachedContacts: [],
  unnotified: null,
  cases: [],
};
