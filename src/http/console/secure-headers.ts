/** What is the console's, or would be. */
export const CONSOLE_PATHS = /^\/console(?:[/?]|$)/;

/**
 * On every answer under `/console`. The page may load and call what is ours and nothing else, runs no inline script or
 * style, posts no form, is in nobody's frame, and no other page may read it. That the browser comes by https is the load
 * balancer's to say.
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
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
