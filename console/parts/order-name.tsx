import { printable } from '../../src/observe/terminal-text.ts';
import { TEST_ORDER } from '../../src/core/domain/test-order-id.ts';
import { Badge } from './badge.tsx';
import { ShortId } from './short-id.tsx';

/** An order's name: the code that the staff call out, or its id until it has a code. The id is read out and copied. */
export function OrderName({ id, code }: { id: string; code: string | null }) {
  if (code === null) return <ShortId id={id} />;
  return (
    <span title={printable(id)}>
      <b>{code}</b>
      {/* The space is in it, so that no underline of a link runs past the code. */}
      <span class="short-id-head"> {printable(id)}</span> {TEST_ORDER.test(id) && <Badge>Test order</Badge>}
    </span>
  );
}
