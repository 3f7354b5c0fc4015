import { Choice } from './form.tsx';

type AboutFilterChoice<Name extends string> = {
  /** The page, its filter as in the address, and what changes it. */
  of: { page: string; filter: { [Key in Name]?: string }; change: (some: { [Key in Name]?: string }) => void };
  name: NoInfer<Name>;
  label: string;
  options: readonly (readonly [value: string, name: string])[];
};

/** A choice that is one part of the filter of a list. */
export function FilterChoice<Name extends string>({ of, name, ...about }: AboutFilterChoice<Name>) {
  const choose = (value: string): void => of.change({ [name]: value } as { [Key in Name]?: string });
  return <Choice id={`${of.page}-${name}`} value={of.filter[name] ?? ''} onChoose={choose} {...about} />;
}
