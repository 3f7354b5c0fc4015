/** Advisory locks of this service, by what they guard. Any numbers, once given, stay. */
export const LOCK_PARTITIONS = 7_301;
export const LOCK_SWEEP_PARKED = 7_302;
export const LOCK_END_ORDERS = 7_303;
