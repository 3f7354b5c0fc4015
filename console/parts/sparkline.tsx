import './sparkline.css';

const STEP = 6;
const HEIGHT = 24;

type AboutSparkline = {
  values: readonly number[];
  label: string;
  isUnderWay?: boolean;
  most?: number;
  tone?: 'busy' | 'warn' | 'bad';
};

/**
 * A few counts or shares as small bars in one path: cheap enough for hundreds on a page.
 * @param sparkline.label a description for screen readers
 * @param sparkline.isUnderWay draws the last bar paler, because its step has not ended
 * @param sparkline.most the value of the full height; the highest value by default
 */
export function Sparkline({
  values,
  label,
  isUnderWay = false,
  most = Math.max(...values),
  tone = 'busy',
}: AboutSparkline) {
  const width = values.length * STEP;
  const bars = values.map((value, nth) => bar(nth, most > 0 ? value / most : 0));
  return (
    <svg
      class={`sparkline ${tone}`}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      width={width}
      height={HEIGHT}
      // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- an <img> would need a request each
      role="img"
      aria-label={label}
    >
      <path class="ground" d={`M0 ${HEIGHT - 0.5}H${width}`} />
      <path d={bars.slice(0, -1).join('')} />
      <path class={isUnderWay ? 'under-way' : ''} d={bars.at(-1)} />
    </svg>
  );
}

/** Draws a bar. Every value above 0 is visible. */
function bar(nth: number, share: number): string {
  if (share <= 0) return '';
  const height = Math.max(2, Math.round(share * HEIGHT));
  return `M${nth * STEP} ${HEIGHT}v${-height}h${STEP - 1}v${height}z`;
}
