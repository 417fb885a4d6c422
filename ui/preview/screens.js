/**
 * Takes pictures of every view over the made-up engine: `npm run preview` in one terminal, then
 * `npm run screens -- FOLDER` in another. CHROMIUM names the browser.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const folder = process.argv[2] ?? 'screens';
const base = process.env.PREVIEW_URL ?? 'http://127.0.0.1:4173';
const only = process.argv.slice(3);
mkdirSync(folder, { recursive: true });

const scenes = [
  ['running', async () => {}],
  [
    'steer',
    async (page) => {
      await page.getByTestId('mode-steer').click();
      await page.getByTestId('composer-input').fill('Write the dates as 3 July, not 07/03');
    },
    'running',
  ],
  ['pasted', paste, 'running'],
  ['approval', async () => {}],
  ['chat', async () => {}],
  ['empty', async () => {}],
  ['no-model', async () => {}],
  ['no-engine', async () => {}],
  ['loading', async () => {}],
  ['too-long', (page) => page.getByTestId('composer-input').fill('word '.repeat(4000)), 'running'],
  [
    'streaming',
    async (page) => {
      await page.getByTestId('composer-input').fill('Where are we?');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(1400);
    },
    'running',
  ],
  [
    'thinking',
    async (page) => {
      await page.getByTestId('composer-input').fill('Where are we?');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(1600);
      for (const part of await page.getByTestId('thinking').all()) {
        if (await part.isVisible()) await part.locator('summary').click();
      }
    },
  ],
  [
    'thought',
    async (page) => {
      await page.getByTestId('thinking').locator('summary').click();
      await page.getByTestId('thinking').scrollIntoViewIfNeeded();
    },
    'chat',
  ],
  ['context', (page) => panel(page, 'context'), 'running'],
  ['log', (page) => panel(page, 'log'), 'running'],
  ['artifacts', (page) => panel(page, 'artifacts'), 'running'],
  [
    'viewer',
    async (page) => {
      await panel(page, 'artifacts');
      await page.getByTestId('artifact').first().click();
    },
    'running',
  ],
  ['new-session', (page) => page.getByTestId('new-session').click(), 'running'],
  [
    'bad-workflow',
    async (page) => {
      await page.getByTestId('new-session').click();
      await page.getByTestId('own-workflow').click();
      await page.getByTestId('workflow-path').fill('/home/ada/brief.toml');
      await page.keyboard.press('Enter');
    },
    'running',
  ],
  ['new-workflow', beginWorkflow, 'running'],
  [
    'begun-workflow',
    async (page) => {
      await beginWorkflow(page);
      await page.getByTestId('new-workflow-name').fill('board-minutes');
      await page.getByTestId('create-workflow').click();
    },
    'running',
  ],
  ['model', (page) => page.getByTestId('model-state').locator('summary').click(), 'running'],
  ['drawer', (page) => panel(page, 'run'), 'running'],
];

async function paste(page) {
  await page.getByTestId('composer-input').evaluate((input) => {
    const data = new DataTransfer();
    data.setData('text/plain', 'Minutes of Monday. '.repeat(3000));
    input.dispatchEvent(
      new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }),
    );
  });
  await page.waitForTimeout(1200);
}

async function beginWorkflow(page) {
  await page.getByTestId('new-session').click();
  await page.getByTestId('new-workflow').click();
  await page.getByRole('button', { name: 'Browse for the folder' }).click();
}

async function panel(page, tab) {
  const pane = page.getByTestId('run-pane');
  if (!(await pane.isVisible())) await page.getByTestId('toggle-run').click();
  await page.getByTestId(`tab-${tab}`).click();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
for (const [width, height] of [
  [1280, 800],
  [800, 600],
]) {
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, act, scene = name] of scenes) {
      if (only.length > 0 && !only.includes(name)) continue;
      const page = await browser.newPage({ viewport: { width, height }, colorScheme });
      page.on('pageerror', (error) => process.stderr.write(`${name}: ${error}\n`));
      await page.goto(`${base}/?scene=${scene}`);
      await page.locator('[data-testid=model-state], [data-phase=failed]').first().waitFor();
      await act(page);
      await page.waitForTimeout(600);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
      await page.close();
    }
  }
}
await browser.close();
