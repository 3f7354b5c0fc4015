/** The operator's token of these tests. */
export const OPERATOR_TOKEN = 'gWq7kwmkkGa0tqQe118d2Lx6El0MVWkuUt1mVVALA9M';

export type Scrape = {
  text: string;
  /** Of one series; undefined where it is not there. */
  value(name: string, labels?: Record<string, string>): number | undefined;
};

/** What Prometheus would read. */
export async function scrape(url: string, token = OPERATOR_TOKEN): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`GET /metrics was answered ${response.status}: ${text}`);
  return {
    text,
    value(name, labels = {}) {
      const written = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      const line = text.split('\n').find((each) => {
        const [, found, within = ''] = /^([a-z_0-9]+)(?:\{(.*)\})? /.exec(each) ?? [];
        return found === name && written.every((one) => within.split(',').includes(one));
      });
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
  };
}
