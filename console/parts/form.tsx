import { createContext, type ComponentChildren, type Ref } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import './form.css';

/** What a field knows of its form: whether somebody tried to send it, and what to do when a field is left. */
const InForm = createContext<{ isTried: boolean; onLeave?: (() => void) | undefined }>({ isTried: false });

type AboutForm = {
  /** What the button does. Without it, there is nothing to send. */
  action?: string | undefined;
  /** The other buttons, before it. */
  back?: ComponentChildren;
  /** Such a button is red, and Enter in a field does not press it. */
  isDangerous?: boolean;
  /** False while something is loaded without which it cannot be sent. */
  isReady?: boolean;
  /** True if its fields say at once what is wrong. */
  wasTried?: boolean;
  /** Called when a field was left. */
  onLeave?: () => void;
  /** @returns false if the fields say why it was refused @throws Error that the form shows */
  onSubmit: (form: HTMLFormElement) => Promise<unknown>;
  children: ComponentChildren;
};

/** A form: its fields, then its buttons on the right. The first wrong field gets the focus if it cannot be sent. */
export function Form({ action, back, onLeave, onSubmit, children, ...about }: AboutForm) {
  const { isDangerous = false, isReady = true, wasTried = false } = about;
  const form = useRef<HTMLFormElement>(null);
  const [tries, setTries] = useState(wasTried ? 1 : 0);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    if (tries > 0) form.current?.querySelector<HTMLElement>('.wrong :is(input, select, textarea, button)')?.focus();
  }, [tries]);

  const send = async (): Promise<void> => {
    const { current } = form;
    if (current === null || isBusy) return;
    let isDone: unknown = false;
    setProblem(undefined);
    setBusy(true);
    try {
      if (current.querySelector('[data-problem]') === null) isDone = await onSubmit(current);
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
    setTries(isDone === false ? tries + 1 : 0);
  };
  return (
    <form
      ref={form}
      class="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isDangerous) void send();
      }}
    >
      <InForm.Provider value={{ isTried: tries > 0, onLeave }}>{children}</InForm.Provider>
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="buttons">
        {back}
        {action !== undefined && (
          <button
            type={isDangerous ? 'button' : 'submit'}
            class={isDangerous ? 'danger' : 'primary'}
            aria-disabled={isBusy}
            disabled={!isReady}
            onClick={isDangerous ? () => void send() : undefined}
          >
            {action}
          </button>
        )}
      </div>
    </form>
  );
}

export type FieldProps = {
  id: string;
  label: string;
  /** What the label means, or how the value is written. */
  hint?: ComponentChildren;
  /** What is wrong with the value as it is. The form is not sent with it. */
  problem?: string | undefined;
  /** What the service said about the value, or about an earlier one. */
  refused?: string | undefined;
  isRequired?: boolean;
  /** True if the label is only read out. */
  isUnseen?: boolean;
  /** A tooltip of the label. */
  title?: string | undefined;
};
/** What an input needs, so that its hint and its problem are read out with it. */
type InputAttributes = {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
  'aria-required': true | undefined;
};

/** One field: its label, its hint, its input, and what is wrong, once the field was left or the form was tried. */
export function Field({
  children,
  ...about
}: FieldProps & { children: (attributes: InputAttributes) => ComponentChildren }) {
  const { id, label, hint, problem, refused, isRequired = false, isUnseen = false, title } = about;
  const { isShown, box, says } = useProblem({ id, problem, refused });
  const described = [...(hint ? [`${id}-hint`] : []), ...(isShown ? [`${id}-problem`] : [])].join(' ');
  return (
    <div {...box} class={`field ${box.class}`}>
      <div class={isUnseen ? 'unseen' : 'field-label'} title={title}>
        <label htmlFor={id}>{label}</label>
        <Required isRequired={isRequired} />
      </div>
      {hint && (
        <p class="faint field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': isShown || undefined,
        'aria-required': isRequired || undefined,
      })}
      {says}
    </div>
  );
}

/** Several inputs that belong together, with a label as one field has it. */
export function FieldGroup({ children, ...about }: FieldProps & { children: ComponentChildren }) {
  const { id, label, hint, problem, refused, isRequired = false, title } = about;
  const { isShown, box, says } = useProblem({ id, problem, refused });
  return (
    <fieldset {...box} class={`field-group ${box.class}`} aria-describedby={isShown ? `${id}-problem` : undefined}>
      <legend title={title}>
        {label} <Required isRequired={isRequired} />
      </legend>
      {hint && <p class="faint field-hint">{hint}</p>}
      {children}
      {says}
    </fieldset>
  );
}

function Required({ isRequired }: { isRequired: boolean }) {
  return isRequired ? <span class="field-required">required</span> : null;
}

