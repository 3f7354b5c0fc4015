import { expect, it } from 'vitest';
import { isLikeMember } from '../../console/search/is-like-member.ts';

it.each([
  'Lovelace',
  'Ada Lovelace',
  'Lovelace 5678',
  "O'Brien",
  'Müller-Groß',
  'Παπαδόπουλος',
  '030 12345678',
  '+49 (0)30/123-45',
  '12345678',
  'a1@b.example',
])('the search offers the orders of a member for "%s"', (text) => expect(isLikeMember(text)).toBe(true));

it.each(['', 'K', 'W269', 'club-9', '4711', '0198c1d2-7b1e-7000-8000-1f2e3d4c5b6a', 'pos-1'])(
  'the search for "%s" is not one for a member',
  (text) => expect(isLikeMember(text)).toBe(false),
);
