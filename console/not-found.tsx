import { Page } from './parts/page.tsx';

export function NotFound() {
  return (
    <Page title="Page not found">
      <p>
        <a href="/console">Back to the board</a>
      </p>
    </Page>
  );
}
