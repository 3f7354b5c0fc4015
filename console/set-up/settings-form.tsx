import { useState } from 'preact/hooks';
import type { FieldProblems } from './field-problems.ts';
import { FormField, type InputAttributes } from './form-field.tsx';
import type { Field, SettingsDraft } from './settings-fields.ts';

type Form = {
  fields: readonly Field[];
  draft: SettingsDraft;
  problems: FieldProblems;
  onChange: (draft: SettingsDraft) => void;
  /** The fingerprints of stored secrets, by the names of the settings. */
  fingerprints?: Readonly<Record<string, string>>;
};

/** A form for the settings of an integration. Fields with a default are behind a fold, unless one has a problem. */
export function SettingsForm(form: Form) {
  const [main, rest] = [form.fields.filter((field) => !hasDefault(field)), form.fields.filter(hasDefault)];
  const isWrong = rest.some(({ id }) =>
    Object.keys(form.problems).some((each) => `${each}.`.startsWith(`settings.${id}.`)),
  );
  return (
    <>
      {main.map((field) => (
        <Input key={field.id} field={field} {...form} />
      ))}
      {rest.length > 0 && main.length > 0 ? (
        <details class="form-more" open={isWrong}>
          <summary>{rest.length} more, which have a default</summary>
          {rest.map((field) => (
            <Input key={field.id} field={field} {...form} />
          ))}
        </details>
      ) : (
        rest.map((field) => <Input key={field.id} field={field} {...form} />)
      )}
    </>
  );
}

function hasDefault({ isRequired, fallback, kind }: Field): boolean {
  return !isRequired && (fallback !== undefined || kind === 'fields' || kind === 'map' || kind === 'json');
}

function Input({ field, ...form }: Form & { field: Field }) {
  const { kind, label, path, description, fallback, isRequired } = field;
  const problem = form.problems[`settings.${field.id}`];
  const id = `settings-${path.join('-')}`;
  if (kind === 'fields' || kind === 'map') {
    return (
      <fieldset class="form-group">
        <legend>
          {label} {isRequired && <span class="form-required">required</span>} <code class="faint">{path.at(-1)}</code>
        </legend>
        {description !== undefined && <p class="faint form-hint">{description}</p>}
        {kind === 'map' ? (
          <Rows id={id} field={field} {...form} />
        ) : (
          field.fields.map((each) => <Input key={each.id} {...form} field={each} />)
        )}
        {problem !== undefined && (
          <p class="problem" id={`${id}-problem`}>
            {problem}
          </p>
        )}
      </fieldset>
    );
  }
  const fingerprint = form.fingerprints?.[field.id];
  const hints = [
    description,
    kind !== 'choice' && fallback !== undefined && `Default: ${fallback}`,
    kind === 'json' && 'JSON.',
    fingerprint !== undefined && `A secret is stored. Its fingerprint is ${fingerprint}.`,
  ].filter(Boolean);
  return (
    <FormField
      id={id}
      label={label}
      code={path.at(-1)}
      hint={hints.join(' ')}
      problem={problem}
      isRequired={isRequired}
    >
      {(attributes) => (
        <>
          <OneInput attributes={attributes} field={field} isStored={fingerprint !== undefined} {...form} />
          {fingerprint !== undefined && !isRequired && <RemoveSecret field={field} {...form} />}
        </>
      )}
    </FormField>
  );
}

function OneInput({
  attributes,
  field,
  isStored,
  draft,
  onChange,
}: Form & { attributes: InputAttributes; field: Field; isStored: boolean }) {
  const [isVisible, setVisible] = useState(false);
  const written = draft[field.id];
  const common = {
    ...attributes,
    value: typeof written === 'string' ? written : '',
    onInput: (event: { currentTarget: { value: string } }) =>
      onChange({ ...draft, [field.id]: event.currentTarget.value }),
    spellcheck: false,
  };
  const { kind, label, options } = field;
  if (kind === 'choice') {
    return (
      <select {...attributes} value={common.value} onChange={common.onInput}>
        {options.map(({ value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    );
  }
  const placeholder = written === null ? 'will be removed' : isStored ? 'unchanged' : undefined;
  if (kind === 'json') return <textarea {...common} class="mono" rows={4} placeholder={placeholder} />;
  if (kind !== 'secret') {
    return (
      <input
        {...common}
        type="text"
        inputMode={kind === 'number' ? 'decimal' : kind === 'url' ? 'url' : 'text'}
        class={kind === 'number' ? undefined : 'mono'}
        placeholder={placeholder}
        disabled={written === null}
        autocomplete="off"
        autocapitalize="off"
      />
    );
  }
  return (
    <div class="form-secret">
      <input
        {...common}
        {...(isVisible ? { type: 'text' as const } : { type: 'password' as const })}
        class="mono"
        placeholder={placeholder}
        disabled={written === null}
        autocomplete="new-password"
        autocapitalize="off"
      />
      <button
        type="button"
        aria-pressed={isVisible}
        aria-label={`Show ${label}`}
        onClick={() => setVisible(!isVisible)}
      >
        {isVisible ? 'Hide' : 'Show'}
      </button>
    </div>
  );
}

function RemoveSecret({ field, draft, onChange }: Form & { field: Field }) {
  const isRemoved = draft[field.id] === null;
  return (
    <label class="form-remove">
      <input
        type="checkbox"
        checked={isRemoved}
        onChange={() => onChange({ ...draft, [field.id]: isRemoved ? '' : null })}
      />{' '}
      Remove it
      <span class="unseen">: {field.label}</span>
    </label>
  );
}

function Rows({ id, field, draft, onChange }: Form & { id: string; field: Field }) {
  const written = draft[field.id];
  const rows = typeof written === 'object' && written !== null ? written : [];
  const change = (next: readonly (readonly [string, string])[]): void => onChange({ ...draft, [field.id]: next });
  const put = (nth: number, row: readonly [string, string]): void => change(rows.with(nth, row));
  return (
    <>
      {rows.map(([key, value], nth) => (
        // oxlint-disable-next-line react/no-array-index-key -- two rows may have the same texts
        <div class="form-row" key={nth}>
          <input
            class="mono"
            aria-label={`${field.label}, row ${nth + 1}, our id`}
            placeholder="our id"
            value={key}
            spellcheck={false}
            onInput={(event) => put(nth, [event.currentTarget.value, value])}
          />
          <input
            class="mono"
            aria-label={`${field.label}, row ${nth + 1}, id of the POS`}
            placeholder="id of the POS"
            value={value}
            spellcheck={false}
            onInput={(event) => put(nth, [key, event.currentTarget.value])}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove row ${nth + 1} of ${field.label}`}
            onClick={() => change(rows.toSpliced(nth, 1))}
          >
            ✕
          </button>
        </div>
      ))}
      <button type="button" id={id} onClick={() => change([...rows, ['', '']])}>
        Add a row<span class="unseen"> to {field.label}</span>
      </button>
    </>
  );
}
