import './require-node.ts';

// Imported after the check: an old Node fails while it links these modules.
await import('./server/serve.ts');
