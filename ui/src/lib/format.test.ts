import { expect, it } from 'vitest';
import { parseEvent } from './events';
import { bytes, duration, plural, shorten, speed } from './format';

it('writes durations as people say them', () => {
  expect([340, 1900, 18_000, 125_000, 3_725_000].map(duration)).toEqual([
    '340 ms',
    '1.9 s',
    '18 s',
    '2:05',
    '1:02:05',
  ]);
});

it('never rounds a duration up to sixty seconds', () => {
  expect(duration(59_600)).toBe('1:00');
});

it('writes sizes and counts', () => {
  expect([1, 999, 2100, 98_362_432].map(bytes)).toEqual(['1 byte', '999 bytes', '2.1 kB', '98 MB']);
  expect(plural(1204, 'token')).toBe('1,204 tokens');
});

it('says no speed where there is none', () => {
  expect(speed(1, 100)).toBeNull();
  expect(speed(50, 0)).toBeNull();
  expect(speed(58, 1720)).toBe('34 tokens/s');
});

it('shortens a text of a megabyte to one line', () => {
  expect(shorten('word \n'.repeat(200_000), 12)).toBe('word word w…');
});

it('keeps an event that it does not know, and a line that it cannot read', () => {
  const line = '{"sequence":3,"timestamp":"2026-11-30T10:00:00Z","payload":{"type":"from_later"}}';
  expect(parseEvent(line)).toMatchObject({ sequence: 3, kind: 'from_later', line });
  expect(parseEvent('{oops')).toMatchObject({ kind: 'unreadable', line: '{oops' });
});
