import type { ComponentChildren } from 'preact';
import type { Loaded } from './use-loaded.ts';

/** What was loaded, or that it is not there yet, or why it cannot be. */
export function Loading<Value>({
  loaded,
  children,
}: {
  loaded: Loaded<Value>;
  children: (value: Value) => ComponentChildren;
}) {
  const { value, problem, again } = loaded;
  return (
    <>
      {problem !== undefined && (
        <div class="problem" role="alert">
          <p>{problem.message}</p>
          <button type="button" onClick={again}>
            Try again
          </button>
        </div>
      )}
      {value !== undefined ? children(value) : problem === undefined && <p class="faint">Loading …</p>}
    </>
  );
}
