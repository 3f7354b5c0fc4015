import { useRef, useState } from 'preact/hooks';
import { refusedFields, type FieldProblems } from './field-problems.ts';

/**
 * What is wrong with a draft. The service says it, so that a field is judged here as it is when it is stored.
 * @param about.wrong what cannot be sent, such as a number that is none
 * @param about.ids the ids of the inputs
 * @param about.send sends the draft as a dry run
 * @returns `judge`, for when a field is left, and `check`, which throws an Error that is about no field
 */
export function useProblems(
  draft: object,
  { wrong, ids, send }: { wrong: FieldProblems; ids: readonly string[]; send: () => Promise<unknown> },
) {
  const [problems, setProblems] = useState<FieldProblems>({});
  const [judged, latest] = [useRef<object>(undefined), useRef(draft)];
  latest.current = draft;
  const check = async (): Promise<FieldProblems> => {
    judged.current = draft;
    const refused = await send().then(
      () => ({}),
      (error: unknown) => refusedFields(error, ids),
    );
    const found = { ...refused, ...wrong };
    if (latest.current === draft) setProblems(found);
    return found;
  };
  const judge = (): void => {
    if (judged.current !== draft) void check().catch(() => {});
  };
  return { problems, setProblems, check, judge };
}
