import { describe, expect, it } from 'vitest';
import { findNamed, nobodyNamed } from '../../../src/core/domain/find-named.ts';

const PEOPLE = ['Ann', 'ben@club.example', 'Grace Hopper', 'Zoë'];

it.each([
  ['Ann', 'Ann'],
  [' ANN ', 'Ann'],
  ['zoe\u0308', 'Zoë'],
  ['Aann', undefined],
  ['ben', undefined],
  ['', undefined],
])('“%s” names %s', (text, name) => expect(findNamed(text, PEOPLE)).toBe(name));

describe('a text that names nobody', () => {
  it.each([
    ['Aann', 'Did you mean "Ann"?'],
    ['An', 'Did you mean "Ann"?'],
    ['bne', 'Choose one of: "Ann", "ben@club.example", "Grace Hopper", "Zoë".'],
    ['bem', 'Did you mean "ben@club.example"?'],
    ['grace', 'Did you mean "Grace Hopper"?'],
    ['Grcae Hoper', 'Did you mean "Grace Hopper"?'],
    ['Mallory', 'Choose one of: "Ann", "ben@club.example", "Grace Hopper", "Zoë".'],
  ])('is answered with help: “%s”', (text, help) => {
    expect(nobodyNamed(text, PEOPLE)).toBe(`Nobody called "${text}" may take cases here. ${help}`);
  });

  it('is answered with at most ten names, and with what to do if there are none', () => {
    const many = Array.from({ length: 12 }, (_, nth) => `person number ${nth}`);
    expect(nobodyNamed('X', many)).toMatch(/"person number 9", and others\.$/);
    expect(nobodyNamed('X', [])).toMatch(/First make a named token/);
  });
});
