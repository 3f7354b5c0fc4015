/** Makes a query string with its `?`. Leaves out empty parameters. Returns an empty string if all are empty. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return set.length === 0
    ? ''
    : `?${new URLSearchParams(set.map(([name, value]): [string, string] => [name, String(value)])).toString()}`;
}
