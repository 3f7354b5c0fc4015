/** The names of a table's columns. A column that is false is left out. */
export function Heads({ of }: { of: readonly (string | false)[] }) {
  return (
    <thead>
      <tr>
        {of.map(
          (name) =>
            name !== false && (
              <th key={name} scope="col">
                {name}
              </th>
            ),
        )}
      </tr>
    </thead>
  );
}
