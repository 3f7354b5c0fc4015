import './require-node.ts';

// Imported dynamically, after the check of Node's version, because an old Node fails when it links these modules.
await import('./server/serve.ts');
