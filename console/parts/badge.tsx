import type { ComponentChildren } from 'preact';
import type { Tone } from './tones.ts';

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
