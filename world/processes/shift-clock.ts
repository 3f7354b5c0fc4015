/**
 * Loaded before a program (`--import`), shifts its clock by `CLOCK_OFF_MS` milliseconds, as on a machine with a wrong
 * time. Timers and the monotonic clock are not affected, as there.
 */
const offMs = Number(process.env['CLOCK_OFF_MS'] ?? 0);

globalThis.Date = new Proxy(Date, {
  apply: (real) => new real(real.now() + offMs).toString(),
  construct: (real, values: [], newTarget) =>
    Reflect.construct(real, values.length === 0 ? [real.now() + offMs] : values, newTarget) as Date,
  get: (real, name, receiver): unknown =>
    name === 'now' ? () => real.now() + offMs : (Reflect.get(real, name, receiver) as unknown),
});
