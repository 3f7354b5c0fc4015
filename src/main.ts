import './require-node.ts';

// After the check: an old Node fails while it links what this imports.
await import('./server/serve.ts');
