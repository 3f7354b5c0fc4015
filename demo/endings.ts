/** What has to be ended with the demo, however far it came. */
export type Endings = {
  add(name: string, end: () => Promise<unknown>): void;
  /** Ends all, the last one first, even if some fail. @throws Error that names those that failed */
  run(): Promise<void>;
};

export function endings(): Endings {
  const all: { name: string; end: () => Promise<unknown> }[] = [];
  return {
    add: (name, end) => void all.push({ name, end }),
    async run() {
      const failures: string[] = [];
      for (const { name, end } of all.splice(0).toReversed()) {
        await end().catch((error: Error) => failures.push(`${name}: ${error.message}`));
      }
      if (failures.length > 0) throw new Error(`could not end ${failures.join('; ')}`);
    },
  };
}
