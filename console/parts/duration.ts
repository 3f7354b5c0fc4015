const STEPS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: 60_000 },
  { unit: 's', ms: 1_000 },
] as const;

/** Formats a duration for a glance: `850 ms`, `2.4 s`, `12 min`, `3 h 5 min`, `2 d 4 h`. */
export function duration(milliseconds: number): string {
  const ms = Math.abs(milliseconds);
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const at = STEPS.findIndex((step) => ms >= step.ms);
  const step = STEPS[at];
  const finer = STEPS[at + 1];
  if (step === undefined) return `${Math.round(ms)} ms`;
  const whole = `${Math.floor(ms / step.ms)} ${step.unit}`;
  const rest = finer === undefined || step.unit === 'min' ? 0 : Math.floor((ms % step.ms) / finer.ms);
  return finer === undefined || rest === 0 ? whole : `${whole} ${rest} ${finer.unit}`;
}
