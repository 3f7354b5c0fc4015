export function Choice({
  id,
  label,
  value,
  options,
  onChoose,
}: {
  id: string;
  label: string;
  value: string;
  options: readonly (readonly [value: string, name: string])[];
  onChoose: (value: string) => void;
}) {
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
