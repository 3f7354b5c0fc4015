/**
 * The seed of every test that draws its inputs. It is fixed, so that they are the same each time. The nightly job sets a
 * fresh one. With this one, a location is removed while it is certified (`role-matrix.test.ts`).
 */
export const SEED = Number(process.env['SEED'] ?? 320_331);
