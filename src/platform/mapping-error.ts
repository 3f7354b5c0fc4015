/** What the functions for mappers throw. `code` and `field` reach the operator; no value does, since it may be a member's. */
export class MappingError extends Error {
  override readonly name = 'MappingError';
  readonly code: MappingCode;
  /** The field that was read, if the mapper named it. */
  readonly field: string | undefined;

  constructor(code: MappingCode, field: string | undefined) {
    super(field === undefined ? SENTENCES[code] : `${field}: ${SENTENCES[code]}`);
    this.code = code;
    this.field = field;
  }
}

const SENTENCES = {
  amount_unreadable: 'is no decimal such as 12.90',
  amount_too_exact: 'has more digits than its currency',
  amount_too_large: 'is larger than any amount',
  currency_unreadable: 'is no ISO 4217 code such as EUR',
  enum_unmapped: 'has a value that the table lacks',
  location_unmapped: 'is a location that the table lacks',
  time_unreadable: 'is no time',
  zone_unknown: 'is no time zone such as Europe/Berlin',
} as const;

export type MappingCode = keyof typeof SENTENCES;
