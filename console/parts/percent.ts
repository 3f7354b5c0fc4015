/** Formats a share such as `0.4 %`, so that one of a thousand is not none; `–` if there is none. */
export function percent(share: number | undefined): string {
  if (share === undefined) return '–';
  const hundred = share * 100;
  if (hundred === 0) return '0 %';
  if (hundred < 0.1) return '< 0.1 %';
  return `${hundred < 10 ? Number(hundred.toFixed(1)) : Math.round(hundred)} %`;
}