/** The problem of a field. A form that is just opened shows none. */
function useProblem({ id, problem, refused }: Pick<FieldProps, 'id' | 'problem' | 'refused'>) {
  const { isTried, onLeave } = useContext(InForm);
  const [isLeft, setLeft] = useState(false);
  const shown = isLeft || isTried ? (problem ?? refused) : undefined;
  const leave = (): void => {
    const left = (): void => {
      setLeft(true);
      onLeave?.();
    };
    // A problem moves the buttons below it, so a press that took the focus ends first.
    if (document.querySelector(':active') === null) left();
    else addEventListener('pointerup', () => setTimeout(left), { once: true });
  };
  const onFocusOut = ({ currentTarget, relatedTarget }: FocusEvent): void => {
    if (!(currentTarget as Node).contains(relatedTarget as Node | null)) leave();
  };
  return {
    isShown: shown !== undefined,
    box: { 'data-problem': problem, class: shown === undefined ? '' : 'wrong', onFocusOut, onChange: leave },
    says: (
      <p class="problem" id={`${id}-problem`} aria-live="polite">
        {shown}
      </p>
    ),
  };
}

/** A field for a text. */
export function Text({
  value,
  onWrite,
  onDone,
  lines = 1,
  isCode = false,
  isDisabled = false,
  offers,
  beside,
  inputRef,
  type = 'text',
  inputMode,
  maxLength,
  size,
  placeholder,
  autocomplete = 'off',
  ...about
}: FieldProps & {
  value: string;
  onWrite: (text: string) => void;
  /** Called when the text is complete: with Enter, or when the field is left. */
  onDone?: (text: string) => void;
  lines?: number;
  isCode?: boolean;
  isDisabled?: boolean;
  /** Texts to choose from, and what is said about each. */
  offers?: readonly (readonly [text: string, about?: string])[];
  /** Buttons next to the input. */
  beside?: ComponentChildren;
  inputRef?: Ref<HTMLInputElement> | undefined;
  type?: 'text' | 'password' | 'search' | 'number' | 'time' | 'datetime-local';
  inputMode?: 'decimal' | 'url' | 'text' | undefined;
  maxLength?: number;
  size?: number | undefined;
  placeholder?: string | undefined;
  autocomplete?: string;
}) {
  const isMissing = about.isRequired === true && value.trim() === '';
  return (
    <Field {...about} problem={about.problem ?? (isMissing ? 'Fill this in.' : undefined)}>
      {(attributes) => {
        const common = {
          ...attributes,
          class: isCode ? 'mono' : undefined,
          value,
          placeholder,
          disabled: isDisabled,
          maxLength,
          spellcheck: false,
          onInput: (event: { currentTarget: { value: string } }) => onWrite(event.currentTarget.value),
        };
        const input =
          lines > 1 ? (
            <textarea {...common} rows={lines} />
          ) : (
            <input
              {...common}
              {...(inputRef && { ref: inputRef })}
              {...({ type } as { type: 'text' })}
              inputMode={inputMode}
              size={size}
              autocomplete={autocomplete}
              autocapitalize="off"
              list={offers && `${about.id}-offers`}
              onChange={onDone && ((event) => onDone(event.currentTarget.value))}
            />
          );
        return (
          <>
            {beside === undefined ? (
              input
            ) : (
              <div class="field-beside">
                {input}
                {beside}
              </div>
            )}
            {offers && (
              <datalist id={`${about.id}-offers`}>
                {offers.map(([text, words]) => (
                  <option key={text} value={text}>
                    {words}
                  </option>
                ))}
              </datalist>
            )}
          </>
        );
      }}
    </Field>
  );
}

type AboutChoice = FieldProps & {
  value: string;
  options: readonly (readonly [value: string, name: string])[];
  onChoose: (value: string) => void;
};

/** A field that chooses one of several values. */
export function Choice({ value, options, onChoose, ...about }: AboutChoice) {
  const isMissing = about.isRequired === true && value === '';
  return (
    <Field {...about} problem={about.problem ?? (isMissing ? 'Choose one.' : undefined)}>
      {(attributes) => (
        <select {...attributes} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          {options.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

type AboutTick = {
  isOn: boolean;
  onTick: (isOn: boolean) => void;
  radio?: string;
  class?: string;
  children: ComponentChildren;
};

/** A box to tick, or one of several to choose, with its words behind it. @param about.radio the name of its group */
export function Tick({ isOn, onTick, radio, children, ...about }: AboutTick) {
  return (
    <label {...about} class={about.class ?? 'tick'}>
      <input
        type={radio === undefined ? 'checkbox' : 'radio'}
        name={radio}
        checked={isOn}
        onChange={(event) => onTick(event.currentTarget.checked)}
      />
      <span>{children}</span>
    </label>
  );
}
