import { Page } from './parts/page.tsx';

export function NotFound() {
  return (
    <Page title="Not found">
      <p>
        This page does not exist. Go to <a href="/console">the board</a>.
      </p>
    </Page>
  );
}
