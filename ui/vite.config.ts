import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  clearScreen: false,
  build: {
    target: 'safari16',
    sourcemap: false,
    // The window's CSP allows files of its own only: no data: addresses, no inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // Without this, Vitest resolves Svelte's server build.
  resolve: mode === 'test' ? { conditions: ['browser'] } : undefined,
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.ts'],
    setupFiles: ['src/test-setup.ts'],
    restoreMocks: true,
  },
}));
