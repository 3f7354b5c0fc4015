/** The console's paths, existing or not. */
export const CONSOLE_PATHS = /^\/console(?:[/?]|$)/;

/**
 * Headers of every answer under `/console`. The page may load and call only what is ours, runs no inline script or
 * style, posts no form, is in nobody's frame, and no other page may read it. Whether the browser must use https is left
 * to the load balancer.
 */
export const secureHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
