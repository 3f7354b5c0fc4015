import { useRef, useState } from 'preact/hooks';
import { refusedFields, type FieldProblems } from './field-problems.ts';

type About<Answer> = {
  /** What cannot be sent, such as a number that is none. */
  wrong: FieldProblems;
  /** The ids of the inputs. */
  ids: readonly string[];
  /** Sends the draft as a dry run. */
  send: () => Promise<Answer>;
  /** False while the service would refuse any draft. */
  mayJudge?: boolean;
};

/**
 * What is wrong with a draft. The service says it, so that a field is judged here as it is when it is stored.
 * @returns `judge`, for when a field is left, and `check`, which throws an Error that is about no field, or because the
 *   draft was changed meanwhile
 */
export function useProblems<Answer>(draft: object, { wrong, ids, send, mayJudge = true }: About<Answer>) {
  const [problems, setProblems] = useState<FieldProblems>({});
  const judged = useRef<object>(undefined);
  const check = async (): Promise<{ found: FieldProblems; answer?: Answer }> => {
    judged.current = draft;
    const { refused = {}, answer } = await send().then(
      (answer) => ({ answer, refused: undefined }),
      (error: unknown) => ({ refused: refusedFields(error, ids), answer: undefined }),
    );
    const found = { ...refused, ...wrong };
    // An old answer says nothing about what is shown now.
    if (latest.current.draft !== draft) throw new Error('You changed the form while it was checked. Try again.');
    setProblems(found);
    return answer === undefined ? { found } : { found, answer };
  };
  const latest = useRef({ draft, check, mayJudge });
  latest.current = { draft, check, mayJudge };
  // The form is drawn again after the event that changed it.
  const judge = (): void =>
    void setTimeout(() => {
      const now = latest.current;
      if (now.mayJudge && judged.current !== now.draft) void now.check().catch(() => {});
    });
  return { problems, setProblems, check, judge };
}
