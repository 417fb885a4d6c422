/** Model output as HTML that can do nothing: no HTML of its own, no addresses that lead anywhere. */
import MarkdownIt from 'markdown-it';

const md = new MarkdownIt({ html: false, linkify: false, breaks: false, typographer: false });
const { escapeHtml } = md.utils;

// The window follows no links and loads no images: both become text that names the address.
md.validateLink = () => true;
md.renderer.rules['link_open'] = (tokens, index) => {
  const address = String(tokens[index]?.attrGet('href') ?? '');
  return `<span class="md-link" title="${escapeHtml(address)}">`;
};
md.renderer.rules['link_close'] = () => '</span>';
md.renderer.rules['image'] = (tokens, index) => {
  const token = tokens[index];
  const address = String(token?.attrGet('src') ?? '');
  const words = token?.content.trim() || 'image';
  return `<span class="md-image" title="${escapeHtml(address)}">[${escapeHtml(words)}]</span>`;
};

// The CSP forbids style attributes, so columns are aligned by class.
for (const rule of ['th_open', 'td_open'] as const) {
  const tag = rule.slice(0, 2);
  md.renderer.rules[rule] = (tokens, index) => {
    const align = /text-align:\s*(left|center|right)/.exec(
      String(tokens[index]?.attrGet('style') ?? ''),
    );
    return align ? `<${tag} class="align-${align[1]}">` : `<${tag}>`;
  };
}
md.renderer.rules['table_open'] = () => '<div class="md-table"><table>';
md.renderer.rules['table_close'] = () => '</table></div>';

/** Renders Markdown. The result may be put into the page as it is. */
export function renderMarkdown(source: string): string {
  return md.render(source);
}

/**
 * Cuts a text into pieces that can be rendered one by one, so that a growing answer re-renders only
 * its last piece. Cuts are made at blank lines, never inside a code fence, a list or a quotation.
 */
export function splitBlocks(source: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  let blankBefore = false;
  for (const line of source.split('\n')) {
    const opens = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? null;
    if (fence === null && blankBefore && line.trim() !== '' && startsBlock(line, block)) {
      blocks.push(block.join('\n'));
      block = [];
    }
    if (opens !== null) {
      if (fence === null) fence = opens;
      else if (opens.startsWith(fence) && line.trim() === opens) fence = null;
    }
    blankBefore = line.trim() === '';
    block.push(line);
  }
  if (block.length > 0) blocks.push(block.join('\n'));
  return blocks;
}

const CONTINUES = /^(\s|[-+*] |\d{1,9}[.)] |>)/;

function startsBlock(line: string, before: readonly string[]): boolean {
  if (/^\s/.test(line)) return false;
  return !(CONTINUES.test(line) && CONTINUES.test(before[0] ?? ''));
}
