import { ShortId } from './short-id.tsx';

/** The name of an order: its call-out code, or its id before it has one. */
export function OrderName({ id, code }: { id: string; code: string | null }) {
  return code === null ? <ShortId id={id} /> : <b title={id}>{code}</b>;
}
