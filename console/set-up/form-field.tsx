import type { ComponentChildren } from 'preact';

/** What an input needs, so that its hint and its problem are read out with it. */
export type InputAttributes = {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
  'aria-required': true | undefined;
};

/** An input with its label, a hint, and what is wrong with it. */
export function FormField({
  id,
  label,
  code,
  hint,
  problem,
  isRequired = false,
  children,
}: {
  id: string;
  label: string;
  /** The name in files and in the documentation, if it differs from the label. */
  code?: string | undefined;
  hint?: ComponentChildren;
  problem?: string | undefined;
  isRequired?: boolean;
  children: (attributes: InputAttributes) => ComponentChildren;
}) {
  const described = [...(hint ? [`${id}-hint`] : []), ...(problem === undefined ? [] : [`${id}-problem`])].join(' ');
  return (
    <div class={`form-field ${problem === undefined ? '' : 'wrong'}`}>
      <div class="form-label">
        <label htmlFor={id}>{label}</label>
        {isRequired && <span class="form-required">required</span>}
        {code !== undefined && <code class="faint">{code}</code>}
      </div>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': problem === undefined ? undefined : true,
        'aria-required': isRequired || undefined,
      })}
      {hint && (
        <p class="faint form-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem !== undefined && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}
