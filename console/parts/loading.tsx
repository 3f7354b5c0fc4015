import type { ComponentChildren } from 'preact';
import type { Loaded } from './use-loaded.ts';

type AboutLoading<Value> = { loaded: Loaded<Value>; children: (value: Value) => ComponentChildren };

export function Loading<Value>({ loaded, children }: AboutLoading<Value>) {
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
