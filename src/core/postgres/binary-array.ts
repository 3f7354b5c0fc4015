/** Postgres's number of each type (`SELECT oid, typname FROM pg_type`), and the bytes of one value. */
const TYPES = {
  boolean: {
    oid: 16,
    length: () => 1,
    write: (into: Buffer, at: number, value: boolean) => into.writeUInt8(Number(value), at),
  },
  bytea: {
    oid: 17,
    length: (value: Buffer) => value.length,
    write: (into: Buffer, at: number, value: Buffer) => value.copy(into, at),
  },
  smallint: {
    oid: 21,
    length: () => 2,
    write: (into: Buffer, at: number, value: number) => into.writeInt16BE(value, at),
  },
  integer: {
    oid: 23,
    length: () => 4,
    write: (into: Buffer, at: number, value: number) => into.writeInt32BE(value, at),
  },
  text: {
    oid: 25,
    length: (value: string) => Buffer.byteLength(value),
    write: (into: Buffer, at: number, value: string) => into.write(value, at),
  },
  timestamptz: {
    oid: 1184,
    length: () => 8,
    // Microseconds since 2000-01-01 UTC.
    write: (into: Buffer, at: number, value: Date) =>
      into.writeBigInt64BE(BigInt(value.getTime() - Date.UTC(2000, 0)) * 1000n, at),
  },
  uuid: {
    oid: 2950,
    length: () => 16,
    write: (into: Buffer, at: number, value: string) => {
      if (into.write(value.replaceAll('-', ''), at, 16, 'hex') !== 16) throw new TypeError('a UUID is required');
    },
  },
} as const;

export type Type = keyof typeof TYPES;
export type Value<Of extends Type> = Parameters<(typeof TYPES)[Of]['write']>[2];

/** Bytes of the header: dimensions, whether there are nulls, type, length, lower bound */
const HEADER_BYTES = 20;

/**
 * Encodes an array parameter as Postgres's own `array_send` does; pg sends a buffer as it is. pg would encode an array
 * as text, where each value is quoted here and parsed character by character there: a tenth of the cost of a statement
 * with hundreds of webhooks.
 */
export function binaryArray<Of extends Type>(type: Of, values: readonly (Value<Of> | null | undefined)[]): Buffer {
  const { oid, length, write } = TYPES[type] as {
    oid: number;
    length(value: Value<Of>): number;
    write(into: Buffer, at: number, value: Value<Of>): void;
  };
  let bytes = HEADER_BYTES;
  for (const value of values) bytes += 4 + (value === null || value === undefined ? 0 : length(value));
  const array = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const field of [1, 1, oid, values.length, 1]) at = array.writeInt32BE(field, at);
  for (const value of values) {
    if (value === null || value === undefined) {
      at = array.writeInt32BE(-1, at);
    } else {
      const size = length(value);
      at = array.writeInt32BE(size, at);
      write(array, at, value);
      at += size;
    }
  }
  return array;
}
