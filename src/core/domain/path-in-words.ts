/** Writes `items.1.unitPrice` as `item 2, unit price`. */
export function pathInWords(path: string): string {
  const parts: string[] = [];
  for (const name of path.split('.')) {
    const nth = parts.length > 0 && /^\d+$/.test(name);
    if (nth) parts.push(`${parts.pop()?.replace(/s$/, '')} ${Number(name) + 1}`);
    else parts.push(name.replaceAll('_', ' ').replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
  }
  return parts.join(', ');
}
