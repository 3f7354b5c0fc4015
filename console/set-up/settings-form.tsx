import { useState } from 'preact/hooks';
import { labelOf } from '../../src/core/domain/label-of.ts';
import { CopyButton } from '../parts/copyable.tsx';
import { Choice, FieldGroup, Text, Tick } from '../parts/form.tsx';
import type { FieldProblems } from './field-problems.ts';
import { randomSecret } from './random-key.ts';
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
  const inputs = (fields: readonly Field[]) => fields.map((field) => <Input key={field.id} field={field} {...form} />);
  return (
    <>
      {inputs(main)}
      {rest.length > 0 && main.length > 0 ? (
        <details class="settings-more" open={isWrong}>
          <summary>{rest.length} more, which have a default</summary>
          {inputs(rest)}
        </details>
      ) : (
        inputs(rest)
      )}
    </>
  );
}

function hasDefault({ isRequired, fallback, kind }: Field): boolean {
  return !isRequired && (fallback !== undefined || kind === 'fields' || kind === 'map' || kind === 'json');
}

function Input({ field, ...form }: Form & { field: Field }) {
  const { kind, label, path, description, fallback, requiredWithout, options } = field;
  const { draft, onChange, problems } = form;
  const written = draft[field.id];
  const fingerprint = form.fingerprints?.[field.id];
  // Only a new location needs one of both.
  const other = form.fingerprints === undefined ? requiredWithout : undefined;
  const isRequired = field.isRequired || (other !== undefined && !draft[other]);
  const hints = [
    description,
    !['choice', 'fields', 'map'].includes(kind) && fallback !== undefined && `Default: ${fallback}`,
    kind === 'json' && 'JSON.',
    field.isList && 'Write all of them, with a space between.',
    fingerprint !== undefined && `Stored: ${fingerprint}. It stays if you leave this empty.`,
  ].filter(Boolean);
  const about = {
    id: `settings-${path.join('-')}`,
    label,
    title: path.at(-1),
    hint: hints.join(' '),
    refused: problems[`settings.${field.id}`],
    isRequired: isRequired && fingerprint === undefined,
    problem: isRequired && other !== undefined && !written ? `Fill this in, or “${labelOf(other)}”.` : undefined,
  };
  if (kind === 'fields' || kind === 'map') {
    return (
      <FieldGroup {...about}>
        {kind === 'map' ? (
          <Rows id={about.id} field={field} {...form} />
        ) : (
          field.fields.map((each) => <Input key={each.id} {...form} field={each} />)
        )}
      </FieldGroup>
    );
  }
  const value = typeof written === 'string' ? written : '';
  const put = (now: string | null): void => onChange({ ...draft, [field.id]: now });
  if (kind === 'choice') {
    const names = options.map(({ value, name }) => [value, name] as const);
    return <Choice {...about} value={value} options={names} onChoose={put} />;
  }
  const text = {
    ...about,
    value,
    onWrite: put,
    isCode: kind !== 'number',
    isDisabled: written === null,
    maxLength: 100_000,
    placeholder: written === null ? 'will be removed' : fingerprint === undefined ? undefined : 'unchanged',
  };
  return (
    <>
      {kind === 'secret' ? (
        <Secret {...text} generated={field.generated} />
      ) : (
        <Text
          {...text}
          lines={kind === 'json' ? 4 : 1}
          inputMode={kind === 'number' ? 'decimal' : kind === 'url' ? 'url' : 'text'}
        />
      )}
      {fingerprint !== undefined && !isRequired && (
        <Tick isOn={written === null} onTick={(isRemoved) => put(isRemoved ? null : '')}>
          Remove it<span class="unseen">: {label}</span>
        </Tick>
      )}
    </>
  );
}

/** A secret is hidden until somebody asks for it. One that we choose ourselves can be generated. */
function Secret({ generated, ...text }: Parameters<typeof Text>[0] & { generated: string | undefined }) {
  const { label, value, onWrite } = text;
  const [isVisible, setVisible] = useState(false);
  const [made, setMade] = useState<string>();
  const generate = (secret: string): void => {
    setMade(secret);
    setVisible(true);
    onWrite(secret);
  };
  return (
    <Text
      {...text}
      type={isVisible ? 'text' : 'password'}
      autocomplete="new-password"
      beside={
        <>
          <button
            type="button"
            aria-label={`${isVisible ? 'Hide' : 'Show'} ${label}`}
            onClick={() => setVisible(!isVisible)}
          >
            {isVisible ? 'Hide' : 'Show'}
          </button>
          {generated !== undefined && (
            <button type="button" aria-label={`Generate ${label}`} onClick={() => generate(randomSecret(generated))}>
              Generate
            </button>
          )}
          {made !== undefined && made === value && <CopyButton text={value} label={label} />}
        </>
      }
    />
  );
}

function Rows({ id, field, draft, onChange }: Pick<Form, 'draft' | 'onChange'> & { id: string; field: Field }) {
  const written = draft[field.id];
  const rows = typeof written === 'object' && written !== null ? written : [];
  const change = (next: readonly (readonly [string, string])[]): void => onChange({ ...draft, [field.id]: next });
  const put = (nth: number, row: readonly [string, string]): void => change(rows.with(nth, row));
  return (
    <>
      {rows.map(([key, value], nth) => {
        const shared = (words: string) => ({
          label: `${field.label}, row ${nth + 1}, ${words}`,
          isUnseen: true,
          isCode: true,
          placeholder: words,
        });
        return (
          // oxlint-disable-next-line react/no-array-index-key -- two rows may have the same texts
          <div class="field-row" key={nth}>
            <Text {...shared('our id')} id={`${id}-${nth}-our`} value={key} onWrite={(key) => put(nth, [key, value])} />
            <Text
              {...shared('id of the POS')}
              id={`${id}-${nth}-pos`}
              value={value}
              onWrite={(value) => put(nth, [key, value])}
            />
            <button
              type="button"
              aria-label={`Remove row ${nth + 1} of ${field.label}`}
              onClick={() => change(rows.toSpliced(nth, 1))}
            >
              Remove
            </button>
          </div>
        );
      })}
      <button type="button" id={id} onClick={() => change([...rows, ['', '']])}>
        Add a row<span class="unseen"> to {field.label}</span>
      </button>
    </>
  );
}
