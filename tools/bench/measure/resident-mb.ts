import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process's resident set, in millions of bytes. */
export function residentMb(pid: number): number {
  // Both sources say kilobytes but mean 1,024 bytes.
  const kilobytes =
    process.platform === 'linux'
      ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      : execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' });
  return (Number(kilobytes) * 1_024) / 1_000_000;
}
