export type CurlRequest = { url: string; method: string; headers: Record<string, string>; body: string | undefined };

/** The curl commands of a Markdown page's `sh` blocks, with continued lines joined. */
export function curlCommandsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^```sh\n(.*?)^```$/gms)]
    .flatMap(([, block = '']) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .filter((line) => line.startsWith('curl '));
}

/** Parses a command into the request that curl would send. @throws on an option that no page of ours uses */
export function readCurl(command: string, variables: Record<string, string>): CurlRequest {
  const [, ...words] = [...command.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"']+)+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_all, double?: string, single?: string) =>
      double === undefined ? (single ?? '') : withVariables(double, variables),
    ),
  );
  const read: CurlRequest = { url: '', method: 'GET', headers: {}, body: undefined };
  const next = (): string => words.shift() ?? '';
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-s' || word === '-N') continue;
    if (word === '-X') read.method = next();
    else if (word === '-H') {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(next()) ?? [];
      read.headers[name.toLowerCase()] = value;
    } else if (word === '-d') {
      read.body = next();
      read.method = 'POST';
    } else if (word.startsWith('-')) throw new Error(`curl ${word} is not read here`);
    else read.url = word;
  }
  return read;
}

function withVariables(text: string, variables: Record<string, string>): string {
  return text.replaceAll(/\$([A-Z_]+)/g, (_all, name: string) => {
    const value = variables[name];
    if (value === undefined) throw new Error(`$${name} is not said to be set`);
    return value;
  });
}
