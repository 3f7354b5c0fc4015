import type { ComponentChildren } from 'preact';
import { Copyable } from '../parts/copyable.tsx';
import { Said } from '../parts/said.tsx';
import { WhereToRun } from '../parts/where-to-run.tsx';
import type { Explanation } from '../../src/core/domain/explain-webhook.ts';

type AboutExplained = { explanation: Explanation; isOver?: boolean; children?: ComponentChildren };

/** Shows what is wrong and what to do. @param isOver true if the problem is solved; the steps are then folded */
export function Explained({ explanation, isOver = false, children }: AboutExplained) {
  const { what, details, toDo } = explanation;
  return (
    <div class="beside webhooks-explained">
      <div>
        <p class="webhooks-what">
          <Said text={what} />.
        </p>
        {details.map((detail) => (
          <p key={detail}>
            <Said text={detail} />
          </p>
        ))}
        {children}
      </div>
      {toDo.length > 0 && isOver && (
        <details>
          <summary>Steps that solved it</summary>
          <Steps toDo={toDo} />
        </details>
      )}
      {toDo.length > 0 && !isOver && (
        <div>
          <h3>What to do</h3>
          <Steps toDo={toDo} />
        </div>
      )}
    </div>
  );
}

function Steps({ toDo }: Pick<Explanation, 'toDo'>) {
  return (
    <>
      <ol class="webhooks-to-do">
        {toDo.map(({ say, link, run }) => (
          <li key={say}>
            <Said text={say} />
            {link !== undefined && (
              <>
                {' '}
                <a href={link.href}>{link.name}</a>
              </>
            )}
            {run !== undefined && <Copyable text={run} label={`the command: ${say}`} />}
          </li>
        ))}
      </ol>
      {toDo.some(({ run }) => run !== undefined) && <WhereToRun />}
    </>
  );
}
