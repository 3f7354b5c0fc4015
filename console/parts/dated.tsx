import { Ago, Time } from './time.tsx';

type AboutDated = { before: string; at: string | null; none?: string; isAgo?: boolean };

/** Words and the instant that they are about. Without one, other words. @param isAgo shows the time since the instant */
export function Dated({ before, at, none = '', isAgo = false }: AboutDated) {
  const Shown = isAgo ? Ago : Time;
  if (at === null) return <>{none}</>;
  return (
    <>
      {before} <Shown at={at} />
    </>
  );
}
