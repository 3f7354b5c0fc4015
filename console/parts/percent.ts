/** Formats a share such as `0.4 %`. A share above 0 is never `0 %`, and an undefined share is `–`. */
export function percent(share: number | undefined): string {
  if (share === undefined) return '–';
  const hundred = share * 100;
  if (hundred === 0) return '0 %';
  if (hundred < 0.1) return '< 0.1 %';
  return `${hundred < 10 ? Number(hundred.toFixed(1)) : Math.round(hundred)} %`;
}
