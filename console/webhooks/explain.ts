import * as explain from '../../src/core/domain/explain-webhook.ts';
import { vendorName } from '../parts/names.ts';

/** The explanations with the names of vendors. */
export const explainDrop: typeof explain.explainDrop = (said, about) =>
  explain.explainDrop(said, { ...about, vendorName });
export const explainRefusal: typeof explain.explainRefusal = (said, about) =>
  explain.explainRefusal(said, { ...about, vendorName });
