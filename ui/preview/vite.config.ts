import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** The window's front end over a made-up engine, for looking at it. Nothing of it is shipped. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [svelte()],
  server: { host: '127.0.0.1', port: 4173, strictPort: true },
});
