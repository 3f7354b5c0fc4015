const STEPS = ['POS', 'Settings', 'Save', 'Connect'] as const;

/** Where somebody is on the way to a new location. @param now from 1 */
export function Steps({ now }: { now: 1 | 2 | 3 | 4 }) {
  return (
    <ol class="row steps" aria-label="Steps">
      {STEPS.map((step, nth) => (
        <li key={step} aria-current={nth + 1 === now ? 'step' : undefined} class={nth + 1 < now ? 'past' : ''}>
          <span>{nth + 1}</span> {step}
        </li>
      ))}
    </ol>
  );
}
