import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { pageOf } from '../parts/page-of.ts';

export function OrderSearch() {
  const { route } = useLocation();
  const [id, setId] = useState('');
  const go = (event: Event): void => {
    event.preventDefault();
    if (id.trim() !== '') route(pageOf.order(id.trim()));
  };
  return (
    <search aria-label="Open an order by its id">
      <form class="filters" onSubmit={go}>
        <div class="field orders-id">
          <label htmlFor="orders-id">Order id</label>
          <input
            id="orders-id"
            class="mono"
            value={id}
            placeholder="order-4711"
            autocomplete="off"
            spellcheck={false}
            maxLength={255}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        </div>
        <button type="submit" class="primary">
          Open
        </button>
      </form>
    </search>
  );
}
