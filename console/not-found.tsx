import { Page } from './parts/page.tsx';

export function NotFound() {
  return (
    <Page title="Not found">
      <p>
        There is no such page. Perhaps it is on <a href="/console">the board</a>.
      </p>
    </Page>
  );
}
