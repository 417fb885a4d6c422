import { describe, expect, it } from 'vitest';
import { renderMarkdown, splitBlocks } from './markdown';

/** The page that a text becomes. */
function page(source: string): HTMLElement {
  const host = document.createElement('div');
  host.innerHTML = splitBlocks(source).map(renderMarkdown).join('');
  return host;
}

/** Nothing that could run, load, or lead anywhere. */
function expectHarmless(host: HTMLElement) {
  const elements = [...host.querySelectorAll('*')];
  const allowed = new Set(
    'P UL OL LI STRONG EM S CODE PRE BLOCKQUOTE HR BR H1 H2 H3 H4 H5 H6 DIV TABLE THEAD TBODY TR TH TD SPAN'.split(
      ' ',
    ),
  );
  for (const element of elements) {
    expect(allowed).toContain(element.tagName);
    for (const { name } of element.attributes) expect(['class', 'title', 'start']).toContain(name);
  }
}

describe('hostile Markdown becomes text', () => {
  it.each([
    ['a script', '<script>alert(1)</script>'],
    ['an image with a handler', '<img src=x onerror=alert(1)>'],
    ['a link that runs', '[click](javascript:alert(1))'],
    ['a link that carries a page', '[click](data:text/html,<script>alert(1)</script>)'],
    ['a remote image', '![x](https://evil.example/p.png "t")'],
    ['a quote in an address', '[x](https://e.example/"onmouseover="alert(1))'],
    ['a quote in a title', '[x](https://e.example "\\"><img src=x onerror=alert(1)>")'],
    ['an automatic link', '<https://evil.example>'],
    ['HTML in a heading', '# <svg onload=alert(1)>'],
    ['HTML in a table', '| a |\n| --- |\n| <iframe src=//e.example> |'],
    ['HTML in a fence’s name', '```"><img src=x onerror=alert(1)>\nx\n```'],
    ['a style', '<style>*{display:none}</style>'],
    ['a form', '<form action=//e.example><button>x</button></form>'],
    ['an entity', '&lt;script&gt; &#60;script&#62;'],
  ])('%s', (_name, source) => {
    expectHarmless(page(source));
  });
});

it('shows the words of HTML as they were written', () => {
  expect(page('Use <b>bold</b> & <script>').textContent?.trim()).toBe('Use <b>bold</b> & <script>');
});

it('names a link’s address without leading there', () => {
  const link = page('[notes](https://example.org/n)').querySelector('.md-link');
  expect(link?.textContent).toBe('notes');
  expect(link?.getAttribute('title')).toBe('https://example.org/n');
});

it('aligns columns without style attributes', () => {
  const cell = page('| a |\n| ---: |\n| 1 |').querySelector('td');
  expect(cell?.className).toBe('align-right');
});

describe('a growing text', () => {
  const source =
    '# Title\n\nOne\ntwo\n\n- a\n\n- b\n\n  more of b\n\n```js\nlet x;\n\nlet y;\n```\n\nEnd';

  it('is cut only between blocks', () => {
    expect(splitBlocks(source)).toEqual([
      '# Title\n',
      'One\ntwo\n',
      '- a\n\n- b\n\n  more of b\n',
      '```js\nlet x;\n\nlet y;\n```\n',
      'End',
    ]);
  });

  it('loses nothing, wherever it is cut off', () => {
    for (let end = 0; end <= source.length; end += 1) {
      const part = source.slice(0, end);
      expect(splitBlocks(part).join('\n')).toBe(part);
    }
  });

  it('keeps its finished blocks as it grows', () => {
    const half = splitBlocks(source.slice(0, 40));
    expect(splitBlocks(source).slice(0, half.length - 1)).toEqual(half.slice(0, -1));
  });
});
