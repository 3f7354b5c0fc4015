// Loaded before a program, with `--require`: it then believes that it runs on Node 20.
Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });
