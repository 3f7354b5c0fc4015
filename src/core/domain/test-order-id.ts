/** The id of a test order. Nothing about a real member contains one. */
export const TEST_ORDER = /certify-[0-9a-f]{16}/;
